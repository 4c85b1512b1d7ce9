package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/queue"
)

// Generations lists the rooms there are, each with the generation that it is to
// have in Redis: 0 where it was never begun.
func (s *Store) Generations(ctx context.Context) (map[string]int64, error) {
	rows, err := s.db.Query(ctx, "SELECT name, generation FROM rooms WHERE deleted_at IS NULL")
	if err != nil {
		return nil, fmt.Errorf("list rooms: %w", err)
	}
	var name string
	var generation int64
	all := map[string]int64{}
	_, err = pgx.ForEachRow(rows, []any{&name, &generation}, func() error {
		all[name] = generation
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list rooms: %w", err)
	}
	return all, nil
}

const restorableSQL = `
SELECT coalesce((SELECT floors[$4] FROM room_progress WHERE room = $1 AND sale = $2), 0),
       EXISTS (SELECT FROM room_exclusions WHERE room = $1 AND member = $3 AND sale IN (0, $2))`

// Restorable says whether a member whose place was lost may be put back (not
// if blocked, or evicted from this sale), and the highest score that was ever
// admitted in the lane in this sale.
func (s *Store) Restorable(ctx context.Context, name string, sale int64, member string, lane int) (floor int64, ok bool, err error) {
	if lane < 0 || lane >= queue.MaxLanes {
		return 0, false, errors.New("restorable: no such lane")
	}
	var excluded bool
	err = s.db.QueryRow(ctx, restorableSQL, name, sale, member, lane+1).Scan(&floor, &excluded)
	if err != nil {
		return 0, false, fmt.Errorf("restorable in room %s: %w", name, err)
	}
	return floor, !excluded, nil
}
