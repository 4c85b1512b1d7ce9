package order

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// script stands in for Redis and Postgres where a failure has to be injected;
// package pgstore tests the same paths on a real database.
type script struct {
	claims   []error // answers of Claim, one after the other
	create   func(context.Context, Order) (Order, error)
	found    Order
	foundErr error
	void     error

	claimed  []string
	leases   []time.Duration
	deadline time.Time // as Claim has seen it
	created  int
	voided   int
	released []string
	late     error // state of the context that Release was given
	bounded  bool  // whether Release was given a deadline
}

func (s *script) Claim(ctx context.Context, _ queue.Grant, claim string, lease time.Duration) error {
	s.claimed = append(s.claimed, claim)
	s.leases = append(s.leases, lease)
	s.deadline, _ = ctx.Deadline()
	err := s.claims[0]
	s.claims = s.claims[1:]
	return err
}

func (s *script) Release(ctx context.Context, _ queue.Grant, claim string) error {
	s.released = append(s.released, claim)
	s.late = ctx.Err()
	_, s.bounded = ctx.Deadline()
	return errors.New("release is lost too") // which must not matter to anybody
}

func (s *script) Create(ctx context.Context, o Order) (Order, error) {
	s.created++
	return s.create(ctx, o)
}

func (s *script) ByGrant(context.Context, string) (Order, error) { return s.found, s.foundErr }

func (s *script) Void(context.Context, queue.Grant) (Order, error) {
	s.voided++
	return s.found, s.void
}

func request(items ...Item) Request {
	if items == nil {
		items = []Item{{"demo", 1}}
	}
	return Request{
		Grant: queue.Grant{ID: "g", Room: "r", Member: "ann", Sale: 3, Generation: 7},
		Items: items,
		Lease: 15 * time.Second,
	}
}

// earlier is the order that an earlier attempt with r has placed.
func earlier(t *testing.T, r Request) Order {
	o, err := draft(r)
	require.NoError(t, err)
	o.ID = "earlier"
	return o
}

func ok(_ context.Context, o Order) (Order, error) { return o, nil }

func failing(err error) func(context.Context, Order) (Order, error) {
	return func(context.Context, Order) (Order, error) { return Order{}, err }
}

// way is one way in which Place can end.
type way struct {
	name     string
	r        Request
	s        script
	want     Result
	err      error
	released bool
	created  int
	voided   int
}

func (w way) check(t *testing.T) {
	s, results, flying := w.s, []Result{}, 0
	svc := New(&s, &s, Options{
		Began: func() { flying++ },
		Ended: func(r Result, _ time.Duration) { flying--; results = append(results, r) },
	})
	placed, err := svc.Place(t.Context(), w.r)

	require.Equal(t, []Result{w.want}, results)
	require.Zero(t, flying)
	require.Equal(t, w.want == ResultReplayed, placed.Replayed)
	if w.err == nil {
		require.NoError(t, err)
		require.NotEmpty(t, placed.ID)
	} else {
		require.ErrorIs(t, err, w.err)
		require.Empty(t, placed)
	}
	require.Equal(t, w.created, s.created)
	require.Equal(t, w.voided, s.voided)
	require.Empty(t, s.claims, "every answer of claim is asked for")
	for _, claim := range s.claimed {
		require.Equal(t, s.claimed[0], claim, "one attempt claims under one name")
	}
	if w.released {
		require.Equal(t, s.claimed[:1], s.released)
	} else {
		require.Empty(t, s.released)
	}
}

