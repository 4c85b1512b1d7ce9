package pgstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/outbox"
)

func TestOrderStockAndEventAreCommittedTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := grantOf("ann")
	r := of(g, "b", "a", "b")
	r.IdempotencyKey, r.Once = "k", true
	placed := f.must(r)

	require.False(t, placed.Replayed)
	require.Equal(t, int64(140), placed.TotalCents)
	require.Equal(t, "USD", placed.Currency)
	require.Equal(t, []order.Item{{SKU: "a", Quantity: 1}, {SKU: "b", Quantity: 2}}, placed.Items)
	require.False(t, placed.CreatedAt.IsZero())
	require.Equal(t, uuid.Version(7), uuid.MustParse(placed.ID).Version())

	byID, err := f.store.ByID(t.Context(), placed.ID)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(placed.Order, byID), "what is answered is what is kept")
	byGrant, err := f.store.ByGrant(t.Context(), g.ID)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(byID, byGrant))

	require.Equal(t, []int{999, 998, 1000}, []int{f.stock("a"), f.stock("b"), f.stock("c")})
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox WHERE order_id = $1 AND kind = 'consume' AND room = 'r'
		AND payload = jsonb_build_object('member', 'ann', 'grant', $2::text)`, placed.ID, g.ID))
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox`))
	require.Len(t, f.poked, 1, "the relay of this process is woken")
	require.Empty(t, f.grants.releases(), "the event spends the grant")
}

// I14, O12: after a definite failure the grant is free again.
func TestFailedOrderLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		skus []string
		want error
	}{
		{"sold out", []string{"a", "short"}, order.SoldOutError{SKU: "short"}},
		{"unknown product", []string{"a", "nothing"}, order.UnknownProductError{SKU: "nothing"}},
		{"only unknown products", []string{"nothing"}, order.UnknownProductError{SKU: "nothing"}},
		{"mixed currency", []string{"a", "euro"}, order.ErrMixedCurrency},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.exec(`INSERT INTO products VALUES ('short', 0, 1, 'USD')`)
			g := grantOf("ann")
			_, err := f.orders.Place(t.Context(), of(g, tc.skus...))
			require.ErrorIs(t, err, tc.want)
			require.Equal(t, []string{g.ID}, f.grants.releases())
			require.Zero(t, f.count(`SELECT count(*) FROM orders`))
			require.Zero(t, f.count(`SELECT count(*) FROM outbox`))
			require.Equal(t, 1000, f.stock("a"))
			require.Empty(t, f.poked)

			f.must(of(g, "a"))
		})
	}
}

// I1, I4: a retry finds the order whatever Redis says of the grant.
func TestRetryWithTheSameTokenIsTheSameOrder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		redo func(*grants, order.Request)
	}{
		{"claim still held", func(*grants, order.Request) {}},
		{"grant spent", func(g *grants, r order.Request) { g.end(r.Grant) }},
		{"spending lost, READY again", func(g *grants, r order.Request) { g.lapse(r.Grant) }}, // O5
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := of(grantOf("ann"), "a", "b")
			r.IdempotencyKey = "k"
			first := f.must(r)
			tc.redo(f.grants, r)

			again := f.must(of(r.Grant, "b", "a"))
			require.True(t, again.Replayed)
			require.Empty(t, cmp.Diff(first.Order, again.Order))

			tc.redo(f.grants, r)
			_, err := f.orders.Place(t.Context(), of(r.Grant, "a"))
			require.ErrorIs(t, err, order.ErrTokenSpent)

			tc.redo(f.grants, r)
			other := of(r.Grant, "a")
			other.IdempotencyKey = "k"
			_, err = f.orders.Place(t.Context(), other)
			require.ErrorIs(t, err, order.ErrIdempotencyMismatch)

			require.Equal(t, 1, f.orderCount())
			require.Equal(t, 999, f.stock("a"))
			require.Empty(t, f.grants.releases(), "a spent grant is not given back")
			require.Len(t, f.poked, 1)
		})
	}
}

// I5, across grants. Case 67, paveg/hono-idempotency#126 and nensii21/devlink#773:
// the key of another member is another key.
func TestIdempotencyKeyIsOneOrderAcrossGrants(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	request := func(member, sku string) order.Request {
		r := of(grantOf(member), sku)
		r.IdempotencyKey = "k"
		return r
	}
	first := f.must(request("ann", "a"))

	retry := request("ann", "a")
	again := f.must(retry)
	require.True(t, again.Replayed)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, []string{retry.Grant.ID}, f.grants.releases(), "the new grant has not been used")

	other := request("ann", "b")
	_, err := f.orders.Place(t.Context(), other)
	require.ErrorIs(t, err, order.ErrIdempotencyMismatch)
	require.Equal(t, []string{retry.Grant.ID, other.Grant.ID}, f.grants.releases())
	require.Equal(t, 1, f.orderCount())
	require.Equal(t, 1000, f.stock("b"))

	bobs := f.must(request("bob", "a"))
	require.False(t, bobs.Replayed)
	require.NotEqual(t, first.ID, bobs.ID)
	require.Equal(t, "bob", bobs.Member)
	without := f.must(of(grantOf("ann"), "a"))
	require.False(t, without.Replayed)
}

