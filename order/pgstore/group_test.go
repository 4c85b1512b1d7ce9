package pgstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// groupsAtOnce is how many transactions of orders a store runs at a time.
const groupsAtOnce = 2

// gather places the requests as one group, in this order, and returns once it is
// let go: they have waited in line while two orders before them, who find it sold
// out, waited for a product that the test held.
func (f *fixture) gather(ctx context.Context, requests ...order.Request) []<-chan answered {
	f.t.Helper()
	f.exec(`INSERT INTO products VALUES ('door', 1, 1, 'USD')`)
	let := f.keep(`UPDATE products SET stock = 0 WHERE sku = 'door'`)
	var before []<-chan answered
	for n := range groupsAtOnce {
		before = append(before, f.place(of(grantOf("before"), "door")))
		f.waiting(n + 1)
	}
	waits := make([]<-chan answered, len(requests))
	for i, r := range requests {
		waits[i] = f.placeUntil(ctx, r)
		f.inLine(i + 1)
	}
	let()
	for _, w := range before {
		require.Error(f.t, (<-w).err)
	}
	return waits
}

// together is what has become of a group.
func (f *fixture) together(requests ...order.Request) (got []answered) {
	f.t.Helper()
	for _, w := range f.gather(f.t.Context(), requests...) {
		got = append(got, <-w)
	}
	return got
}

// inLine waits until so many wait for a transaction.
func (f *fixture) inLine(n int) {
	f.t.Helper()
	harness.Eventually(f.t, 10*time.Second, "orders wait in line", func() bool { return f.store.InLine() == n })
}

// transactions counts those that have written the orders of these members.
func (f *fixture) transactions(members ...string) int {
	f.t.Helper()
	return f.count(`SELECT count(DISTINCT xmin::text) FROM orders WHERE member = ANY ($1)`, members)
}

func many(n int, skus ...string) (requests []order.Request, members []string) {
	for i := range n {
		m := fmt.Sprint("m", i)
		requests, members = append(requests, of(grantOf(m), skus...)), append(members, m)
	}
	return requests, members
}

func TestOrdersThatAreReadyTogetherShareATransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	requests, members := many(40, "a", "b")
	for i, a := range f.together(requests...) {
		require.NoError(t, a.err)
		require.False(t, a.Replayed)
		require.EqualValues(t, 120, a.TotalCents)
		require.Equal(t, "USD", a.Currency)
		require.Equal(t, requests[i].Grant.ID, a.Grant)
		kept, err := f.store.ByID(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, a.Order, kept)
	}
	require.Equal(t, 1, f.transactions(members...))
	require.Equal(t, 1000-40, f.stock("a"))
	require.Equal(t, 1000-40, f.stock("b"))
	require.Equal(t, 40, f.count(`SELECT count(*) FROM outbox x JOIN orders o ON o.id = x.order_id
		WHERE o.member = ANY ($1) AND x.payload = jsonb_build_object('member', o.member, 'grant', o.grant_id) AND x.kind = 'consume'`, members))
	require.NotEmpty(t, f.poked)
}

func TestNoMoreThanAGroupHoldsShareATransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	requests, members := many(65, "a")
	for _, a := range f.together(requests...) {
		require.NoError(t, a.err)
	}
	require.Equal(t, 2, f.transactions(members...))
	require.Equal(t, 1, f.transactions(members[:64]...))
}

