package order

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/linekeeper/linekeeper/queue"
)

const (
	// deadline bounds an attempt up to COMMIT. It begins before the claim is
	// sent and is shorter than any sensible lease, so that the attempt is over
	// when the lease is. (If not, the unique index on the grant still decides.)
	deadline = 8 * time.Second
	// releaseTimeout bounds giving a claim back, which the client waits for.
	releaseTimeout = time.Second
)

// Options of a Service; all may be left out.
type Options struct {
	Log *slog.Logger
	// Began and Ended frame every call of Place, for metrics. An attempt that
	// panics ends as ResultOutcomeUnknown.
	Began func()
	Ended func(Result, time.Duration)
}

// Service places orders. It is safe for concurrent use.
type Service struct {
	grants   Grants
	store    Store
	opts     Options
	deadline time.Duration
}

// New returns a Service that claims from grants and keeps orders in store.
func New(grants Grants, store Store, opts Options) *Service {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Began == nil {
		opts.Began = func() {}
	}
	if opts.Ended == nil {
		opts.Ended = func(Result, time.Duration) {}
	}
	return &Service{grants: grants, store: store, opts: opts, deadline: deadline}
}

// Place orders r.Items with r.Grant. Placing again with the same grant and the
// same content returns the order that the first call made, so a client that
// lost an answer may simply ask again.
//
// Of the errors, only ErrOutcomeUnknown leaves open whether there is an order.
// After a definite failure the grant is READY again, with its old expiry.
func (s *Service) Place(ctx context.Context, r Request) (Placed, error) {
	s.opts.Began()
	began, result := time.Now(), ResultOutcomeUnknown
	// Deferred, so that a panic in a store is counted too. The claim is kept
	// then, as for any outcome that nobody knows.
	defer func() { s.opts.Ended(result, time.Since(began)) }()

	placed, err := s.place(ctx, r)
	switch {
	case err != nil:
		result = resultOf(err)
	case placed.Replayed:
		result = ResultReplayed
	default:
		result = ResultPlaced
	}
	return placed, err
}

