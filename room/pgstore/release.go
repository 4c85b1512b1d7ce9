package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/room"
)

// released is what the audit keeps of a release: the running total.
type released struct {
	Released int64 `json:"released"`
}

// Release adds count to those of the room whom operators have let go by hand.
// It is a new version of the room, so that schedulers learn of it as of other
// changes. ifVersion is as in Update: a call that is repeated with the version
// it was first made from is refused with room.ErrVersion, and adds nothing.
func (s *Store) Release(ctx context.Context, name string, count int, ifVersion int64, by room.Actor) (room.Room, error) {
	const q = `UPDATE rooms SET released = released + $2, version = version + 1, updated_at = now() WHERE name = $1 RETURNING ` + roomColumns
	var after room.Room
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		before, err := lockedAt(ctx, tx, name, ifVersion)
		if err != nil {
			return err
		}
		if after, err = scanRoom(tx.QueryRow(ctx, q, name, count)); err != nil {
			return err
		}
		return audit(ctx, tx, by, change{
			action: "room.release", target: name, version: after.Version,
			before: released{before.Released}, after: released{after.Released},
		})
	})
	if err != nil {
		return room.Room{}, fmt.Errorf("release from room %s: %w", name, err)
	}
	return after, nil
}
