package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/queue"
)

// FailOpen lists the rooms that pass people while Redis is out of reach, and the
// time at which they were such, by the clock of Postgres. Rooms that were never
// begun are not among them. Where the settings of some can't be read, the others
// are returned beside the error.
func (s *Store) FailOpen(ctx context.Context) ([]queue.Life, time.Time, error) {
	const q = `SELECT ` + lifeColumns + ` FROM rooms r LEFT JOIN room_progress p ON p.room = r.name
		WHERE r.settings->>'fail' = 'open' AND r.deleted_at IS NULL AND r.generation > 0 ORDER BY r.name`
	rows, err := s.db.Query(ctx, q)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read rooms that fail open: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (queue.Life, error) { return scanLife(row) })
	if err != nil || len(all) == 0 { // as it is almost everywhere
		return nil, time.Time{}, err
	}
	var now time.Time
	if err := s.db.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return nil, time.Time{}, fmt.Errorf("read the time: %w", err)
	}
	lives := make([]queue.Life, 0, len(all))
	var broken []error
	for _, l := range all {
		l, err := ruled(l)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		lives = append(lives, l)
	}
	return lives, now, errors.Join(broken...)
}
