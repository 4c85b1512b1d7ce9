// Package pgstore keeps orders in Postgres.
//
// # Promises
//
// An order, the stock that it takes and the outbox event that spends its grant
// are committed together or not at all. Two unique indexes decide, whatever
// Redis knows: one order per grant, and, where the room said so, one per member
// and sale. A void row takes the place of an order on the first of them.
//
// An order is one transaction, on one connection:
//
//	BEGIN
//	insert the order      waits here for another attempt with the same grant
//	take stock, by sku    always in the same order, so that none deadlock
//	append the event
//	                      all sent at once; when every answer is there:
//	COMMIT
//
// COMMIT is not in the batch: until it is sent every error is an abort, and of
// a batch that was cut off the server can run what has arrived, but not commit.
//
// Orders that are ready while others are being committed share such a
// transaction, so a product that everybody wants is locked, and the disk waited
// for, once for all of them. Sharing changes no outcome. Each is placed, sold out
// or unknown for itself; stock is given out in the order of arrival; and an order
// that meets anything else, or meets another order, is tried again alone, as if
// there had been no group.
//
// # Not here
//
// Nothing is cached, and nothing of Redis is known. The package does not decide
// when a claim is released, and never repeats a transaction whose outcome is
// unknown.
package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
)

// maxTries is how often one order's transaction is run.
const maxTries = 3

// Options of a Store; all may be left out.
type Options struct {
	// Committed is called after an order is committed, to wake the relay of this
	// process. It must not block.
	Committed func()
	// Group is how many orders may share a transaction; 0 is 64.
	Group int
	// Patience is how long an order waits for a group to take it, and a group for
	// its answers before COMMIT; then each goes alone. 0 is 1 s.
	Patience time.Duration
	// AcquireTimeout bounds the wait for a connection of the pool; 0 is 3 s.
	AcquireTimeout time.Duration
}

// Store is an order.Store in Postgres. It is safe for concurrent use, and uses
// one connection of the pool at a time per call.
type Store struct {
	pool   *pgxpool.Pool
	opts   Options
	groups *groups
}

// New returns a Store on a pool that Configure has set up.
func New(pool *pgxpool.Pool, opts Options) *Store {
	if opts.Committed == nil {
		opts.Committed = func() {}
	}
	opts.Patience = cmp.Or(opts.Patience, time.Second)
	opts.AcquireTimeout = cmp.Or(opts.AcquireTimeout, 3*time.Second)
	return &Store{pool: pool, opts: opts, groups: newGroups(cmp.Or(opts.Group, 64))}
}

var _ order.Store = (*Store)(nil)