func TestInAGroupEachOrderFailsForItself(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	f.exec(`INSERT INTO products VALUES ('gone', 0, 1, 'USD')`)
	once := func(r order.Request) order.Request { r.Once = true; return r }
	keyed := func(r order.Request, key string) order.Request { r.IdempotencyKey = key; return r }
	placedBefore, void := of(grantOf("ann"), "a"), of(grantOf("bob"), "a")
	first := f.must(placedBefore)
	_, err := f.store.Void(t.Context(), void.Grant)
	require.ErrorIs(t, err, order.ErrTokenInvalid)
	f.grants.open = true // of two attempts with one grant both come as far as Postgres

	twice := of(grantOf("cat"), "a")
	got := f.together(
		of(grantOf("dan"), "a"),
		placedBefore,
		void,
		of(grantOf("eve"), "gone"),
		of(grantOf("fay"), "a", "nothing"),
		of(grantOf("gus"), "a", "euro"),
		twice, twice,
		once(of(grantOf("hal"), "a")), once(of(grantOf("hal"), "a")),
		keyed(of(grantOf("ida"), "a"), "k"), keyed(of(grantOf("ida"), "a"), "k"),
		of(grantOf("joe"), "a"),
	)
	for i, want := range []error{
		nil, nil, order.ErrTokenInvalid, order.ErrSoldOut, order.ErrUnknownProduct, order.ErrMixedCurrency,
		nil, nil, nil, order.ErrAlreadyOrdered, nil, nil, nil,
	} {
		require.ErrorIs(t, got[i].err, want, "%d", i)
	}
	require.Equal(t, first.ID, got[1].ID)
	require.Equal(t, got[6].ID, got[7].ID)
	require.Equal(t, got[10].ID, got[11].ID)
	require.Equal(t, 1, f.transactions("dan", "joe"), "those who can are placed together")
	// ann, dan, cat, hal, ida, joe
	require.Equal(t, 1000-6, f.stock("a"))
	require.Equal(t, 6, f.count(`SELECT count(*) FROM orders WHERE NOT void AND member <> 'before'`))
	require.Equal(t, 6, f.count(`SELECT count(*) FROM outbox x JOIN orders o ON o.id = x.order_id WHERE o.member <> 'before'`))
}

func TestStockOfAGroupGoesToWhoCameFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	f.exec(`UPDATE products SET stock = 5 WHERE sku = 'a'`)
	requests, members := many(8, "b", "a")
	requests[3].Items[1].Quantity = 3 // three are left after three others
	got := f.together(requests...)
	for i, want := range []error{nil, nil, nil, order.ErrSoldOut, nil, nil, order.ErrSoldOut, order.ErrSoldOut} {
		require.ErrorIs(t, got[i].err, want, "%d", i)
	}
	require.Zero(t, f.stock("a"))
	require.Equal(t, 1000-5, f.stock("b"), "who is refused takes nothing")
	require.Equal(t, 1, f.transactions(members...))
	require.Len(t, f.grants.releases(), 3+groupsAtOnce)
}

// O7: of a COMMIT whose answer is lost nobody in the group knows what became of
// it, and no claim is released. The retry finds the order, or makes it.
func TestAnUnknownCommitIsUnknownForEachOfItsGroup(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"not committed": false, "committed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{}
			f := newFixture(t, patient, w.configure)
			f.exec(`UPDATE products SET stock = 5 WHERE sku = 'a'`)
			requests, _ := many(6, "a")
			// Those before the group commit nothing.
			w.arm(fault{trigger: "m3", intact: true, before: func() { w.arm(fault{trigger: sentCommit, forward: committed}) }})
			got := f.together(requests...)
			for _, a := range got[:5] {
				require.ErrorIs(t, a.err, order.ErrOutcomeUnknown)
			}
			if committed {
				require.ErrorIs(t, got[5].err, order.ErrSoldOut)
			} else {
				require.NoError(t, got[5].err, "what the others have not taken is not sold out")
			}
			for _, r := range requests[:4] { // four pieces are left, or their own
				require.NotContains(t, f.grants.releases(), r.Grant.ID)
				f.grants.lapse(r.Grant)
				require.Equal(t, committed, f.must(r).Replayed)
			}
			require.Equal(t, 5, f.orderCount())
			require.Zero(t, f.stock("a"))
		})
	}
}

