package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// Two schedulers without a lock, each with what it has itself heard and read,
// however long before it tells it; orders that commit, are rolled back and are
// heard of late; grants that expire and are given up; stock put back. Whoever
// holds a grant finds a piece, each time, and in the end all are sold.
func TestNobodyWithAGrantFindsNothingLeftHoweverReadingsAreOld(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			start := int64(5 + rnd.IntN(20))
			s := openShop(t, start, func(r *queue.Rules) { r.PickupTTL, r.TokenTTL = 10*time.Second, 15*time.Second })
			bazaar(s, rnd).trade()
		})
	}
}

// market is a shop with several schedulers and impatient people.
type market struct {
	*shop
	rnd     *rand.Rand
	heards  []int64
	reads   []*queue.StockReading
	holders []string
	term    int64
	entered int
	sold    int64
	stock   int64 // put in so far
}

func bazaar(s *shop, rnd *rand.Rand) *market {
	return &market{shop: s, rnd: rnd, term: 1, stock: s.left, heards: make([]int64, 2), reads: make([]*queue.StockReading, 2)}
}

func (m *market) trade() {
	t := m.fixture.TB
	for range 400 {
		m.act()
	}
	for m.left > 0 || len(m.pending) > 0 { // what is left goes to those who wait
		m.deliver()
		m.pass(time.Second)
		m.come()
		m.hears(0, nil)
		m.hears(0, &queue.StockReading{SKU: "demo", Left: m.left, Consumed: m.heards[0]})
		for len(m.holders) > 0 {
			m.buys()
		}
		require.NoError(t, m.Heard(t.Context(), m.room, nil))
		m.reap()
	}
	require.Equal(t, m.stock, m.sold, "all were sold")
	m.conserved()
}

func (m *market) act() {
	switch i := m.rnd.IntN(2); m.rnd.IntN(8) {
	case 0:
		m.come()
	case 1:
		m.reads[i] = &queue.StockReading{SKU: "demo", Left: m.left, Consumed: m.heards[i]}
	case 2, 3:
		m.hears(i, m.reads[i])
	case 4, 5:
		m.buys()
	case 6:
		m.deliver()
	case 7:
		if m.rnd.IntN(5) == 0 {
			m.left, m.stock = m.left+3, m.stock+3
		}
		m.pass(time.Duration(m.rnd.IntN(3000)) * time.Millisecond)
		m.reap()
	}
}

// come has some people enter.
func (m *market) come() {
	if snap := m.snap(); snap.Waiting() < 30 && !snap.SoldOut() {
		m.enterMany(m.entered, m.entered+10)
		m.entered += 10
	}
}

// hears has scheduler i tick, with a term of its own.
func (m *market) hears(i int, reading *queue.StockReading) {
	m.term++
	m.step = queue.Step{Generation: m.life.Generation, Term: m.term, Leader: fmt.Sprint("s", i)}
	m.holders = append(m.holders, m.let(reading)...)
	m.heards[i] = m.heard
}

// buys has one of those who have a grant order, fail, or go away.
func (m *market) buys() {
	if len(m.holders) == 0 {
		return
	}
	i := m.rnd.IntN(len(m.holders))
	who := m.holders[i]
	m.holders = slices.Delete(m.holders, i, i+1)
	if m.status(who) != queue.Ready {
		return // expired
	}
	switch m.rnd.IntN(4) {
	case 0:
		_, err := m.Leave(m.Context(), m.room, who, 0, queue.OutcomeLeft)
		require.NoError(m, err)
	case 1:
		g := m.pickUp(who)
		require.NoError(m, m.Claim(m.Context(), g, "failed", time.Hour))
		require.NoError(m, m.Release(m.Context(), g, "failed"))
		m.holders = append(m.holders, who)
	default:
		m.order(who)
		m.sold++
	}
}
