package history

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// The final state is read from a room that the product has filled.
func TestTheFinalStateIsWhatTheProductHasLeft(t *testing.T) {
	t.Parallel()
	ctx, rdb, db := t.Context(), harness.Redis(t), harness.Database(t)
	prefix, clock := uuid.NewString(), time.UnixMicro(1_764_500_000_123_457)
	store := redisstore.New(rdb, prefix, redisstore.WithClock(func() time.Time { return clock }))
	empty, err := ReadFinal(ctx, rdb, db, prefix, "r")
	require.NoError(t, err)
	require.False(t, empty.Redis.Begun)
	require.True(t, empty.Settled())

	life := queue.Life{Room: "r", Generation: 7, Sale: 3, RestorableFrom: 7, Version: 1, Settings: []byte(`{}`), Floors: make([]int64, 4),
		Rules: queue.Rules{Batch: 2, Interval: time.Second, TokenTTL: time.Minute, PickupTTL: time.Minute, ClaimLease: time.Minute,
			ProcessingTimeout: time.Minute, AwayAfter: time.Minute, ForgetAfter: time.Minute, DoneTTL: time.Minute, MaxWaiting: 9, Weights: []int{1}}}
	require.NoError(t, store.Create(ctx, life))
	for _, m := range []string{"ann", "bob", "cy", "dan"} {
		_, err := store.Enter(ctx, "r", m, 0)
		require.NoError(t, err)
	}
	step := queue.Step{Generation: 7, Term: 1, Leader: "a", Seq: 1}
	taken, err := store.Reserve(ctx, "r", step, queue.Take{Keep: 1, Effective: 2, Max: 2})
	require.NoError(t, err)
	id := uuid.NewString()
	_, err = store.Issue(ctx, "r", step, []queue.Decision{{Member: taken.Taken[0].Member, Grant: id}})
	require.NoError(t, err)
	left, err := store.Leave(ctx, "r", "dan", 0, queue.OutcomeLeft)
	require.NoError(t, err)
	require.True(t, left)
	_, err = db.Exec(ctx, `INSERT INTO products (sku, stock, price_cents, currency) VALUES ('s', 5, 100, 'EUR'); INSERT INTO rooms (name, settings) VALUES ('r', '{}');
		INSERT INTO room_progress VALUES ('r', '{5,0,0,0}', 9); INSERT INTO room_exclusions VALUES ('r', 'eve', 'blocked', 0)`)
	require.NoError(t, err)
	g := queue.Grant{ID: id, Room: "r", Member: "ann", Sale: 3, Generation: 7}
	service := order.New(store, pgstore.New(db, pgstore.Options{}), order.Options{})
	placed, err := service.Place(ctx, order.Request{Grant: g, Items: []order.Item{{SKU: "s", Quantity: 2}}, IdempotencyKey: "k", Lease: time.Minute})
	require.NoError(t, err)
	stray := uuid.NewString()
	_, err = service.Place(ctx, order.Request{Grant: queue.Grant{ID: stray, Room: "r", Member: "bob", Sale: 3, Generation: 7},
		Items: []order.Item{{SKU: "s", Quantity: 1}}, Lease: time.Minute})
	require.ErrorIs(t, err, order.ErrTokenInvalid)

	f, err := ReadFinal(ctx, rdb, db, prefix, "r")
	require.NoError(t, err)
	now := clock.UnixMicro()
	require.True(t, f.Redis.Begun)
	require.EqualValues(t, 7, f.Redis.Generation)
	require.Equal(t, "2", f.Redis.Conf["batch"])
	require.Equal(t, now+3, f.Redis.State.Last)
	require.EqualValues(t, 4, f.Redis.Stats["entered"])
	at := func(i int64) Place { return Place{0, now + i} }
	require.Equal(t, map[string]Member{
		"ann": {Claimed: now + time.Minute.Microseconds(), Grant: &Grant{ID: id, Place: at(0), Issued: now, Expiry: now + time.Minute.Microseconds(), Picked: true, Claim: placed.ID}},
		"bob": {Processing: now + time.Minute.Microseconds(), Held: &Hold{at(1), "1:a:1"}},
		"cy":  {Lanes: []int{0}, Score: now + 2},
		"dan": {Done: now, Outcome: &Outcome{"LEFT", "", ""}},
	}, f.Redis.Members)
	require.Len(t, f.Orders, 2)
	for _, o := range f.Orders {
		if o.Void {
			require.Equal(t, stray, o.Grant)
			continue
		}
		o.CreatedAt = time.Time{}
		require.Equal(t, OrderRow{ID: placed.ID, Grant: id, Room: "r", Member: "ann", Sale: 3, Generation: 7, Key: "k", Content: "2xs", Items: []Item{{"s", 2}}}, o)
	}
	require.Len(t, f.Outbox, 1)
	e := f.Outbox[0]
	require.Equal(t, OutboxRow{ID: e.ID, Order: placed.ID, Kind: "consume", Status: "pending", Member: "ann", Grant: id}, e)
	require.Equal(t, Progress{[]int64{5, 0, 0, 0}, 9}, f.Progress)
	require.Equal(t, []Product{{"s", 3}}, f.Products)
	require.Equal(t, []Exclusion{{"eve", "blocked", 0}}, f.Exclusions)
	require.False(t, f.Settled())
}

func TestSettledMeansThatNothingIsLeftToEnd(t *testing.T) {
	t.Parallel()
	over := func() Final {
		return Final{Redis: Dump{Members: map[string]Member{"ann": {Done: 5, Outcome: &Outcome{"LEFT", "", ""}}}}, Outbox: []OutboxRow{{Status: "done"}, {Status: "dead"}}}
	}
	require.True(t, over().Settled())
	for name, m := range map[string]Member{"bob": {Lanes: []int{0}, Score: 1}, "cy": {Away: 1}, "dan": {Processing: 1}, "eve": {Ready: 1}, "fay": {Claimed: 1}} {
		f := over()
		f.Redis.Members[name] = m
		require.False(t, f.Settled(), name)
	}
	f := over()
	f.Outbox[1].Status = "pending"
	require.False(t, f.Settled())
}

func TestAHistoryIsReadAsItWasKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	wholeWay(s)
	s.enter("eve")
	s.lose(len(s.steps)-1, true)
	s.reap(map[string]Member{})
	s.last().Reply = []any{"OK", "n", int64(5), "list", []any{"a", int64(1)}, "none", []any{}}
	h := s.history()
	dir := t.TempDir() + "/kept"
	require.NoError(t, h.Write(dir))
	got, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, h.Events, got.Events)
	require.Equal(t, h.Facts, got.Facts)
	require.Equal(t, h.Room, got.Room)
	require.Equal(t, h.Journal[1].Steps[len(h.Journal[1].Steps)-1], got.Journal[1].Steps[len(got.Journal[1].Steps)-1])
	require.Equal(t, h.Journal, got.Journal)
	require.Equal(t, Examine(h), Examine(got))
	_, err = Read(t.TempDir())
	require.Error(t, err)
}
