package pgstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/room"
)

// change is one audit row to be. before and after are nil for what did not
// exist before, or does not after.
type change struct {
	action, target string
	version        int64 // 0: the target has none
	before, after  any
}

// audit writes the row in the transaction of the change itself: there is no
// change without its row, and no row without its change.
func audit(ctx context.Context, tx pgx.Tx, by room.Actor, c change) error {
	const q = `INSERT INTO room_changes (actor, role, remote, action, target, version, before, after, request_id)
		VALUES ($1, $2, $3, $4, $5, nullif($6::bigint, 0), $7, $8, $9)`
	before, err := document(c.before)
	if err != nil {
		return fmt.Errorf("audit %s: %w", c.action, err)
	}
	after, err := document(c.after)
	if err != nil {
		return fmt.Errorf("audit %s: %w", c.action, err)
	}
	action := cmp.Or(by.Action, c.action)
	if _, err := tx.Exec(ctx, q, by.Name, by.Role, by.Remote, action, c.target, c.version, before, after, by.RequestID); err != nil {
		return fmt.Errorf("audit %s: %w", c.action, err)
	}
	return nil
}

// document is nil, and so NULL, for nil: json.Marshal would make it a JSON null.
func document(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}

// Record writes an audit row for a change that is made elsewhere, such as a
// requeue in the outbox. Call it before the change: one that could not be
// written down is better not made.
func (s *Store) Record(ctx context.Context, by room.Actor, target string, before, after any) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		return audit(ctx, tx, by, change{action: by.Action, target: target, before: before, after: after})
	})
}

// Changes lists the audit rows with ids below before (0: from the newest on),
// newest first, of one target or, with an empty target, of all.
func (s *Store) Changes(ctx context.Context, target string, before int64, limit int) ([]room.Change, error) {
	const q = `SELECT id, at, actor, role, remote, action, target, version, before, after, request_id
		FROM room_changes WHERE ($1 = '' OR target = $1) AND ($2::bigint = 0 OR id < $2) ORDER BY id DESC LIMIT $3`
	rows, err := s.db.Query(ctx, q, target, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	changes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[room.Change])
	if err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	for i := range changes {
		changes[i].At = changes[i].At.UTC()
	}
	return changes, nil
}
