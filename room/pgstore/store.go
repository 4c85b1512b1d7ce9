// Package pgstore keeps rooms, their progress, exclusions, products and the
// audit list in Postgres.
//
// It promises that a change and its audit row are one transaction, that of two
// changes made from one version one is refused, that generations only rise,
// and that floors and last scores never go down.
//
//	operators   Create Update Release Flush Delete PutProduct Block ...  -> row locked, changed, audited
//	schedulers  Lives Begin Advance Barred                       -> one statement each
//
// Deleted rooms stay as rows, so that a name used again goes on with the next
// sale. The package does not touch orders or stock being sold; that is package
// order/pgstore's.
package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// Store is safe for use by many goroutines, and many processes at once.
type Store struct {
	db    *pgxpool.Pool
	known atomic.Pointer[map[string]queue.Life] // by room, as Lives last read them
}

// New makes a store on a migrated database. The pool stays the caller's to
// close.
func New(db *pgxpool.Pool) *Store { return &Store{db: db} }

const roomColumns = `name, version, sale, generation, coalesce(restorable_from, 0), settings, released, created_at, updated_at`

// scanRoom reads a row of roomColumns; no row is room.ErrNotFound.
func scanRoom(row pgx.Row) (room.Room, error) {
	var r room.Room
	var settings []byte
	err := row.Scan(&r.Name, &r.Version, &r.Sale, &r.Generation, &r.RestorableFrom, &settings, &r.Released, &r.CreatedAt, &r.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return room.Room{}, room.ErrNotFound
	}
	if err != nil {
		return room.Room{}, err
	}
	r.CreatedAt, r.UpdatedAt = r.CreatedAt.UTC(), r.UpdatedAt.UTC()
	r.Settings, err = stored(r.Name, settings)
	return r, err
}

// stored reads settings of ours. Its errors are not wrapped: what is wrong with
// a row must not look like what is wrong with a request.
func stored(name string, settings []byte) (room.Settings, error) {
	s, err := room.Stored(settings)
	if err != nil {
		return room.Settings{}, fmt.Errorf("settings of room %s can't be read: %v", name, err)
	}
	return s, nil
}

// Get returns the room, or room.ErrNotFound.
func (s *Store) Get(ctx context.Context, name string) (room.Room, error) {
	const q = `SELECT ` + roomColumns + ` FROM rooms WHERE name = $1 AND deleted_at IS NULL`
	r, err := scanRoom(s.db.QueryRow(ctx, q, name))
	if err != nil {
		return room.Room{}, fmt.Errorf("get room %s: %w", name, err)
	}
	return r, nil
}

// List returns all rooms that are not deleted, by name.
func (s *Store) List(ctx context.Context) ([]room.Room, error) {
	const q = `SELECT ` + roomColumns + ` FROM rooms WHERE deleted_at IS NULL ORDER BY name`
	rows, err := s.db.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list rooms: %w", err)
	}
	rooms, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (room.Room, error) { return scanRoom(row) })
	if err != nil {
		return nil, fmt.Errorf("list rooms: %w", err)
	}
	return rooms, nil
}

// locked returns the room and keeps everybody else from changing it until the
// transaction ends.
func locked(ctx context.Context, tx pgx.Tx, name string) (room.Room, error) {
	const q = `SELECT ` + roomColumns + ` FROM rooms WHERE name = $1 AND deleted_at IS NULL FOR UPDATE`
	return scanRoom(tx.QueryRow(ctx, q, name))
}

// lockedAt is locked for a caller who has seen a version, 0 for any.
func lockedAt(ctx context.Context, tx pgx.Tx, name string, version int64) (room.Room, error) {
	r, err := locked(ctx, tx, name)
	if err == nil && version != 0 && version != r.Version {
		return room.Room{}, room.VersionError{Version: r.Version}
	}
	return r, err
}

// Create makes a room. A name that was deleted before goes on with its next
// sale and a generation of its own, so that nothing of the old one counts.
// room.ErrExists, or room.Problems for settings that can't be run.
func (s *Store) Create(ctx context.Context, name string, settings room.Settings, by room.Actor) (room.Room, error) {
	const q = `INSERT INTO rooms (name, settings) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET settings = excluded.settings, version = rooms.version + 1,
			sale = rooms.sale + 1, generation = nextval('generations'), restorable_from = NULL,
			created_at = now(), updated_at = now(), deleted_at = NULL, dropped_at = NULL
		WHERE rooms.deleted_at IS NOT NULL
		RETURNING ` + roomColumns
	if err := settings.Validate(); err != nil {
		return room.Room{}, fmt.Errorf("create room %s: %w", name, err)
	}
	var made room.Room
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		err := productExists(ctx, tx, settings.Stock)
		if err != nil {
			return err
		}
		made, err = scanRoom(tx.QueryRow(ctx, q, name, settings))
		if errors.Is(err, room.ErrNotFound) { // neither inserted nor revived
			return room.ErrExists
		}
		if err != nil {
			return err
		}
		if err := planDraw(ctx, tx, made); err != nil {
			return err
		}
		return audit(ctx, tx, by, change{action: "room.create", target: name, version: made.Version, after: made.Settings})
	})
	if err != nil {
		return room.Room{}, fmt.Errorf("create room %s: %w", name, err)
	}
	return made, nil
}

