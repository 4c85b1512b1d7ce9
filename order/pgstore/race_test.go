package pgstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/order/pgstore"
)

// patient lets transactions wait for as long as a busy test machine needs.
func patient(c *pgxpool.Config) {
	setting("lock_timeout", "60000")(c)
	setting("statement_timeout", "60000")(c)
}

// hold locks the row of a product until the function returned is called. Stock
// taken in between is taken from what the row says then.
func (f *fixture) hold(sku string) (let func()) {
	f.t.Helper()
	return f.keep(`SELECT FROM products WHERE sku = $1 FOR UPDATE`, sku)
}

// keep runs a statement in a transaction that is open until let is called.
func (f *fixture) keep(sql string, args ...any) (let func()) {
	f.t.Helper()
	ctx := context.WithoutCancel(f.t.Context())
	tx, err := f.db.Begin(ctx)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = tx.Rollback(ctx) })
	_, err = tx.Exec(ctx, sql, args...)
	require.NoError(f.t, err)
	return func() { require.NoError(f.t, tx.Commit(ctx)) }
}

// O4, case 50, OptimalBits/bull#308 and taskforcesh/bullmq#3183: a lease too short
// makes a second attempt, not a second order.
func TestTwoAttemptsWithOneGrantAreOneOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	let := f.hold("a")
	r := of(grantOf("ann"), "a")
	first := f.place(r)
	f.waiting(1)
	f.grants.lapse(r.Grant)
	second := f.place(r)
	f.waiting(2) // the second one at the unique index of the first one's row
	let()

	one, two := <-first, <-second
	require.NoError(t, one.err)
	require.NoError(t, two.err)
	require.Equal(t, one.ID, two.ID)
	require.False(t, one.Replayed)
	require.True(t, two.Replayed)
	require.Equal(t, 1, f.orderCount())
	require.Equal(t, 999, f.stock("a"))
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox`))
}

// "There is no order" is decided by what decides orders.
func TestLateTransactionMeetsTheVoidAndFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := of(grantOf("ann"), "a")
	paused, resume := make(chan struct{}), make(chan struct{})
	slow := order.New(f.grants, pausing{f.store, paused, resume}, order.Options{})
	late := make(chan error, 1)
	go func() {
		_, err := slow.Place(t.Context(), r)
		late <- err
	}()
	<-paused // between its claim and its INSERT
	f.grants.end(r.Grant)
	_, err := f.orders.Place(t.Context(), r)
	require.ErrorIs(t, err, order.ErrTokenInvalid)
	_, err = f.orders.Place(t.Context(), r)
	require.ErrorIs(t, err, order.ErrTokenInvalid)
	close(resume)

	require.ErrorIs(t, <-late, order.ErrTokenInvalid)
	require.Zero(t, f.orderCount())
	require.Equal(t, 1, f.count(`SELECT count(*) FROM orders`))
	require.Equal(t, 1000, f.stock("a"))
	require.Empty(t, f.grants.releases())
}

// pausing is a process that stops between claim and INSERT.
type pausing struct {
	order.Store
	paused, resume chan struct{}
}

func (p pausing) Create(ctx context.Context, o order.Order) (order.Order, error) {
	close(p.paused)
	<-p.resume
	return p.Store.Create(ctx, o)
}

func TestVoidWaitsForAnOpenTransactionAndFindsItsOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	let := f.hold("a")
	r := of(grantOf("ann"), "a")
	first := f.place(r)
	f.waiting(1)
	f.grants.end(r.Grant)
	second := f.place(r)
	f.waiting(2)
	let()
	one, two := <-first, <-second
	require.NoError(t, one.err)
	require.NoError(t, two.err)
	require.Equal(t, one.ID, two.ID)
	require.True(t, two.Replayed)
}

func TestVoidThatCantBeDecidedIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	impatient := order.New(f.grants, f.quick(), order.Options{})
	let := f.hold("a")
	r := of(grantOf("ann"), "a")
	first := f.place(r)
	f.waiting(1)
	f.grants.end(r.Grant)
	_, err := impatient.Place(t.Context(), r)
	require.ErrorIs(t, err, order.ErrOutcomeUnknown)
	let()
	require.NoError(t, (<-first).err)
}

// Fact 14: who waits at the unique index lets go after lock_timeout.
func TestAttemptBehindAnotherIsInProgress(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	let := f.hold("a")
	r := of(grantOf("ann"), "a")
	first := f.place(r)
	f.waiting(1)
	f.grants.lapse(r.Grant)
	_, err := order.New(f.grants, f.quick(), order.Options{}).Place(t.Context(), r)
	require.ErrorIs(t, err, order.ErrInProgress)
	require.Len(t, f.grants.releases(), 1)

	other := of(grantOf("bob"), "a")
	_, err = order.New(f.grants, f.quick(), order.Options{}).Place(t.Context(), other)
	require.ErrorIs(t, err, order.ErrUnavailable, "who waits for stock waits for nobody's order")
	let()
	require.NoError(t, (<-first).err)
}

// O1, O11: many copies of one request.
func TestManyIdenticalAttemptsAreOneOrder(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprintf("claims bypassed=%v", open), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, size(8))
			f.grants.open = open
			r := of(grantOf("ann"), "a")
			requests := make([]order.Request, 500)
			for i := range requests {
				requests[i] = r
			}
			fresh, ids := 0, map[string]bool{}
			for _, a := range f.all(requests) {
				if !open && a.err != nil {
					require.ErrorIs(t, a.err, order.ErrInProgress)
					continue
				}
				require.NoError(t, a.err)
				ids[a.ID] = true
				if !a.Replayed {
					fresh++
				}
			}
			require.Equal(t, 1, fresh)
			require.Len(t, ids, 1)
			require.Equal(t, 1, f.orderCount())
			require.Equal(t, 999, f.stock("a"))
			require.Empty(t, f.grants.releases())
		})
	}
}

// Case 15, SandeepVashishtha/Eventra#5431.
func TestStockIsNeverOversold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`UPDATE products SET stock = 10 WHERE sku = 'a'`)
	var requests []order.Request
	for i := range 200 {
		requests = append(requests, of(grantOf(fmt.Sprintf("m%d", i)), "a"))
	}
	got := tally(f.all(requests), order.ErrSoldOut)
	require.Equal(t, map[error]int{nil: 10, order.ErrSoldOut: 190}, got)
	require.Equal(t, 10, f.orderCount())
	require.Equal(t, 10, f.count(`SELECT count(*) FROM outbox`))
	require.Zero(t, f.stock("a"))
	require.Len(t, f.grants.releases(), 190)
}

// With a deadlock_timeout above lock_timeout a deadlock would show as an error.
func TestOppositeOrdersNeverDeadlock(t *testing.T) {
	t.Parallel()
	f := newFixture(t, setting("deadlock_timeout", "60000"), size(8))
	var requests []order.Request
	for i := range 100 {
		skus := []string{"a", "b", "c"}
		if i%2 == 1 {
			skus = []string{"c", "b", "a"}
		}
		requests = append(requests, of(grantOf(fmt.Sprintf("m%d", i)), skus...))
	}
	require.Equal(t, map[error]int{nil: 100}, tally(f.all(requests)))
	require.Equal(t, []int{900, 900, 900}, []int{f.stock("a"), f.stock("b"), f.stock("c")})
}

// O10.
func TestDeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient, setting("deadlock_timeout", "500"))
	ctx := t.Context()
	tx, err := f.db.Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = tx.Exec(ctx, `SET LOCAL deadlock_timeout = '60s'`) // the order is the one to be chosen
	require.NoError(t, err)
	_, err = tx.Exec(ctx, `UPDATE products SET stock = stock - 1 WHERE sku = 'b'`)
	require.NoError(t, err)
	pending := f.place(of(grantOf("ann"), "a", "b"))
	f.waiting(1)
	_, err = tx.Exec(ctx, `UPDATE products SET stock = stock - 1 WHERE sku = 'a'`)
	require.NoError(t, err, "the order's transaction gave way")
	require.NoError(t, tx.Commit(ctx))

	got := <-pending
	require.NoError(t, got.err)
	require.Equal(t, []int{998, 998}, []int{f.stock("a"), f.stock("b")})
	require.Equal(t, 1, f.orderCount())
	require.Empty(t, f.grants.releases())
}

// O10: where every transaction is stricter than the default.
func TestSerializationFailureIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient, setting("default_transaction_isolation", "repeatable read"))
	let := f.holdAndTake("a")
	pending := f.place(of(grantOf("ann"), "a"))
	f.waiting(1)
	let()
	got := <-pending
	require.NoError(t, got.err)
	require.Equal(t, 998, f.stock("a"))
}

// holdAndTake is hold, and one piece less after it.
func (f *fixture) holdAndTake(sku string) (let func()) {
	f.t.Helper()
	ctx := context.WithoutCancel(f.t.Context())
	tx, err := f.db.Begin(ctx)
	require.NoError(f.t, err)
	_, err = tx.Exec(ctx, `UPDATE products SET stock = stock - 1, price_cents = price_cents + 7 WHERE sku = $1`, sku)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = tx.Rollback(ctx) })
	return func() { require.NoError(f.t, tx.Commit(ctx)) }
}

func TestPriceChangedMeanwhileIsTheNewPrice(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	let := f.holdAndTake("a")
	pending := f.place(of(grantOf("ann"), "a", "b"))
	f.waiting(1)
	let()
	got := <-pending
	require.NoError(t, got.err)
	require.Equal(t, int64(127), got.TotalCents, "100 + 7 + 20")
	kept, err := f.store.ByID(t.Context(), got.ID)
	require.NoError(t, err)
	require.Equal(t, int64(127), kept.TotalCents)
}

func TestTransactionIsTriedThreeTimesAtMost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`CREATE SEQUENCE tries`)
	f.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM nextval('tries'); RAISE 'conflict' USING ERRCODE = '40001'; END $$`)
	f.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON products FOR EACH ROW EXECUTE FUNCTION refuse()`)
	_, err := f.orders.Place(t.Context(), of(grantOf("ann"), "a"))
	require.ErrorIs(t, err, order.ErrUnavailable)
	require.Equal(t, 3, f.count(`SELECT last_value FROM tries`))
	require.Len(t, f.grants.releases(), 1)
	require.Zero(t, f.orderCount())
}

// Case 73, jackc/pgx#2499 and #1144, O18: no call holds one connection while it
// waits for another.
func TestAsManyOrdersAsConnectionsFinish(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ conns, orders int }{{8, 8}, {8, 9}, {1, 9}} {
		t.Run(fmt.Sprintf("%d on %d", tc.orders, tc.conns), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, size(int32(tc.conns)))
			f.exec(`UPDATE products SET stock = 3 WHERE sku = 'a'`) // so that the ways of failing are taken too
			var requests []order.Request
			for i := range tc.orders {
				requests = append(requests, of(grantOf(fmt.Sprintf("m%d", i)), "a"))
			}
			got := tally(f.all(requests), order.ErrSoldOut)
			require.Equal(t, map[error]int{nil: 3, order.ErrSoldOut: tc.orders - 3}, got)
		})
	}
}

// Case 73 as well.
func TestNoConnectionInTimeIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pool := f.pool(size(1))
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	f.orders = order.New(f.grants, pgstore.New(pool, pgstore.Options{AcquireTimeout: 50 * time.Millisecond}), order.Options{})
	g, began := grantOf("ann"), time.Now()
	_, err = f.orders.Place(t.Context(), of(g, "a"))
	require.ErrorIs(t, err, order.ErrUnavailable)
	require.Less(t, time.Since(began), 5*time.Second, "long before the deadline of the attempt")
	require.Equal(t, []string{g.ID}, f.grants.releases())
	conn.Release()
	f.must(of(g, "a"))
}
