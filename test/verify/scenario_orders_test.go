//go:build faults

package verify

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// O4, the double-order hole: a first transaction is open past the lease of its
// claim, and a second attempt has a claim of its own. Both are told one order.
func TestTransactionHeldPastItsLeaseAndASecondAttemptAreOneOrder(t *testing.T) {
	t.Parallel()
	c := openCounter(t, func(*room.Settings) {})
	r := c.request(c.grant("ann"))
	release := c.holdStock("demo")
	first := c.place(c.till(nil), r)
	c.waiting(1)
	c.pass(r.Lease)
	require.Equal(t, queue.Ready, c.standing("ann").Status, "the lease has not ended: this test shows nothing")
	second := c.place(c.till(nil), r)
	c.waiting(2) // it has its claim, and meets the first one's row
	require.Equal(t, queue.Claimed, c.standing("ann").Status)
	tally.Faults(1)
	release()

	one, two := <-first, <-second
	require.NoError(t, one.err)
	require.NoError(t, two.err)
	require.Equal(t, one.ID, two.ID)
	require.Equal(t, []bool{false, true}, []bool{one.Replayed, two.Replayed})
	require.Equal(t, 1, c.orders())
	require.Equal(t, 99_999, sqlValue[int](c.shop, "SELECT stock FROM products"))
	c.relay()
	require.Equal(t, one.ID, c.standing("ann").OrderID)
	c.judge()
}

// X3, late cleanup: the relay stands still until the grant of an order has ended
// and its member has another.
func TestCleanupThatComesLateLeavesTheNextGrantAlone(t *testing.T) {
	t.Parallel()
	c := openCounter(t, func(*room.Settings) {})
	till := c.till(nil)
	old := c.grant("ann")
	first := <-c.place(till, c.request(old))
	require.NoError(t, first.err)
	c.pass(c.life.Rules.TokenTTL)
	require.Equal(t, queue.OutcomeExpired, c.standing("ann").Outcome, "the first grant has not ended: this test shows nothing")
	next := c.grant("ann")
	require.NotEqual(t, old.ID, next.ID)
	before := c.standing("ann")
	require.Equal(t, queue.Ready, before.Status)
	tally.Faults(1)
	c.relay()

	require.Equal(t, before, c.standing("ann"), "I15: an event of the old grant has touched the new one")
	second := <-c.place(till, c.request(next))
	require.NoError(t, second.err)
	require.NotEqual(t, first.ID, second.ID)
	c.relay()
	require.Equal(t, second.ID, c.standing("ann").OrderID)
	require.Equal(t, 2, c.orders())
	c.judge()
}

// The same, and the member has not come back: then the outcome is mended.
func TestCleanupThatComesLateTellsTheOrderOfAnExpiredGrant(t *testing.T) {
	t.Parallel()
	c := openCounter(t, func(*room.Settings) {})
	first := <-c.place(c.till(nil), c.request(c.grant("ann")))
	require.NoError(t, first.err)
	c.pass(c.life.Rules.TokenTTL)
	require.Equal(t, queue.OutcomeExpired, c.standing("ann").Outcome)
	c.relay()
	st := c.standing("ann")
	require.Equal(t, queue.Consumed, st.Status)
	require.Equal(t, first.ID, st.OrderID)
	c.judge()
}

// stopped is a process that stands still between its claim and its INSERT.
type stopped struct {
	order.Store
	reached, resume chan struct{}
}

func (s stopped) Create(ctx context.Context, o order.Order) (order.Order, error) {
	close(s.reached)
	<-s.resume
	return s.Store.Create(ctx, o)
}

// A process stands still between claim and INSERT until the token has expired
// and its client was told elsewhere that there is no order. Then it goes on.
func TestTransactionThatComesAfterARefusalMeetsTheVoid(t *testing.T) {
	t.Parallel()
	c := openCounter(t, func(*room.Settings) {})
	r := c.request(c.grant("ann"))
	s := stopped{reached: make(chan struct{}), resume: make(chan struct{})}
	late := c.place(c.till(func(store order.Store) order.Store { s.Store = store; return s }), r)
	<-s.reached
	c.pass(c.life.Rules.TokenTTL + time.Second)
	require.Equal(t, queue.OutcomeExpired, c.standing("ann").Outcome)
	elsewhere := c.till(nil)
	for range 2 {
		require.ErrorIs(t, (<-c.place(elsewhere, r)).err, order.ErrTokenInvalid)
	}
	tally.Faults(1)
	close(s.resume)
	require.ErrorIs(t, (<-late).err, order.ErrTokenInvalid, "a token that was refused has paid")
	require.Zero(t, c.orders())
	require.Equal(t, 1, sqlValue[int](c.shop, "SELECT count(*) FROM orders WHERE void"))
	require.Equal(t, 100_000, sqlValue[int](c.shop, "SELECT stock FROM products"))
	c.judge()
}
