package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotDead means that an event can't be requeued: there is none of that id,
// or it is not dead.
var ErrNotDead = errors.New("outbox: no dead event of that id")

// MaxList is how many rows List returns at most.
const MaxList = 500

// Admin is the outbox as operators and metrics see it. It needs no Relay in
// the same process.
type Admin struct{ pool *pgxpool.Pool }

// NewAdmin returns the Admin of the outbox behind pool.
func NewAdmin(pool *pgxpool.Pool) *Admin { return &Admin{pool: pool} }

const listRows = `
SELECT id, order_id::text, kind, room, payload, status, attempts, faults, next_attempt_at, last_error, created_at, done_at
FROM outbox WHERE status = $1 AND id > $2 ORDER BY id LIMIT $3`

// List returns up to limit rows of a status with ids above after, lowest id
// first. The id of the last one is where the next page begins.
func (a *Admin) List(ctx context.Context, status Status, limit int, after int64) ([]Row, error) {
	rows, err := a.pool.Query(ctx, listRows, status, after, min(limit, MaxList))
	if err != nil {
		return nil, fmt.Errorf("list %s events: %w", status, err)
	}
	list, err := pgx.CollectRows(rows, scanRow)
	if err != nil {
		return nil, fmt.Errorf("list %s events: %w", status, err)
	}
	return list, nil
}

func scanRow(row pgx.CollectableRow) (Row, error) {
	var r Row
	var done *time.Time
	err := row.Scan(&r.ID, &r.OrderID, &r.Kind, &r.Room, &r.Payload, &r.Status, &r.Attempts, &r.Faults,
		&r.NextAttempt, &r.LastError, &r.CreatedAt, &done)
	if done != nil {
		r.DoneAt = *done
	}
	return r, err
}

const requeue = `
UPDATE outbox SET status = 'pending', attempts = 0, faults = 0, next_attempt_at = now(), owner = NULL, locked_until = NULL
WHERE id = $1 AND status = 'dead'`

// Requeue makes a dead event pending again, with all its attempts before it.
// It returns ErrNotDead if there is nothing to requeue.
func (a *Admin) Requeue(ctx context.Context, id int64) error {
	tag, err := a.pool.Exec(ctx, requeue, id)
	if err != nil {
		return fmt.Errorf("requeue event %d: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("requeue event %d: %w", id, ErrNotDead)
	}
	return nil
}

// Each count has a partial index, so that done rows don't cost anything.
const stats = `
SELECT (SELECT count(*) FROM outbox WHERE status = 'pending'),
       (SELECT count(*) FROM outbox WHERE status = 'dead'),
       (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 FROM outbox WHERE status = 'pending')`

// Stats counts what is not done.
func (a *Admin) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	var age float64
	if err := a.pool.QueryRow(ctx, stats).Scan(&s.Pending, &s.Dead, &age); err != nil {
		return Stats{}, fmt.Errorf("count events: %w", err)
	}
	s.OldestAge = max(0, time.Duration(age*float64(time.Second)))
	return s, nil
}
