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

// Excluded returns those of members whom operators keep out of this sale.
// Others are not in the map.
func (s *Store) Excluded(ctx context.Context, name string, sale int64, members []string) (map[string]bool, error) {
	return s.Barred(ctx, name, sale, members, false)
}

// exclusion is what the audit keeps of one.
type exclusion struct {
	Member string `json:"member"`
	Sale   int64  `json:"sale,omitempty"` // 0: every sale
}

// exclude does nothing the second time, and says so by its row count: what was
// so before is not audited again.
const exclude = `INSERT INTO room_exclusions (room, member, kind, sale) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`

// Block keeps a member out of the room for good, a new sale or a new room of
// that name included. A place or grant that the member has is not touched.
func (s *Store) Block(ctx context.Context, name, member string, by room.Actor) error {
	return s.exclusion(ctx, name, func(tx pgx.Tx, r room.Room) error {
		tag, err := tx.Exec(ctx, exclude, name, member, "blocked", 0)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return audit(ctx, tx, by, change{action: "member.block", target: name, after: exclusion{Member: member}})
	})
}

// Evict keeps a member out of the sale that runs. A place or grant that the
// member has is not touched.
func (s *Store) Evict(ctx context.Context, name, member string, by room.Actor) error {
	return s.exclusion(ctx, name, func(tx pgx.Tx, r room.Room) error {
		tag, err := tx.Exec(ctx, exclude, name, member, "evicted", r.Sale)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return audit(ctx, tx, by, change{action: "member.evict", target: name, after: exclusion{member, r.Sale}})
	})
}

// Unblock lets a member in again: it ends the block and every eviction.
func (s *Store) Unblock(ctx context.Context, name, member string, by room.Actor) error {
	const q = `DELETE FROM room_exclusions WHERE room = $1 AND member = $2`
	return s.exclusion(ctx, name, func(tx pgx.Tx, r room.Room) error {
		tag, err := tx.Exec(ctx, q, name, member)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return audit(ctx, tx, by, change{action: "member.unblock", target: name, before: exclusion{Member: member}})
	})
}

// exclusion runs a change of who is kept out, under the room's lock so that a
// flush can't change the sale in between. Doing it twice is done once.
func (s *Store) exclusion(ctx context.Context, name string, change func(tx pgx.Tx, r room.Room) error) error {
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		r, err := locked(ctx, tx, name)
		if err != nil {
			return err
		}
		return change(tx, r)
	})
	if err != nil {
		return fmt.Errorf("change who is kept out of %s: %w", name, err)
	}
	return nil
}