// Update gives the room the settings that change makes of those in force. The
// row is locked meanwhile, so change must be quick. ifVersion is the version
// that the caller has seen, 0 for any; another one is room.ErrVersion. Settings
// that come out the same are no change: no new version, no audit row. Lanes that
// a room has that was begun stay: room.Problems otherwise.
func (s *Store) Update(ctx context.Context, name string, ifVersion int64, change func(room.Settings) (room.Settings, error), by room.Actor) (room.Room, error) {
	var updated room.Room
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		before, err := lockedAt(ctx, tx, name, ifVersion)
		if err != nil {
			return err
		}
		after, err := change(before.Settings)
		if err != nil {
			return err
		}
		updated, err = write(ctx, tx, before, after, by)
		return err
	})
	if err != nil {
		return room.Room{}, fmt.Errorf("update room %s: %w", name, err)
	}
	return updated, nil
}

// write stores the new settings of a locked room.
func write(ctx context.Context, tx pgx.Tx, before room.Room, after room.Settings, by room.Actor) (room.Room, error) {
	const q = `UPDATE rooms SET settings = $2, version = version + 1, updated_at = now() WHERE name = $1 RETURNING ` + roomColumns
	if err := after.Validate(); err != nil {
		return room.Room{}, err
	}
	if same(before.Settings, after) {
		return before, nil
	}
	if err := mayFollow(ctx, tx, before, after); err != nil {
		return room.Room{}, err
	}
	updated, err := scanRoom(tx.QueryRow(ctx, q, before.Name, after))
	if err == nil && before.RestorableFrom == 0 { // the sale has not begun
		err = planDraw(ctx, tx, updated)
	}
	if err != nil {
		return room.Room{}, err
	}
	return updated, audit(ctx, tx, by, change{
		action: "room.update", target: before.Name, version: updated.Version,
		before: before.Settings, after: updated.Settings,
	})
}

// mayFollow tells what keeps settings that are right by themselves from
// following those of a room.
func mayFollow(ctx context.Context, tx pgx.Tx, before room.Room, after room.Settings) error {
	if before.Generation > 0 { // before that nobody can have entered
		if wrong := before.Settings.Continues(after); len(wrong) > 0 {
			return wrong
		}
	}
	if before.RestorableFrom != 0 { // the sale has begun
		if err := before.Settings.FixedInSale(after); err != nil {
			return err
		}
	}
	if orNone(after.Stock) != orNone(before.Settings.Stock) {
		return productExists(ctx, tx, after.Stock)
	}
	return nil
}

// same compares what would be stored: a nil list and an empty one are equal.
func same(a, b room.Settings) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// lifetime is what a flush changes, for the audit.
type lifetime struct {
	Sale       int64 `json:"sale"`
	Generation int64 `json:"generation"`
}

// Flush ends the sale and the generation of a room: tickets of before count
// for nothing, and the next scheduler round begins it empty.
func (s *Store) Flush(ctx context.Context, name string, by room.Actor) (room.Room, error) {
	const q = `UPDATE rooms SET sale = sale + 1, generation = nextval('generations'), restorable_from = NULL, updated_at = now()
		WHERE name = $1 RETURNING ` + roomColumns
	var flushed room.Room
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		// The lock comes before the number: a number drawn while waiting for the row
		// could be below one that a scheduler has won meanwhile.
		before, err := locked(ctx, tx, name)
		if err != nil {
			return err
		}
		if flushed, err = scanRoom(tx.QueryRow(ctx, q, name)); err != nil {
			return err
		}
		if err := planDraw(ctx, tx, flushed); err != nil {
			return err
		}
		return audit(ctx, tx, by, change{
			action: "room.flush", target: name, version: flushed.Version,
			before: lifetime{before.Sale, before.Generation}, after: lifetime{flushed.Sale, flushed.Generation},
		})
	})
	if err != nil {
		return room.Room{}, fmt.Errorf("flush room %s: %w", name, err)
	}
	return flushed, nil
}

// Delete takes the room away. Its row stays, so that its orders keep a room
// and its name never begins at sale 1 again.
func (s *Store) Delete(ctx context.Context, name string, by room.Actor) error {
	const q = `UPDATE rooms SET deleted_at = now(), updated_at = now() WHERE name = $1`
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		before, err := locked(ctx, tx, name)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, q, name); err != nil {
			return err
		}
		if err := revokeAll(ctx, tx, name); err != nil {
			return err
		}
		return audit(ctx, tx, by, change{action: "room.delete", target: name, version: before.Version, before: before.Settings})
	})
	if err != nil {
		return fmt.Errorf("delete room %s: %w", name, err)
	}
	return nil
}