func TestAGroupThatIsAbortedIsTriedOneByOne(t *testing.T) {
	t.Parallel()
	w := &wire{}
	f := newFixture(t, patient, w.configure)
	requests, members := many(5, "a")
	w.arm(fault{trigger: "m3", intact: true, before: func() { w.arm(fault{trigger: sentCommit, refuse: true}) }})
	for _, a := range f.together(requests...) {
		require.NoError(t, a.err)
	}
	require.Equal(t, 5, f.transactions(members...))
	require.Equal(t, 1000-5, f.stock("a"))
}

func TestWhoIsBlockedInAGroupHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, setting("lock_timeout", "3000"))
	requests, members := many(5, "a")
	f.keep(`INSERT INTO orders (id, grant_id, room, sale, generation, member) VALUES (gen_random_uuid(), $1, 'r', 3, 7, 'm2')`,
		requests[2].Grant.ID)
	for i, a := range f.together(requests...) {
		if i == 2 {
			require.ErrorIs(t, a.err, order.ErrInProgress)
		} else {
			require.NoError(t, a.err)
		}
	}
	require.Equal(t, 4, f.count(`SELECT count(*) FROM orders WHERE member = ANY ($1)`, members))
	require.Equal(t, 1000-4, f.stock("a"))
}

func TestWhoHangsUpInLineIsNotWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	ctx, hangUp := context.WithCancel(t.Context())
	let := f.hold("a")
	var before []<-chan answered
	for n := range groupsAtOnce {
		before = append(before, f.place(of(grantOf("ann"), "a")))
		f.waiting(n + 1)
	}
	last := f.placeUntil(ctx, of(grantOf("cat"), "a"))
	f.inLine(1)
	hangUp()
	require.ErrorIs(t, (<-last).err, order.ErrUnavailable)
	require.Zero(t, f.store.InLine())
	require.Len(t, f.grants.releases(), 1)
	let()
	for _, w := range before {
		require.NoError(t, (<-w).err)
	}
	require.Equal(t, 2, f.orderCount())
}

func TestAGroupIsCommittedWhoeverHangsUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	requests, members := many(5, "a")
	ctx, hangUp := context.WithCancel(t.Context())
	let := f.hold("a")
	waits := f.gather(ctx, requests...)
	f.waiting(1)
	hangUp()
	let()
	for _, w := range waits {
		require.NoError(t, (<-w).err, "its outcome is known")
	}
	require.Equal(t, 1, f.transactions(members...))
}

func TestAGroupLastsNoLongerThanTheFirstDeadlineInIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	f.hold("a")
	let := f.hold("b")
	for n := range groupsAtOnce {
		f.place(of(grantOf("before"), "b"))
		f.waiting(n + 1)
	}
	begin := func(within time.Duration, member string) <-chan error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		ended := make(chan error, 1)
		go func() {
			defer cancel()
			_, err := f.store.Create(ctx, order.Order{ID: uuid.NewString(), Grant: uuid.NewString(), Room: "r", Member: member,
				Items: []order.Item{{SKU: "a", Quantity: 1}}})
			ended <- err
		}()
		return ended
	}
	begin(time.Minute, "ann")
	f.inLine(1)
	hurried := begin(2*time.Second, "bob")
	f.inLine(2)
	let()
	select {
	case err := <-hurried:
		require.ErrorIs(t, err, order.ErrUnavailable)
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for as long as the product is held")
	}
}

func TestASlowGroupHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	f.store = pgstore.New(f.pool(patient), pgstore.Options{})
	f.orders = order.New(f.grants, f.store, order.Options{})
	f.hold("a")
	for n := range groupsAtOnce {
		f.place(of(grantOf("before"), "a"))
		f.waiting(n + 1)
	}
	require.NoError(t, (<-f.place(of(grantOf("ann"), "b"))).err, "while all who could commit it wait for a product")
}