func (s *Service) place(ctx context.Context, r Request) (Placed, error) {
	o, err := draft(r)
	if err != nil {
		return Placed{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()

	if err := s.claim(ctx, r, o.ID); err != nil {
		return s.unclaimed(ctx, r, o, err)
	}
	found, err := s.store.Create(ctx, o)
	if errors.Is(err, ErrLapsed) {
		return s.unclaimed(ctx, r, o, queue.ErrGone) // as a claim would have said
	}
	if err != nil {
		return Placed{}, s.failed(ctx, r, o, err)
	}
	if found.Grant != o.Grant && !r.Unclaimed {
		// The order of this Idempotency-Key was paid for by another grant, so
		// this one has not been used.
		s.release(ctx, r.Grant, o.ID)
	}
	return answer(o, found)
}

// draft is the order that r asks for, before anybody has agreed to it.
func draft(r Request) (Order, error) {
	items, err := normalise(r.Items)
	if err != nil {
		return Order{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Order{}, fmt.Errorf("name an order: %w", err)
	}
	return Order{
		Terms:          terms(r),
		ID:             id.String(),
		Grant:          r.Grant.ID,
		Room:           r.Grant.Room,
		Sale:           r.Grant.Sale,
		Generation:     r.Grant.Generation,
		Member:         r.Grant.Member,
		Once:           r.Once,
		Fingerprint:    fingerprint(r.Grant.Room, items),
		IdempotencyKey: r.IdempotencyKey,
		Items:          items,
	}, nil
}

// terms are nil for an order that is claimed.
func terms(r Request) *Terms {
	switch {
	case !r.Unclaimed:
		return nil
	case r.Grant.Open: // given while nobody could begin a generation; a later one does it no harm
		return &Terms{Expiry: r.Grant.Expiry}
	}
	return &Terms{Expiry: r.Grant.Expiry, Generation: r.Grant.Generation}
}

// claim asks a second time, under the same name, where the first answer was
// lost.
func (s *Service) claim(ctx context.Context, r Request, claim string) error {
	if r.RoomGone || r.Barred {
		return queue.ErrGone
	}
	if r.Unclaimed {
		return nil
	}
	err := s.grants.Claim(ctx, r.Grant, claim, r.Lease)
	if errors.Is(err, queue.ErrUnavailable) && ctx.Err() == nil {
		err = s.grants.Claim(ctx, r.Grant, claim, r.Lease)
	}
	return err
}

// unclaimed answers for an attempt that holds no claim. Where the grant is
// held, gone, or lost with its room, Postgres knows whether it has paid for an
// order; everything else fails closed.
func (s *Service) unclaimed(ctx context.Context, r Request, o Order, cause error) (Placed, error) {
	cause = fmt.Errorf("claim grant %s: %w", o.Grant, cause)
	switch {
	case errors.Is(cause, queue.ErrBusy), errors.Is(cause, queue.ErrGone), errors.Is(cause, queue.ErrNoRoom):
	case errors.Is(cause, queue.ErrUnavailable):
		// The claim may have been taken although its answer was lost.
		s.release(ctx, r.Grant, o.ID)
		return Placed{}, cause
	default:
		return Placed{}, cause
	}
	found, err := s.store.ByGrant(ctx, o.Grant)
	if errors.Is(err, ErrNotFound) {
		found, err = s.absent(ctx, r.Grant, cause)
	}
	if err != nil {
		return Placed{}, fmt.Errorf("order of grant %s: %w", o.Grant, err)
	}
	return answer(o, found)
}

// absent says what it means that no order is found for g. Only after a void row
// is written does it mean that there will be none: a transaction of an earlier
// attempt may still be on its way to COMMIT.
func (s *Service) absent(ctx context.Context, g queue.Grant, cause error) (Order, error) {
	if errors.Is(cause, queue.ErrBusy) {
		var busy queue.BusyError
		errors.As(cause, &busy)
		return Order{}, InProgressError{RetryAfter: busy.Left}
	}
	if errors.Is(cause, queue.ErrNoRoom) {
		// The grant may be as good as it ever was: the room may come back.
		return Order{}, fmt.Errorf("%w: %w", queue.ErrUnavailable, cause)
	}
	found, err := s.store.Void(ctx, g)
	if err != nil && !errors.Is(err, ErrTokenInvalid) {
		return Order{}, fmt.Errorf("%w: void: %w", ErrOutcomeUnknown, err)
	}
	return found, err
}

// failed gives the claim back if err is definite.
func (s *Service) failed(ctx context.Context, r Request, o Order, err error) error {
	err = fmt.Errorf("create order %s: %w", o.ID, err)
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		s.opts.Log.WarnContext(ctx, "order outcome unknown", "order", o.ID, "grant", o.Grant, "room", o.Room, "err", err)
	case errors.Is(err, ErrTokenInvalid):
		// A void grant stays claimed until its lease ends: it is of no use to anybody.
	case r.Unclaimed:
	default:
		s.release(ctx, r.Grant, o.ID)
	}
	return err
}

// release lets go of a claim even if the client has hung up. Failing is
// harmless: the lease ends by itself.
func (s *Service) release(ctx context.Context, g queue.Grant, claim string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := s.grants.Release(ctx, g, claim); err != nil {
		s.opts.Log.WarnContext(ctx, "claim not released", "grant", g.ID, "claim", claim, "err", err)
	}
}

// answer gives found to the one who asked for o: the same content is a replay
// (or o itself), other content a conflict with what the client has sent twice.
func answer(o, found Order) (Placed, error) {
	switch {
	case found.Room != o.Room || found.Member != o.Member:
		// No signed token leads here. Whoever holds it is told nothing.
		return Placed{}, fmt.Errorf("order %s belongs to another member: %w", found.ID, ErrTokenInvalid)
	case found.Fingerprint == o.Fingerprint:
		return Placed{Order: found, Replayed: found.ID != o.ID}, nil
	case o.IdempotencyKey != "" && o.IdempotencyKey == found.IdempotencyKey:
		return Placed{}, fmt.Errorf("order %s: %w", found.ID, ErrIdempotencyMismatch)
	default:
		return Placed{}, fmt.Errorf("order %s: %w", found.ID, ErrTokenSpent)
	}
}
