package redisstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// trade is a shop with a scheduler that sleeps as it is told, and people of whom
// some never order: half of these never fetch the grant, the others let it expire.
type trade struct {
	*shop
	rnd     *rand.Rand
	noShows int // in a hundred
	think   time.Duration
	entered int
	due     map[string]time.Time // who will order, and when
	orders  int
	read    time.Time // when stock was last read
	full    time.Duration
	ran     time.Duration
}

func newTrade(s *shop, noShows int) *trade {
	return &trade{shop: s, rnd: rand.New(rand.NewPCG(7, 3)), noShows: noShows, think: 20 * time.Second, due: map[string]time.Time{}}
}

// moment is how often people act, and the room is looked at: between two calls
// of the scheduler too.
const moment = 50 * time.Millisecond

// run trades for so long. each is told, at each moment, how many are inside.
func (d *trade) run(long time.Duration, each func(inside int64)) {
	next := d.clock
	for end := d.clock.Add(long); d.clock.Before(end); d.pass(moment) {
		d.people()
		if !d.clock.Before(next) {
			next = d.clock.Add(d.tick())
		}
		s := d.snap()
		inside := s.Ready + s.Claimed + s.Processing
		each(inside)
		d.full += time.Duration(inside) * moment
		d.ran += moment
	}
}

// people enter, and order what they have decided to; the room hears of it.
func (d *trade) people() {
	if snap := d.snap(); snap.Waiting() < 100 && !snap.SoldOut() {
		d.enterMany(d.entered, d.entered+100)
		d.entered += 100
	}
	for m, at := range d.due {
		if at.After(d.clock) {
			continue
		}
		delete(d.due, m)
		if d.left > 0 {
			d.order(m)
			d.orders++
		}
	}
	d.deliver()
}

// tick is one call of the scheduler: how long it sleeps.
func (d *trade) tick() time.Duration {
	require.NoError(d, d.Heard(d.Context(), d.room, nil))
	d.reap()
	var reading *queue.StockReading
	if d.clock.Sub(d.read) >= 500*time.Millisecond {
		reading, d.read = d.shop.read(), d.clock
	}
	r := d.tell(reading)
	for _, m := range d.grantAll(r) {
		d.arrive(m)
	}
	if r.More {
		return 0
	}
	return min(max(r.Wait, 5*time.Millisecond), time.Second)
}

// arrive decides what somebody who has been let in will do.
func (d *trade) arrive(m string) {
	switch n := d.rnd.IntN(100); {
	case n < d.noShows/2: // has gone, and does not fetch it
	case n < d.noShows:
		d.pickUp(m)
	default:
		d.due[m] = d.clock.Add(d.think/2 + time.Duration(d.rnd.Int64N(int64(d.think))))
	}
}

func noShowRules(r *queue.Rules) {
	r.TokenTTL, r.PickupTTL, r.ForgetAfter = 60*time.Second, 40*time.Second, 90*time.Second
}

// Case 1 and case 4 of the reports about other systems are about capacity that
// leaks: here it is full for as long as somebody waits.
func TestACapacityOfTenIsUsedAlthoughThreeInTenNeverOrder(t *testing.T) {
	s := openShop(t, 0, noShowRules, func(r *queue.Rules) { r.Stock, r.Overbook, r.Capacity = "", 0, 10 })
	s.left = 1_000_000
	d := newTrade(s, 30)
	most := int64(0)
	d.run(5*time.Minute, func(inside int64) { most = max(most, inside) })
	require.EqualValues(t, 10, most, "never above the capacity, at any call")
	used := d.full.Seconds() / d.ran.Seconds() / 10
	t.Logf("%d orders in %v, %.1f %% of the capacity used", d.orders, d.ran, 100*used)
	require.GreaterOrEqual(t, used, 0.95)
	d.conserved()
}

func TestOverbookingSellsMoreInTheSameTimeWhereSomeNeverOrder(t *testing.T) {
	factors := []int{1000, 1200}
	orders := make([]int, len(factors))
	t.Run("trade", func(t *testing.T) {
		for i, overbook := range factors {
			t.Run(fmt.Sprint(overbook), func(t *testing.T) {
				d := newTrade(openShop(t, 200, noShowRules, func(r *queue.Rules) { r.Overbook = overbook }), 30)
				most := int64(0)
				d.run(50*time.Second, func(inside int64) { most = max(most, inside) })
				require.EqualValues(t, 200*overbook/1000, most)
				orders[i] = d.orders
				d.conserved()
			})
		}
	})
	t.Logf("orders without and with overbooking: %v", orders)
	require.Greater(t, orders[1], orders[0]*11/10)
	require.LessOrEqual(t, orders[1], 200, "and never more than there is")
}
