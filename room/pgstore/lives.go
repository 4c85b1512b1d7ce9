package pgstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/queue"
)

// lifeColumns need rooms as r and room_progress as p. Without a number to
// restore from, nothing is restorable: that is what the generation itself says.
const lifeColumns = `r.name, r.generation, r.sale, coalesce(r.restorable_from, r.generation), r.version, r.settings,
	CASE WHEN p.sale = r.sale THEN p.floors ELSE '{0,0,0,0}' END, coalesce(p.last_score, 0), r.deleted_at IS NOT NULL,
	EXISTS (SELECT FROM draws d WHERE d.room = r.name AND d.sale = r.sale AND d.listed_at IS NOT NULL),
	coalesce((SELECT stock FROM products WHERE sku = r.settings->>'stock'), 0), r.released`

// scanLife returns the life without its rules where the settings can't be read.
func scanLife(row pgx.Row) (queue.Life, error) {
	var l queue.Life
	err := row.Scan(&l.Room, &l.Generation, &l.Sale, &l.RestorableFrom, &l.Version, &l.Settings, &l.Floors, &l.LastScore, &l.Deleted,
		&l.Listed, &l.StockLeft, &l.Released)
	return l, err
}

// ruled adds the rules that the settings mean.
func ruled(l queue.Life) (queue.Life, error) {
	settings, err := stored(l.Room, l.Settings)
	if err != nil {
		return queue.Life{}, err
	}
	l.Rules = settings.Rules()
	for _, lane := range settings.Lanes {
		l.Lanes = append(l.Lanes, lane.Name)
	}
	return l, nil
}

// Lives returns all rooms with what is in force, deleted ones until Dropped has
// been called for them. Where the settings of some can't be read, the others are
// returned beside the error: one broken row must not stop every room.
func (s *Store) Lives(ctx context.Context) ([]queue.Life, error) {
	// One statement for all: it runs twice a second, with however many rooms.
	const q = `SELECT ` + lifeColumns + ` FROM rooms r LEFT JOIN room_progress p ON p.room = r.name
		WHERE r.deleted_at IS NULL OR r.dropped_at IS NULL ORDER BY r.name`
	rows, err := s.db.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read lives: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (queue.Life, error) { return scanLife(row) })
	if err != nil {
		return nil, fmt.Errorf("read lives: %w", err)
	}
	lives, known := make([]queue.Life, 0, len(all)), make(map[string]queue.Life, len(all))
	var broken []error
	for _, l := range all {
		l, err := s.ruledAgain(l)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		lives, known[l.Room] = append(lives, l), l
	}
	s.known.Store(&known)
	return lives, errors.Join(broken...)
}

// ruledAgain is ruled, without reading settings that are still the same, byte for
// byte: with a thousand rooms that would be most of what an idle leader does.
func (s *Store) ruledAgain(l queue.Life) (queue.Life, error) {
	if known := s.known.Load(); known != nil {
		if before, ok := (*known)[l.Room]; ok && bytes.Equal(before.Settings, l.Settings) {
			l.Rules, l.Lanes = before.Rules, before.Lanes // which nobody writes to
			return l, nil
		}
	}
	return ruled(l)
}

// Dropped notes that nothing is left in Redis of a deleted room. If the room has
// been made again meanwhile, nothing changes.
func (s *Store) Dropped(ctx context.Context, name string, generation int64) error {
	const q = `UPDATE rooms SET dropped_at = now() WHERE name = $1 AND generation = $2 AND deleted_at IS NOT NULL`
	if _, err := s.db.Exec(ctx, q, name, generation); err != nil {
		return fmt.Errorf("drop room %s: %w", name, err)
	}
	return nil
}

