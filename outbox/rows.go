package outbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// taken is an event in the hands of one relay, until its lease ends.
type taken struct {
	Event
	id int64
}

// The rows are locked for this one statement only. What keeps other relays
// away during the delivery is locked_until, so no transaction is open while a
// sink is slow or away, and a relay that dies gives its rows back by dying.
// MATERIALIZED, because a plan that runs the subquery twice takes too many.
const takeDue = `
WITH due AS MATERIALIZED (
    SELECT id FROM outbox
    WHERE status = 'pending' AND next_attempt_at <= now() AND (locked_until IS NULL OR locked_until <= now())
    ORDER BY next_attempt_at LIMIT $3
    FOR UPDATE SKIP LOCKED
)
UPDATE outbox o SET owner = $1, locked_until = now() + $2::interval, attempts = attempts + 1
FROM due WHERE o.id = due.id
RETURNING o.id, o.order_id::text, o.kind, o.room, o.payload`

// take outlives the stop of the relay too: cut off half-way, it would leave rows
// in a lease that nobody knows of.
func (r *Relay) take(ctx context.Context) ([]taken, error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	rows, err := r.pool.Query(ctx, takeDue, r.owner, r.opts.Lease, MaxBatch)
	if err != nil {
		return nil, fmt.Errorf("take due events: %w", err)
	}
	batch, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (taken, error) {
		var t taken
		err := row.Scan(&t.id, &t.OrderID, &t.Kind, &t.Room, &t.Payload)
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("take due events: %w", err)
	}
	return batch, nil
}

// A row whose lease has ended may have another owner by now, who will settle
// it: each of these statements leaves such a row alone.
const (
	markDone = `
UPDATE outbox SET status = 'done', done_at = now(), owner = NULL, locked_until = NULL
WHERE id = ANY($1) AND owner = $2 AND status = 'pending'`

	// One jitter for the whole call keeps rows that failed together together, so
	// that they come back as one delivery and not as hundreds.
	markFailed = `
UPDATE outbox SET owner = NULL, locked_until = NULL, last_error = $3, faults = faults + $4,
    status = CASE WHEN faults + $4 >= $5 AND $4 > 0 THEN 'dead' ELSE 'pending' END,
    next_attempt_at = now() + greatest($6::interval, $8 * least($7::interval, $6::interval * power(2, least(attempts - 1, 30))))
WHERE id = ANY($1) AND owner = $2 AND status = 'pending'
RETURNING status = 'dead'`

	giveBack = `
UPDATE outbox SET owner = NULL, locked_until = NULL, attempts = attempts - 1
WHERE id = ANY($1) AND owner = $2 AND status = 'pending'`

	deleteDone = `
DELETE FROM outbox WHERE id IN (
    SELECT id FROM outbox WHERE status = 'done' AND done_at < now() - $1::interval LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

// exec outlives the stop of the relay: what became of rows in hand must be
// written down, or they are delivered again after their lease.
func (r *Relay) exec(ctx context.Context, what, sql string, args ...any) (int, error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	tag, err := r.pool.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return int(tag.RowsAffected()), nil
}

func (r *Relay) done(ctx context.Context, batch []taken) error {
	n, err := r.exec(ctx, "mark events done", markDone, ids(batch), r.owner)
	r.opts.Observer.delivered(n)
	return err
}

// fail puts batch off, and returns how many of it are dead now. fault is 1 for
// a failure that counts against the rows, else 0.
func (r *Relay) fail(ctx context.Context, batch []taken, fault int, cause error) (int, error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	rows, err := r.pool.Query(ctx, markFailed, ids(batch), r.owner, printable(cause), fault,
		r.opts.MaxAttempts, minBackoff, maxBackoff, jitter())
	if err != nil {
		return 0, fmt.Errorf("put events off: %w", err)
	}
	states, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if err != nil {
		return 0, fmt.Errorf("put events off: %w", err)
	}
	dead := 0
	for _, d := range states {
		if d {
			dead++
		}
	}
	r.opts.Observer.failed(len(states))
	r.opts.Observer.died(dead)
	return dead, nil
}

// giveBack returns rows that have not been tried, as if they had not been taken.
func (r *Relay) giveBack(ctx context.Context, batch []taken) error {
	if len(batch) == 0 {
		return nil
	}
	_, err := r.exec(ctx, "give events back", giveBack, ids(batch), r.owner)
	return err
}

// prune deletes some rows that have been done for longer than the retention,
// and says whether there may be more. Small batches keep its locks short.
func (r *Relay) prune(ctx context.Context) (more bool, err error) {
	n, err := r.exec(ctx, "delete done events", deleteDone, r.opts.Retention, pruneBatch)
	return n == pruneBatch, err
}

// settling is a context for writing down what has happened already.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

func ids(batch []taken) []int64 {
	list := make([]int64, len(batch))
	for i, t := range batch {
		list[i] = t.id
	}
	return list
}

// printable is an error as Postgres can keep it: a text that it refused would
// leave the row in its lease, without a trace of why.
func printable(err error) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", ""), "")
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "")
	}
	return text
}