func TestAttemptWithoutAClaimFailsClosed(t *testing.T) {
	t.Parallel()
	r := request()
	keyed := r
	keyed.IdempotencyKey = "k"
	same, other := earlier(t, r), earlier(t, request(Item{"other", 1}))
	otherKey, foreign := other, same
	otherKey.IdempotencyKey = "k"
	foreign.Member = "bob"
	down := errors.New("connection refused")

	for _, w := range []way{
		{name: "placed", r: r, s: script{claims: []error{nil}, create: ok}, want: ResultPlaced, created: 1},
		{name: "bad items touch nothing", r: request(Item{"demo", 0}), want: ResultInvalid, err: ErrInvalidItems},
		{name: "answer of claim lost once", r: r, s: script{claims: []error{queue.ErrUnavailable, nil}, create: ok}, want: ResultPlaced, created: 1},
		{name: "no claim, no order", r: r, s: script{claims: []error{queue.ErrUnavailable, queue.ErrUnavailable}}, want: ResultUnavailable, err: queue.ErrUnavailable, released: true},
		{name: "limit passes through", r: r, s: script{claims: []error{queue.ErrLimit}}, want: ResultLimit, err: queue.ErrLimit},
		{name: "unforeseen answer of claim", r: r, s: script{claims: []error{down}}, want: ResultFailed, err: down},

		{name: "busy, order found", r: r, s: script{claims: []error{queue.BusyError{}}, found: same}, want: ResultReplayed},
		{name: "busy after a lost answer", r: r, s: script{claims: []error{queue.ErrUnavailable, queue.BusyError{}}, found: same}, want: ResultReplayed},
		{name: "busy, other content", r: r, s: script{claims: []error{queue.BusyError{}}, found: other}, want: ResultTokenSpent, err: ErrTokenSpent},
		{name: "busy, other content, same key", r: keyed, s: script{claims: []error{queue.BusyError{}}, found: otherKey}, want: ResultMismatch, err: ErrIdempotencyMismatch},
		{name: "busy, other content, another key", r: keyed, s: script{claims: []error{queue.BusyError{}}, found: other}, want: ResultTokenSpent, err: ErrTokenSpent},
		{name: "busy, none yet", r: r, s: script{claims: []error{queue.BusyError{Left: 4 * time.Second}}, foundErr: ErrNotFound}, want: ResultInProgress, err: ErrInProgress},
		{name: "busy, void", r: r, s: script{claims: []error{queue.BusyError{}}, foundErr: ErrTokenInvalid}, want: ResultTokenInvalid, err: ErrTokenInvalid},
		{name: "busy, store down", r: r, s: script{claims: []error{queue.BusyError{}}, foundErr: ErrUnavailable}, want: ResultUnavailable, err: ErrUnavailable},

		{name: "gone, order found", r: r, s: script{claims: []error{queue.ErrGone}, found: same}, want: ResultReplayed},
		{name: "gone, other content", r: r, s: script{claims: []error{queue.ErrGone}, found: other}, want: ResultTokenSpent, err: ErrTokenSpent},
		{name: "gone, void", r: r, s: script{claims: []error{queue.ErrGone}, foundErr: ErrTokenInvalid}, want: ResultTokenInvalid, err: ErrTokenInvalid},
		{name: "gone, none", r: r, s: script{claims: []error{queue.ErrGone}, foundErr: ErrNotFound, void: ErrTokenInvalid}, want: ResultTokenInvalid, err: ErrTokenInvalid, voided: 1},
		{name: "gone, an order after all", r: r, s: script{claims: []error{queue.ErrGone}, foundErr: ErrNotFound, found: same}, want: ResultReplayed, voided: 1},
		{name: "gone, void not written", r: r, s: script{claims: []error{queue.ErrGone}, foundErr: ErrNotFound, void: ErrUnavailable}, want: ResultOutcomeUnknown, err: ErrOutcomeUnknown, voided: 1},
		{name: "another member's order is not shown", r: r, s: script{claims: []error{queue.ErrGone}, found: foreign}, want: ResultTokenInvalid, err: ErrTokenInvalid},

		{name: "room lost, order found", r: r, s: script{claims: []error{queue.ErrNoRoom}, found: same}, want: ResultReplayed},
		{name: "room lost, none", r: r, s: script{claims: []error{queue.ErrNoRoom}, foundErr: ErrNotFound}, want: ResultUnavailable, err: queue.ErrUnavailable},
	} {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); w.check(t) })
	}
}