func TestNothingIsSharedWhereEachOrderIsSlow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient, size(8))
	hinder := func(seconds string) {
		f.exec(`CREATE OR REPLACE FUNCTION hinder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(` + seconds + `); RETURN NEW; END $$;
			CREATE OR REPLACE TRIGGER hinder BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION hinder()`)
	}
	shared := func() int { // transactions of six orders
		requests, members := many(6, "a")
		for i := range requests {
			members[i] = uuid.NewString()
			requests[i].Grant.Member = members[i]
		}
		for _, a := range f.all(requests) {
			require.NoError(t, a.err)
		}
		return f.transactions(members...)
	}
	hinder("0.3")
	require.Less(t, shared(), 6, "nobody knows yet")
	begun := time.Now()
	require.Equal(t, 6, shared(), "each in its own")
	require.Less(t, time.Since(begun), 6*300*time.Millisecond, "side by side")
	hinder("0")
	for shared() == 6 {
		require.NoError(t, t.Context().Err())
	}
}

func TestTermsAreLookedAtThoughOthersAreReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	let := f.hold("a")
	for n := range groupsAtOnce {
		f.place(of(grantOf("before"), "a"))
		f.waiting(n + 1)
	}
	good := f.place(of(grantOf("ann"), "b"))
	f.inLine(1)
	over := of(grantOf("bob"), "b")
	over.Unclaimed, over.Grant.Expiry = true, time.Now().Add(-time.Minute)
	lapsed := f.place(over)
	harness.Eventually(t, 10*time.Second, "it is answered, or in line", func() bool { return len(lapsed) == 1 || f.store.InLine() == 2 })
	let()
	require.ErrorIs(t, (<-lapsed).err, order.ErrTokenInvalid)
	require.NoError(t, (<-good).err)
	require.Equal(t, 999, f.stock("b"))
}

func TestAPanicLeavesTheOutcomeOpenForEachOfItsGroup(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	f.store = pgstore.New(f.pool(patient), pgstore.Options{Committed: func() { panic("told") }, Patience: time.Minute})
	f.orders = order.New(f.grants, f.store, order.Options{})
	requests, _ := many(3, "a")
	n := tally(f.together(requests...), errPanic, order.ErrOutcomeUnknown)
	require.Equal(t, map[error]int{errPanic: 1, order.ErrOutcomeUnknown: 2}, n)
	require.Equal(t, 3, f.orderCount())
	require.ErrorIs(t, (<-f.place(of(grantOf("bob"), "a"))).err, errPanic, "the slot is free again")
}

func TestAnOrderOfAGroupHasThePricesOfTheMomentItIsPlaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	requests, _ := many(3, "a", "b")
	requests[1] = of(requests[1].Grant, "b")
	let := f.keep(`UPDATE products SET price_cents = 150 WHERE sku = 'a'`)
	waits := f.gather(t.Context(), requests...)
	f.waiting(1)
	let()
	for i, cents := range []int64{170, 20, 170} {
		a := <-waits[i]
		require.NoError(t, a.err)
		require.Equal(t, cents, a.TotalCents)
	}
	require.Equal(t, 998, f.stock("a"))
}

// Postgres sorts text by the language of the database, and takeStock by bytes: a
// group that locked products in another order would deadlock with a single order.
func TestAGroupLocksProductsInTheOrderOfASingleOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, patient)
	f.exec(`ALTER TABLE products ALTER COLUMN sku TYPE text COLLATE "und-x-icu"`)
	f.exec(`INSERT INTO products VALUES ('Z', 1000, 1, 'USD')`)
	requests, _ := many(3, "a", "Z")
	let := f.hold("Z")
	waits := f.gather(t.Context(), requests...)
	f.waiting(1)
	f.exec(`SELECT FROM products WHERE sku = 'a' FOR UPDATE NOWAIT`) // it is not locked yet
	let()
	for _, w := range waits {
		require.NoError(t, (<-w).err)
	}
}
