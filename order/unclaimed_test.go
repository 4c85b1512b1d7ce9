package order

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAttemptForWhichNoClaimIsAskedEndsAsPromised: nothing is claimed, nothing
// released, and what a claim would have refused is settled by a void row.
func TestAttemptForWhichNoClaimIsAskedEndsAsPromised(t *testing.T) {
	t.Parallel()
	r := request()
	r.Unclaimed, r.Grant.Expiry = true, time.Unix(2_000_000_000, 0)
	gone := r
	gone.RoomGone = true
	same, other := earlier(t, r), earlier(t, request(Item{"other", 1}))
	down := errors.New("connection refused")
	for _, w := range []way{
		{name: "placed", r: r, s: script{create: ok}, want: ResultPlaced, created: 1},
		{name: "met an order", r: r, s: script{create: func(context.Context, Order) (Order, error) { return same, nil }}, want: ResultReplayed, created: 1},
		{name: "met one of other content", r: r, s: script{create: func(context.Context, Order) (Order, error) { return other, nil }}, want: ResultTokenSpent, err: ErrTokenSpent, created: 1},
		{name: "met the void", r: r, s: script{create: failing(ErrTokenInvalid)}, want: ResultTokenInvalid, err: ErrTokenInvalid, created: 1},
		{name: "sold out", r: r, s: script{create: failing(SoldOutError{"demo"})}, want: ResultSoldOut, err: ErrSoldOut, created: 1},
		{name: "definite failure", r: r, s: script{create: failing(down)}, want: ResultFailed, err: down, created: 1},
		{name: "unknown outcome", r: r, s: script{create: failing(ErrOutcomeUnknown)}, want: ResultOutcomeUnknown, err: ErrOutcomeUnknown, created: 1},
		{name: "lapsed", r: r, s: script{create: failing(ErrLapsed), foundErr: ErrNotFound, void: ErrTokenInvalid}, want: ResultTokenInvalid, err: ErrTokenInvalid, created: 1, voided: 1},
		{name: "lapsed, and ordered before", r: r, s: script{create: failing(ErrLapsed), found: same}, want: ResultReplayed, created: 1},
		{name: "lapsed, an order after all", r: r, s: script{create: failing(ErrLapsed), foundErr: ErrNotFound, found: same}, want: ResultReplayed, created: 1, voided: 1},
		{name: "lapsed, not settled", r: r, s: script{create: failing(ErrLapsed), foundErr: ErrNotFound, void: ErrUnavailable}, want: ResultOutcomeUnknown, err: ErrOutcomeUnknown, created: 1, voided: 1},
		{name: "of a room that is gone", r: gone, s: script{foundErr: ErrNotFound, void: ErrTokenInvalid}, want: ResultTokenInvalid, err: ErrTokenInvalid, voided: 1},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.check(t)
		})
	}
}

// TestTheStoreIsToldWhatAClaimWouldHaveSeenTo: of a grant given while Redis was
// away the generation does not matter, because nobody could begin one then.
func TestTheStoreIsToldWhatAClaimWouldHaveSeenTo(t *testing.T) {
	t.Parallel()
	r := request()
	r.Grant.Expiry = time.Unix(2_000_000_000, 0)
	for _, c := range []struct {
		unclaimed, open bool
		want            *Terms
	}{
		{false, false, nil},
		{true, false, &Terms{Expiry: r.Grant.Expiry, Generation: 7}},
		{true, true, &Terms{Expiry: r.Grant.Expiry}},
	} {
		r.Unclaimed, r.Grant.Open = c.unclaimed, c.open
		var got Order
		s := &script{claims: []error{nil}, create: func(_ context.Context, o Order) (Order, error) { got = o; return o, nil }}
		_, err := New(s, s, Options{}).Place(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Terms)
		require.Equal(t, c.unclaimed, len(s.claimed) == 0)
	}
}
