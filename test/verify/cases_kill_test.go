//go:build faults

package verify

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// Where a process can die while an order is on its way through it. The points of
// the first list are met by an order that is placed, those of the second by one
// that is refused, and those of the third by the relay.
var (
	placing   = []string{"O2-before-claim", "O3-claimed", "O4-begun", "O9-written", "O7-before-commit", "O7-committed", "X1-committed", "H3-before-answer"}
	refusing  = []string{"O13-before-release", "O13-released"}
	relaying  = []string{"X2-taken", "X6-before-send", "X2-consumed", "X2-done"}
	committed = []string{"O7-committed", "X1-committed", "H3-before-answer"}
)

// clockedRedis is a Redis of the test's own with a clock that the test moves, so
// that leases and tokens of real processes end at once.
func clockedRedis(t *testing.T, args ...string) (*fault.Clock, string) {
	t.Helper()
	clock, err := fault.NewClock(t.TempDir())
	if errors.Is(err, fault.ErrNoPreload) && os.Getenv("CI") == "" {
		t.Skip(harness.MissingPart + err.Error())
	}
	require.NoError(t, err)
	t.Cleanup(clock.Close)
	p, err := devstack.StartRedis(t.Context(), devstack.Options{Args: args, Env: clock.Env()})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return clock, "redis://" + p.Addr
}

// deadly is a shop of capacity ten whose other processes die.
type deadly struct {
	*shop
	clock *fault.Clock
	front *fault.Process // stays: it takes people in and lets them through
	kills int
}

func openDeadly(t *testing.T) *deadly {
	t.Helper()
	clock, url := clockedRedis(t)
	d := &deadly{clock: clock, shop: openShop(t, url, harness.DSN(t), func(r *room.Settings) {
		r.Capacity, r.BatchSize, r.IntervalMs, r.ClaimLeaseSeconds, r.EntryTokenTTLSeconds = 10, 10, 100, 11, 60
	})}
	_, _, err := d.rooms.PutProduct(t.Context(), room.Product{SKU: "rare", PriceCents: 1, Currency: "EUR"}, 0, operatorOfShop)
	require.NoError(t, err)
	d.facts.Stock["rare"] = 0
	d.front = d.start("LINEKEEPER_ROLES=api,scheduler", "LINEKEEPER_LEADER_TTL=0")
	d.begun()
	return d
}

// victim is a process that kills itself as soon as it comes to a point.
func (d *deadly) victim(role, point string) *fault.Process {
	d.t.Helper()
	return d.start("LINEKEEPER_ROLES="+role, "LINEKEEPER_FAULTPOINTS="+point+"=kill@1")
}

// dead waits for the end of a victim, which must be the one that was arranged.
func (d *deadly) dead(p *fault.Process, point string) {
	d.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(longEnough):
		d.t.Fatalf("nothing has come to %s", point)
	}
	require.Equal(d.t, -1, p.ExitCode(), "the process has ended by itself at %s:\n%s", point, p.Tail())
	d.kills++
	tally.Faults(1)
}

// buyRare orders what is sold out.
func (c *customer) buyRare(p *fault.Process) heard {
	e := history.Event{F: history.Order, Grant: c.grant, Content: history.Content([]history.Item{{SKU: "rare", Quantity: 1}})}
	h := http.Header{"X-Entry-Token": {c.token}, "Content-Type": {"application/json"}}
	return c.call(p.Public, e, http.MethodPost, "/v1/orders", h, `{"items":[{"sku":"rare","quantity":1}]}`)
}

// dieInTurn has one process die at each of these points, all at the same time,
// each with a customer of its own.
func (d *deadly) dieInTurn(points []string) {
	t := d.t
	t.Helper()
	before := d.orders()
	victims, answers := make([]*fault.Process, len(points)), make([]heard, len(points))
	for i, point := range points {
		victims[i] = d.victim("api", point)
	}
	customers := d.line(len(points), d.front)
	for _, c := range customers {
		c.until(d.front, queue.Ready) // there is room for all: nothing has leaked so far
	}
	inParallel(len(points), len(points), func(i int) {
		if slices.Contains(refusing, points[i]) {
			answers[i] = customers[i].buyRare(victims[i])
		} else {
			answers[i] = customers[i].buy(victims[i])
		}
	})
	placed := 0
	for i, point := range points {
		require.Error(t, answers[i].err, "a dead process has answered at %s: %s", point, answers[i].body)
		d.dead(victims[i], point)
		if slices.Contains(committed, point) {
			placed++
		}
	}
	require.Equal(t, before+placed, d.orders(), "an order is there exactly if its COMMIT was sent")
	d.overAndEmpty()
}

// relayDies places an order at a living process, and has the relay die with its
// event.
func (d *deadly) relayDies(point string) {
	d.t.Helper()
	d.customer().admitted(d.front).buy(d.front).is(http.StatusCreated)
	// It may find the event, and its end, before anybody hears that it serves.
	d.dead(d.launch("LINEKEEPER_ROLES=relay", "LINEKEEPER_FAULTPOINTS="+point+"=kill@1"), point)
}

// overAndEmpty lets every lease and every token end, and looks for what holds a
// slot all the same. Every order has its event, done or not.
func (d *deadly) overAndEmpty() {
	d.t.Helper()
	require.NoError(d.t, d.clock.Step(61*time.Second))
	d.untilSnapshot("no slot is held", func(q queue.Snapshot) bool { return q.Ready+q.Claimed+q.Processing == 0 })
	require.Zero(d.t, sqlValue[int](d.shop, `SELECT count(*) FROM orders o WHERE NOT void
		AND NOT EXISTS (SELECT FROM outbox e WHERE e.order_id = o.id)`), "an order without its event")
	require.Equal(d.t, d.orders(), sqlValue[int](d.shop, "SELECT count(*) FROM outbox"), "an event without its order")
	_, err := d.pool.Exec(d.t.Context(), "UPDATE outbox SET locked_until = now() WHERE locked_until IS NOT NULL") // that time is over too
	require.NoError(d.t, err)
}

// Case 29, triggerdotdev/trigger.dev#4540, argoproj/argo-workflows#16405 and
// gocraft/work#231: processes are killed at every point of an order's way, over
// and over, in a room that has ten slots. None of them is lost.
//
// Case 64, opendefender/OpenRisk#344: an order whose process was killed right
// after COMMIT has its event.
func TestCase29ProcessesKilledAtEveryPointOfAnOrderLeakNoSlot(t *testing.T) {
	t.Parallel()
	d := openDeadly(t)
	rounds := 3
	if long() {
		rounds = 8 // a hundred processes and more
	}
	for range rounds {
		for chunk := range slices.Chunk(append(slices.Clone(placing), refusing...), 5) {
			d.dieInTurn(chunk)
		}
		for _, point := range relaying {
			d.relayDies(point)
		}
		d.overAndEmpty()
	}
	t.Logf("%d processes killed, %d orders", d.kills, d.orders())

	d.start("LINEKEEPER_ROLES=relay")
	q := d.untilSnapshot("every order has spent its grant", func(q queue.Snapshot) bool { return int(q.Counters["consumed"]) == d.orders() })
	require.Zero(t, q.Waiting()+q.Away, fmt.Sprintf("%+v", q))
	for _, c := range d.line(10, d.front) {
		c.until(d.front, queue.Ready)
		c.buy(d.front).is(http.StatusCreated)
	}
	d.judge()
}