func TestAttemptWithAClaimEndsAsPromised(t *testing.T) {
	t.Parallel()
	r := request()
	keyed := r
	keyed.IdempotencyKey = "k"
	same, other := earlier(t, r), earlier(t, request(Item{"other", 1}))
	elsewhere, elsewhereOther := earlier(t, keyed), other
	elsewhere.Grant, elsewhereOther.Grant = "another", "another"
	elsewhereOther.IdempotencyKey = "k"
	down := errors.New("connection refused")
	give := func(o Order) func(context.Context, Order) (Order, error) {
		return func(context.Context, Order) (Order, error) { return o, nil }
	}

	for _, w := range []way{
		{name: "sold out", r: r, s: script{claims: []error{nil}, create: failing(SoldOutError{"demo"})}, want: ResultSoldOut, err: ErrSoldOut, released: true, created: 1},
		{name: "unknown product", r: r, s: script{claims: []error{nil}, create: failing(UnknownProductError{"demo"})}, want: ResultUnknownProduct, err: ErrUnknownProduct, released: true, created: 1},
		{name: "mixed currency", r: r, s: script{claims: []error{nil}, create: failing(ErrMixedCurrency)}, want: ResultMixedCurrency, err: ErrMixedCurrency, released: true, created: 1},
		{name: "already ordered", r: r, s: script{claims: []error{nil}, create: failing(ErrAlreadyOrdered)}, want: ResultAlreadyOrdered, err: ErrAlreadyOrdered, released: true, created: 1},
		{name: "definite failure", r: r, s: script{claims: []error{nil}, create: failing(down)}, want: ResultFailed, err: down, released: true, created: 1},
		{name: "unknown outcome", r: r, s: script{claims: []error{nil}, create: failing(errors.Join(ErrOutcomeUnknown, ErrUnavailable))}, want: ResultOutcomeUnknown, err: ErrOutcomeUnknown, created: 1},
		{name: "create meets the void", r: r, s: script{claims: []error{nil}, create: failing(ErrTokenInvalid)}, want: ResultTokenInvalid, err: ErrTokenInvalid, created: 1},
		{name: "create meets the order", r: r, s: script{claims: []error{nil}, create: give(same)}, want: ResultReplayed, created: 1},
		{name: "create meets an order of other content", r: r, s: script{claims: []error{nil}, create: give(other)}, want: ResultTokenSpent, err: ErrTokenSpent, created: 1},
		{name: "key of another grant", r: keyed, s: script{claims: []error{nil}, create: give(elsewhere)}, want: ResultReplayed, released: true, created: 1},
		{name: "key of another grant, other content", r: keyed, s: script{claims: []error{nil}, create: give(elsewhereOther)}, want: ResultMismatch, err: ErrIdempotencyMismatch, released: true, created: 1},
	} {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); w.check(t) })
	}
}

func TestOrderCarriesWhatTheGrantSays(t *testing.T) {
	t.Parallel()
	s := &script{claims: []error{nil}, create: ok}
	r := request(Item{"b", 1}, Item{"a", 2})
	r.Once, r.IdempotencyKey = true, "k"
	placed, err := New(s, s, Options{}).Place(t.Context(), r)
	require.NoError(t, err)
	items := []Item{{"a", 2}, {"b", 1}}
	require.Equal(t, Order{
		ID: s.claimed[0], Grant: "g", Room: "r", Sale: 3, Generation: 7, Member: "ann", Once: true,
		Fingerprint: fingerprint("r", items), IdempotencyKey: "k", Items: items,
	}, placed.Order)
	require.Equal(t, []time.Duration{r.Lease}, s.leases)
}

func TestInProgressSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	s := &script{claims: []error{queue.BusyError{Left: 4 * time.Second}}, foundErr: ErrNotFound}
	_, err := New(s, s, Options{}).Place(t.Context(), request())
	var busy InProgressError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, 4*time.Second, busy.RetryAfter)
}

func TestAttemptIsOverBeforeItsLease(t *testing.T) {
	t.Parallel()
	s := &script{claims: []error{nil}}
	var atCreate time.Time
	s.create = func(ctx context.Context, o Order) (Order, error) {
		atCreate, _ = ctx.Deadline()
		return o, nil
	}
	before := time.Now()
	_, err := New(s, s, Options{}).Place(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, s.deadline, atCreate, "one deadline, begun before the claim is sent")
	require.WithinDuration(t, before.Add(8*time.Second), atCreate, time.Second)
}

func TestClaimIsReleasedThoughTheClientHasHungUp(t *testing.T) {
	t.Parallel()
	ctx, hangUp := context.WithCancel(t.Context())
	s := &script{claims: []error{nil}, create: func(ctx context.Context, _ Order) (Order, error) {
		hangUp()
		return Order{}, ctx.Err()
	}}
	_, err := New(s, s, Options{}).Place(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.released, 1)
	require.NoError(t, s.late, "release was given a context that had ended")
	require.True(t, s.bounded, "release must not hang for ever")
}

func TestClaimIsNotRepeatedWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &script{claims: []error{queue.ErrUnavailable}}
	_, err := New(s, s, Options{}).Place(ctx, request())
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.Len(t, s.claimed, 1)
}

// H3: nobody knows how far the store came, so the claim is kept.
func TestPanicInTheStoreKeepsTheClaim(t *testing.T) {
	t.Parallel()
	s := &script{claims: []error{nil}, create: func(context.Context, Order) (Order, error) { panic("store") }}
	var result Result
	svc := New(s, s, Options{Ended: func(r Result, _ time.Duration) { result = r }})
	require.PanicsWithValue(t, "store", func() { _, _ = svc.Place(t.Context(), request()) })
	require.Empty(t, s.released)
	require.Equal(t, ResultOutcomeUnknown, result)
}