// with runs f on a connection of its own. Whatever f needs to ask it asks on
// that one: a second one, taken while holding the first, hangs a pool of which
// everybody holds one.
func with[T any](ctx context.Context, s *Store, f func(conn *pgx.Conn) (T, error)) (T, error) {
	acquire, cancel := context.WithTimeout(ctx, s.opts.AcquireTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(acquire)
	if err != nil {
		var none T
		return none, fmt.Errorf("connect: %w", unavailable(err))
	}
	defer conn.Release()
	found, err := f(conn.Conn())
	evict(conn.Conn(), err)
	return found, err
}

// Create is order.Store's: order, stock and event, all or nothing. Of its
// definite errors these are told apart: order.ErrUnknownProduct,
// ErrMixedCurrency, ErrSoldOut, ErrAlreadyOrdered, ErrInProgress, ErrLapsed
// and ErrUnavailable.
func (s *Store) Create(ctx context.Context, o order.Order) (order.Order, error) {
	if o.Terms != nil { // which a group does not look at
		return s.alone(ctx, o)
	}
	created, err := s.grouped(ctx, o)
	if errors.Is(err, errAlone) {
		return s.alone(ctx, o)
	}
	return created, err
}

// alone writes o in a transaction of its own.
func (s *Store) alone(ctx context.Context, o order.Order) (order.Order, error) {
	began := time.Now()
	defer func() { s.groups.learn(1, time.Since(began), false) }()
	created, err := with(ctx, s, func(conn *pgx.Conn) (order.Order, error) {
		for try := 1; ; try++ {
			created, err := create(ctx, conn, o)
			if err == nil {
				return created, nil
			}
			if !again(err) || try == maxTries || !pause(ctx, try) {
				return explain(ctx, conn, o, err)
			}
		}
	})
	if err == nil && created.ID == o.ID {
		s.opts.Committed()
	}
	return created, err
}

// pause waits a few milliseconds, so that two that have met don't meet again;
// false if ctx ends before.
func pause(ctx context.Context, try int) bool {
	timer := time.NewTimer(time.Duration(try) * time.Duration(5+rand.IntN(15)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// explain turns the error of an aborted transaction into what it means, with
// the order that was in the way, if there was one.
func explain(ctx context.Context, conn *pgx.Conn, o order.Order, err error) (order.Order, error) {
	var short shortError
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, order.ErrOutcomeUnknown), errors.Is(err, order.ErrMixedCurrency), errors.Is(err, order.ErrLapsed):
		return order.Order{}, err
	case errors.As(err, &short):
		return order.Order{}, shortage(ctx, conn, short.sku)
	case errors.Is(err, errOrderRow) && code(err) == lockNotAvailable:
		// Whoever holds the row is another attempt with the grant or the key.
		return order.Order{}, order.InProgressError{RetryAfter: lockTimeout}
	case errors.As(err, &pg) && pg.Code == uniqueViolation:
		return conflict(ctx, conn, o, pg)
	}
	return order.Order{}, unavailable(err)
}

// conflict finds the order that a unique index has refused o for.
func conflict(ctx context.Context, conn *pgx.Conn, o order.Order, pg *pgconn.PgError) (order.Order, error) {
	switch pg.ConstraintName {
	case "orders_grant":
		found, err := one(ctx, conn, byGrant, o.Grant)
		if err != nil && !errors.Is(err, order.ErrTokenInvalid) {
			// There is an order. Only, it can't be shown now.
			return order.Order{}, fmt.Errorf("%w: order of grant %s: %w", order.ErrOutcomeUnknown, o.Grant, err)
		}
		return found, err
	case "orders_once", "orders_idempotency":
		// A retry with a new grant violates both; its key has the better answer.
		if o.IdempotencyKey != "" {
			found, err := one(ctx, conn, byKey, o.Room, o.Member, o.IdempotencyKey)
			if !errors.Is(err, order.ErrNotFound) {
				return found, err
			}
		}
		if pg.ConstraintName == "orders_once" {
			return order.Order{}, fmt.Errorf("room %s: %w", o.Room, order.ErrAlreadyOrdered)
		}
	}
	return order.Order{}, pg
}

// ByGrant is order.Store's: the order placed with a grant, order.ErrNotFound or
// order.ErrTokenInvalid.
func (s *Store) ByGrant(ctx context.Context, grant string) (order.Order, error) {
	return s.find(ctx, byGrant, grant)
}

// ByID returns an order, or order.ErrNotFound. Whether the one who asks may see
// it is for the caller to say.
func (s *Store) ByID(ctx context.Context, id string) (order.Order, error) {
	o, err := s.find(ctx, byID, id)
	if errors.Is(err, order.ErrTokenInvalid) {
		return order.Order{}, order.ErrNotFound // a void row is no order
	}
	return o, err
}

// find looks up by a column of UUIDs: what is no UUID is not there.
func (s *Store) find(ctx context.Context, query, id string) (order.Order, error) {
	if uuid.Validate(id) != nil {
		return order.Order{}, order.ErrNotFound
	}
	return with(ctx, s, func(conn *pgx.Conn) (order.Order, error) { return one(ctx, conn, query, id) })
}

const insertVoid = `
INSERT INTO orders (id, grant_id, void, room, sale, generation, member)
VALUES ($1, $2, true, $3, $4, $5, $6)
ON CONFLICT ON CONSTRAINT orders_grant DO NOTHING`

// Void is order.Store's. It waits for a transaction that is about to decide the
// same grant, at most lock_timeout.
func (s *Store) Void(ctx context.Context, g queue.Grant) (order.Order, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return order.Order{}, fmt.Errorf("name a void row: %w", err)
	}
	return with(ctx, s, func(conn *pgx.Conn) (order.Order, error) {
		_, err := conn.Exec(ctx, insertVoid, id.String(), g.ID, g.Room, g.Sale, g.Generation, g.Member)
		if err != nil {
			return order.Order{}, fmt.Errorf("void grant %s: %w", g.ID, unavailable(err))
		}
		return one(ctx, conn, byGrant, g.ID)
	})
}
