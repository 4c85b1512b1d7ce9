package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/room"
)

// Barred returns those of members who may not be granted anything in this sale:
// blocked, evicted, or, with oneOrder, having ordered already. Others are not
// in the map.
func (s *Store) Barred(ctx context.Context, name string, sale int64, members []string, oneOrder bool) (map[string]bool, error) {
	// The second condition is the predicate of the index orders_once.
	const q = `SELECT member FROM room_exclusions WHERE room = $1 AND sale IN (0, $2) AND member = ANY ($3)
		UNION ALL
		SELECT member FROM orders WHERE $4 AND once AND NOT void AND room = $1 AND sale = $2 AND member = ANY ($3)`
	rows, err := s.db.Query(ctx, q, name, sale, members, oneOrder)
	if err != nil {
		return nil, fmt.Errorf("read who is barred from %s: %w", name, err)
	}
	barred := map[string]bool{}
	var member string
	if _, err := pgx.ForEachRow(rows, []any{&member}, func() error {
		barred[member] = true
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read who is barred from %s: %w", name, err)
	}
	return barred, nil
}

// keptOut is whether $2 is blocked in $1, and evicted from the sale that runs.
const keptOut = `
SELECT coalesce(bool_or(e.kind = 'blocked'), false), coalesce(bool_or(e.kind = 'evicted' AND e.sale = r.sale), false)
FROM rooms r JOIN room_exclusions e ON e.room = r.name AND e.member = $2 WHERE r.name = $1`

// KeptOut says how operators keep member out of the room; not at all out of one
// that is not there.
func (s *Store) KeptOut(ctx context.Context, name, member string) (room.Exclusion, error) {
	var e room.Exclusion
	if err := s.db.QueryRow(ctx, keptOut, name, member).Scan(&e.Blocked, &e.Evicted); err != nil {
		return room.Exclusion{}, fmt.Errorf("read who is kept out of %s: %w", name, err)
	}
	return e, nil
}

// Exclusions lists who is kept out of which room, and gives the list a mark. With
// the mark of a list that is still the same it lists nobody. Evictions from sales
// that are over are left out.
func (s *Store) Exclusions(ctx context.Context, seen string) (bars []room.Bar, mark string, err error) {
	const (
		// Any change changes the sum, but for a chance of one in 2^64.
		marked = `SELECT count(*) || ':' || coalesce(sum(hashtextextended(concat_ws(' ', room, member, sale), 0)), 0) FROM room_exclusions`
		list   = `SELECT e.room, e.member, e.sale FROM room_exclusions e JOIN rooms r ON r.name = e.room WHERE e.sale IN (0, r.sale)`
	)
	// The mark first: what comes in between is listed now, and once more next time.
	if err := s.db.QueryRow(ctx, marked).Scan(&mark); err != nil || mark == seen {
		return nil, mark, err
	}
	rows, err := s.db.Query(ctx, list)
	if err == nil {
		bars, err = pgx.CollectRows(rows, pgx.RowToStructByPos[room.Bar])
	}
	if err != nil {
		return nil, "", fmt.Errorf("list who is kept out: %w", err)
	}
	return bars, mark, nil
}

// excluded is what the audit keeps of a member before and after a change.
type excluded struct {
	room.Subject
	room.Exclusion
}

// exclude does nothing the second time, and says so by its row count.
const exclude = `INSERT INTO room_exclusions (room, member, kind, sale) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`

// Block keeps a member out of the room for good, a new sale or a new room of
// that name included. The place or grant that they have is the caller's to end.
func (s *Store) Block(ctx context.Context, name string, who room.Subject, by room.Actor) error {
	return s.keep(ctx, barring{name, who, "member.block", func(tx pgx.Tx, _ room.Room) error {
		_, err := tx.Exec(ctx, exclude, name, who.Member, "blocked", 0)
		return err
	}}, by)
}

// Evict keeps a member out of the sale that runs. The place or grant that they
// have is the caller's to end.
func (s *Store) Evict(ctx context.Context, name string, who room.Subject, by room.Actor) error {
	return s.keep(ctx, barring{name, who, "member.evict", func(tx pgx.Tx, r room.Room) error {
		_, err := tx.Exec(ctx, exclude, name, who.Member, "evicted", r.Sale)
		return err
	}}, by)
}

// Unblock lets a member in again: it ends the block and every eviction.
func (s *Store) Unblock(ctx context.Context, name string, who room.Subject, by room.Actor) error {
	const q = `DELETE FROM room_exclusions WHERE room = $1 AND member = $2`
	return s.keep(ctx, barring{name, who, "member.unblock", func(tx pgx.Tx, _ room.Room) error {
		_, err := tx.Exec(ctx, q, name, who.Member)
		return err
	}}, by)
}

// barring is a change of whether somebody is kept out of a room.
type barring struct {
	room   string
	who    room.Subject
	action string
	run    func(tx pgx.Tx, r room.Room) error
}

// keep makes the change under the room's lock, so that a flush can't change the
// sale in between. What is so already is no change, and not audited again; unless
// the member holds a place, which ends with the call.
func (s *Store) keep(ctx context.Context, b barring, by room.Actor) error {
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		r, err := locked(ctx, tx, b.room)
		if err != nil {
			return err
		}
		before, after := excluded{Subject: b.who}, excluded{Subject: room.Subject{Member: b.who.Member}}
		if err := tx.QueryRow(ctx, keptOut, b.room, b.who.Member).Scan(&before.Blocked, &before.Evicted); err != nil {
			return err
		}
		if err := b.run(tx, r); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, keptOut, b.room, b.who.Member).Scan(&after.Blocked, &after.Evicted); err != nil {
			return err
		}
		if before == after {
			return nil
		}
		return audit(ctx, tx, by, change{action: b.action, target: b.room, before: before, after: after})
	})
	if err != nil {
		return fmt.Errorf("change who is kept out of %s: %w", b.room, err)
	}
	return nil
}