// Case 65, idempot-dev/idempot-js#186.
func TestKeyRaceHasOneWinnerAndNoServerError(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var requests []order.Request
	for range 20 {
		r := of(grantOf("ann"), "a")
		r.IdempotencyKey = "k"
		requests = append(requests, r)
	}
	ids, fresh := map[string]bool{}, 0
	for _, a := range f.all(requests) {
		require.NoError(t, a.err)
		ids[a.ID] = true
		if !a.Replayed {
			fresh++
		}
	}
	require.Len(t, ids, 1)
	require.Equal(t, 1, fresh)
	require.Equal(t, 999, f.stock("a"))
	require.Len(t, f.grants.releases(), 19)
}

// I2.
func TestOneOrderPerMemberAndSaleWhereTheRoomSaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	once := func(member string) order.Request {
		r := of(grantOf(member), "a")
		r.Once = true
		return r
	}
	// A void row of the member is no order.
	lost := grantOf("ann")
	f.grants.end(lost)
	_, err := f.orders.Place(t.Context(), of(lost, "a"))
	require.ErrorIs(t, err, order.ErrTokenInvalid)

	var requests []order.Request
	for range 20 {
		requests = append(requests, once("ann"))
	}
	got := tally(f.all(requests), order.ErrAlreadyOrdered)
	require.Equal(t, map[error]int{nil: 1, order.ErrAlreadyOrdered: 19}, got)
	require.Equal(t, 1, f.orderCount())
	require.Len(t, f.grants.releases(), 19)

	f.must(once("bob"))
	next := once("ann")
	next.Grant.Sale++
	f.must(next)
}

func TestKeyAnswersBeforeTheRuleOfOneOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := of(grantOf("ann"), "a")
	r.Once, r.IdempotencyKey = true, "k"
	first := f.must(r)
	r.Grant = grantOf("ann")
	again := f.must(r)
	require.True(t, again.Replayed)
	require.Equal(t, first.ID, again.ID)

	r.Grant, r.IdempotencyKey = grantOf("ann"), "another"
	_, err := f.orders.Place(t.Context(), r)
	require.ErrorIs(t, err, order.ErrAlreadyOrdered)
}

func TestWhatIsNoOrderIsNotFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, id := range []string{uuid.NewString(), "", "no uuid"} {
		_, err := f.store.ByID(t.Context(), id)
		require.ErrorIs(t, err, order.ErrNotFound)
		_, err = f.store.ByGrant(t.Context(), id)
		require.ErrorIs(t, err, order.ErrNotFound)
	}
	g := grantOf("ann")
	_, err := f.store.Void(t.Context(), g)
	require.ErrorIs(t, err, order.ErrTokenInvalid)
	_, err = f.store.ByGrant(t.Context(), g.ID)
	require.ErrorIs(t, err, order.ErrTokenInvalid)
	var id string
	require.NoError(t, f.db.QueryRow(t.Context(), `SELECT id::text FROM orders WHERE void AND grant_id = $1 AND member = 'ann'
		AND room = 'r' AND sale = 3 AND generation = 7`, g.ID).Scan(&id))
	_, err = f.store.ByID(t.Context(), id)
	require.True(t, errors.Is(err, order.ErrNotFound), "a void row is no order: %v", err)
}

// I16: from the order to the sink, with what the sink needs to spend the grant.
func TestRelaySpendsTheGrantOfAnOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := grantOf("ann")
	placed := f.must(of(g, "a"))
	got := make(chan outbox.Event, 10)
	relay := outbox.NewRelay(f.db, sinkFunc(func(events []outbox.Event) {
		for _, e := range events {
			got <- e
		}
	}), outbox.Options{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	e := <-got
	stop()
	require.NoError(t, <-ended)
	require.Equal(t, placed.ID, e.OrderID)
	require.Equal(t, "r", e.Room)
	c, err := e.Consume()
	require.NoError(t, err)
	require.Equal(t, outbox.Consume{Member: "ann", Grant: g.ID}, c)
	require.Empty(t, got)
}

type sinkFunc func([]outbox.Event)

func (f sinkFunc) Deliver(_ context.Context, _ string, events []outbox.Event) error {
	f(events)
	return nil
}
