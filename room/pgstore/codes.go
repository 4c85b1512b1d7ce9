package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/linekeeper/linekeeper/room"
)

// madeCodes is what the audit keeps of a call that made codes.
type madeCodes struct {
	Batch int64  `json:"batch"`
	Lane  string `json:"lane"`
	Uses  int    `json:"uses"`
	Count int    `json:"count"`
}

// MakeCodes makes access codes and returns them: this once, because only their
// hashes are kept. room.Problems for a lane that the room does not have.
func (s *Store) MakeCodes(ctx context.Context, name string, want room.NewCodes, by room.Actor) (codes []string, batch int64, err error) {
	const q = `INSERT INTO access_codes (room, hash, ending, batch, lane, uses)
		SELECT $1, h, e, $4, $5, $6 FROM unnest($2::bytea[], $3::text[]) AS t (h, e)`
	hashes, endings := make([][]byte, want.Count), make([]string, want.Count)
	for i := range want.Count {
		code := room.NewCode()
		hash, ending, _ := room.ParseCode(code)
		codes, hashes[i], endings[i] = append(codes, code), hash[:], ending
	}
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		r, err := locked(ctx, tx, name)
		if err != nil {
			return err
		}
		if wrong := r.Settings.Fits(want.Lane); len(wrong) > 0 {
			return wrong
		}
		if err := tx.QueryRow(ctx, `SELECT nextval('access_code_batches')`).Scan(&batch); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, q, name, hashes, endings, batch, want.Lane, want.Uses); err != nil {
			return err
		}
		return audit(ctx, tx, by, change{action: "code.create", target: name, after: madeCodes{batch, want.Lane, want.Uses, want.Count}})
	})
	if err != nil {
		return nil, 0, fmt.Errorf("make codes of %s: %w", name, err)
	}
	return codes, batch, nil
}

// Codes lists up to limit codes of a room with ids above after, lowest first.
func (s *Store) Codes(ctx context.Context, name string, after int64, limit int) ([]room.Code, error) {
	const q = `SELECT c.id, c.batch, c.ending, nullif(c.lane, ''), c.uses, CASE WHEN c.sale = r.sale THEN c.used ELSE 0 END, c.made_at, c.revoked_at
		FROM access_codes c JOIN rooms r ON r.name = c.room
		WHERE c.room = $1 AND c.id > $2 ORDER BY c.id LIMIT $3`
	if _, err := s.Get(ctx, name); err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, q, name, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list codes of %s: %w", name, err)
	}
	codes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[room.Code])
	if err != nil {
		return nil, fmt.Errorf("list codes of %s: %w", name, err)
	}
	for i := range codes {
		codes[i].MadeAt = codes[i].MadeAt.UTC()
		if at := codes[i].RevokedAt; at != nil {
			utc := at.UTC()
			codes[i].RevokedAt = &utc
		}
	}
	return codes, nil
}

// revoked is what the audit keeps of a revocation.
type revoked struct {
	room.Revocation
	Count int64 `json:"count"`
}

// RevokeCodes makes codes count no more, and returns how many did until now. Who
// has entered with one keeps the place.
func (s *Store) RevokeCodes(ctx context.Context, name string, which room.Revocation, by room.Actor) (int64, error) {
	const q = `UPDATE access_codes SET revoked_at = now()
		WHERE room = $1 AND ($2::bigint = 0 OR id = $2) AND ($3::bigint = 0 OR batch = $3) AND revoked_at IS NULL`
	var n int64
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := locked(ctx, tx, name); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, q, name, which.ID, which.Batch)
		if n = tag.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return audit(ctx, tx, by, change{action: "code.revoke", target: name, after: revoked{which, n}})
	})
	if err != nil {
		return 0, fmt.Errorf("revoke codes of %s: %w", name, err)
	}
	return n, nil
}

// revokeAll ends the codes of a room that is deleted, so that another room of its
// name is not entered with them.
func revokeAll(ctx context.Context, tx pgx.Tx, name string) error {
	_, err := tx.Exec(ctx, `UPDATE access_codes SET revoked_at = now() WHERE room = $1 AND revoked_at IS NULL`, name)
	return err
}

// takeUse counts a use and notes whose it is, in one statement. The row of the
// code is updated under the condition that it has a use left, so that of those
// who wait for it only so many get one. Who has used it already takes none. Two
// calls of one member at once: the second meets the first one's note, and fails
// as a whole; or finds nothing left.
const takeUse = `WITH known AS (
		SELECT c.lane FROM access_codes c JOIN access_code_uses u ON u.code = c.id AND u.sale = $3 AND u.member = $4
		WHERE c.room = $1 AND c.hash = $2 AND c.revoked_at IS NULL
	), taken AS (
		UPDATE access_codes SET used = CASE WHEN sale = $3 THEN used + 1 ELSE 1 END, sale = $3
		WHERE room = $1 AND hash = $2 AND revoked_at IS NULL AND (sale < $3 OR sale = $3 AND used < uses) AND NOT EXISTS (SELECT FROM known)
		RETURNING id, lane
	), noted AS (
		INSERT INTO access_code_uses (code, sale, member) SELECT id, $3, $4 FROM taken
	)
	SELECT lane FROM known UNION ALL SELECT lane FROM taken`

// UseCode counts a use of a code for a member in a sale, unless that member has
// used it in this sale already, and returns the code's lane, empty for none.
// room.ErrCode for every code that does not count.
func (s *Store) UseCode(ctx context.Context, name string, sale int64, hash room.CodeHash, member string) (lane string, err error) {
	// Again where nothing was found: the member's own other call may have taken the
	// last use in between.
	for range 2 {
		err = s.db.QueryRow(ctx, takeUse, name, hash[:], sale, member).Scan(&lane)
		var refused *pgconn.PgError
		const uniqueViolation = "23505"
		if !errors.Is(err, pgx.ErrNoRows) && !(errors.As(err, &refused) && refused.Code == uniqueViolation) {
			break
		}
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return "", room.ErrCode
	}
	if err != nil {
		return "", fmt.Errorf("use a code of %s: %w", name, err)
	}
	return lane, nil
}
