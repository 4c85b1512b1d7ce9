//go:build faults

package verify

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/fault"
)

// halting is a victim that stops itself, as a suspended machine would, as soon as
// it comes to a point, with a customer's order in hand.
func (d *deadly) halting(point string, c *customer) (p *fault.Process, answered <-chan heard) {
	d.t.Helper()
	p = d.start("LINEKEEPER_ROLES=api", "LINEKEEPER_FAULTPOINTS="+point+"=stop@1")
	done := make(chan heard, 1)
	go func() { done <- c.buy(p) }()
	eventually(d.t, longEnough, "the process stands still at "+point, p.Halted)
	tally.Faults(1)
	return p, done
}

// Case 50, OptimalBits/bull#308 and taskforcesh/bullmq#3183: a process stands
// still in its transaction until the lease of its claim is over and another
// attempt has ordered. It goes on, and there is still one order, which its client
// is given by asking again.
func TestCase50AProcessThatStoodStillInItsTransactionMakesNoSecondOrder(t *testing.T) {
	t.Parallel()
	d := openDeadly(t)
	ann := d.customer().admitted(d.front)
	p, answered := d.halting("O9-written", ann)
	require.NoError(t, d.clock.Step(12*time.Second))
	d.untilSnapshot("the lease is over", func(q queue.Snapshot) bool { return q.Ready == 1 && q.Claimed == 0 })
	second := ann.twin()
	var made heard
	// Postgres ends a transaction that nobody goes on with after ten seconds.
	eventually(t, longEnough, "the second attempt has its order", func() bool {
		made = second.buy(d.front)
		return made.status != http.StatusConflict || made.code != "order-in-progress"
	})
	made.is(http.StatusCreated) // 200 would be an order of the one that stands still
	require.NoError(t, p.Continue())
	first := <-answered
	if first.status != http.StatusOK {
		first.is(http.StatusServiceUnavailable)
		require.NotEmpty(t, first.header.Get("Retry-After"))
	}
	require.Equal(t, made.order.ID, ann.buy(p).is(http.StatusOK).order.ID, "the late one is given the order that is there")
	require.Equal(t, 1, d.orders())
	require.Equal(t, 99_999, sqlValue[int](d.shop, "SELECT stock FROM products WHERE sku = 'demo'"))
	d.start("LINEKEEPER_ROLES=relay")
	d.judge()
}

// A process stands still between claim and INSERT until the token has expired,
// and its client was told elsewhere that there is no order. When it goes on, it
// makes none.
func TestAProcessThatStoodStillBeforeItsTransactionOrdersNothingAfterARefusal(t *testing.T) {
	t.Parallel()
	d := openDeadly(t)
	ann := d.customer().admitted(d.front)
	p, answered := d.halting("O3-claimed", ann)
	require.NoError(t, d.clock.Step(61*time.Second))
	second := ann.twin()
	for range 2 {
		second.buy(d.front).is(http.StatusUnauthorized, "entry-token-invalid")
	}
	require.NoError(t, p.Continue())
	late := <-answered
	require.True(t, late.status == http.StatusUnauthorized || late.away(), "%d %s", late.status, late.body)
	ann.buy(p).is(http.StatusUnauthorized, "entry-token-invalid")
	require.Zero(t, d.orders())
	require.Equal(t, 100_000, sqlValue[int](d.shop, "SELECT stock FROM products WHERE sku = 'demo'"))
	d.judge()
}