// Begin makes a new generation of the room out of the one that the caller has
// seen, and returns it. Of several callers at once one wins; the others get
// queue.ErrGeneration and change nothing. Tickets of before stay good, unless
// the room was never begun or has been flushed since.
func (s *Store) Begin(ctx context.Context, name string, generation int64) (queue.Life, error) {
	// The number is drawn before the row is locked, and still above the one
	// replaced: that one was read by the caller, so it was drawn earlier.
	const q = `WITH next AS MATERIALIZED (SELECT nextval('generations') AS n)
		UPDATE rooms r SET generation = next.n, restorable_from = coalesce(r.restorable_from, next.n)
		FROM next LEFT JOIN room_progress p ON p.room = $1
		WHERE r.name = $1 AND r.generation = $2 AND r.deleted_at IS NULL
		RETURNING ` + lifeColumns
	l, err := scanLife(s.db.QueryRow(ctx, q, name, generation))
	if errors.Is(err, pgx.ErrNoRows) {
		err = queue.ErrGeneration
	}
	if err == nil {
		l, err = ruled(l)
	}
	if err != nil {
		return queue.Life{}, fmt.Errorf("begin room %s after generation %d: %w", name, generation, err)
	}
	return l, nil
}

// Advance raises floors and last scores to at least what is given, for all
// rooms of a round in one statement. Nothing ever goes down within a sale, and an
// earlier sale changes no floors of a later one, so late and repeated calls do no
// harm.
func (s *Store) Advance(ctx context.Context, round []queue.Progress) error {
	// Rows are locked in the order of their names: schedulers that write at once
	// wait for each other and never in a circle.
	q := fmt.Sprintf(`INSERT INTO room_progress (room, sale, floors, last_score)
		SELECT room, sale, ARRAY[%s], max(last)
		FROM unnest($1::text[], $2::bigint[], $3::bigint[], %s) AS t (room, sale, last, %s)
		GROUP BY room, sale ORDER BY room
		ON CONFLICT (room) DO UPDATE SET
			floors = CASE WHEN room_progress.sale = excluded.sale THEN ARRAY[%s]
				WHEN room_progress.sale < excluded.sale THEN excluded.floors ELSE room_progress.floors END,
			sale = greatest(room_progress.sale, excluded.sale), last_score = greatest(room_progress.last_score, excluded.last_score), written_at = now()`,
		perLane("max(f%[1]d)", 0), perLane("$%[1]d::bigint[]", 4), perLane("f%[1]d", 0),
		perLane("greatest(room_progress.floors[%[1]d], excluded.floors[%[1]d])", 1))
	if len(round) == 0 { // a round in which nobody was taken
		return nil
	}
	args, err := columns(round)
	if err != nil {
		return fmt.Errorf("advance rooms: %w", err)
	}
	if _, err := s.db.Exec(ctx, q, args...); err != nil {
		return fmt.Errorf("advance rooms: %w", err)
	}
	return nil
}

// perLane repeats a piece of SQL for each lane, numbered from first on.
func perLane(piece string, first int) string {
	pieces := make([]string, queue.MaxLanes)
	for i := range pieces {
		pieces[i] = fmt.Sprintf(piece, first+i)
	}
	return strings.Join(pieces, ", ")
}

// columns turns a round into the arrays of one unnest: rooms, sales, last scores,
// and the floors of each lane. A round has a room once.
func columns(round []queue.Progress) ([]any, error) {
	rooms, sales, last := make([]string, len(round)), make([]int64, len(round)), make([]int64, len(round))
	// A lane that a room does not have keeps a floor of 0, which raises nothing.
	var floors [queue.MaxLanes][]int64
	for lane := range floors {
		floors[lane] = make([]int64, len(round))
	}
	for i, p := range round {
		if len(p.Floors) > queue.MaxLanes {
			return nil, fmt.Errorf("room %s has %d floors, at most %d can be kept", p.Room, len(p.Floors), queue.MaxLanes)
		}
		rooms[i], sales[i], last[i] = p.Room, p.Sale, p.LastScore
		for lane, floor := range p.Floors {
			floors[lane][i] = floor
		}
	}
	args := []any{rooms, sales, last}
	for lane := range floors {
		args = append(args, floors[lane])
	}
	return args, nil
}
