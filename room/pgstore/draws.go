package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/draw"
	"github.com/linekeeper/linekeeper/room"
)

// planDraw fixes how places of the room's sale go by lot, with a new seed, while
// nobody can have entered. It runs in the transaction that begins the sale or
// changes what it depends on, so a sale that goes by lot always has its seed.
func planDraw(ctx context.Context, tx pgx.Tx, r room.Room) error {
	const remove = `DELETE FROM draws WHERE room = $1 AND sale = $2`
	const insert = `INSERT INTO draws (room, sale, seed, ordering, lanes) VALUES ($1, $2, $3, $4, $5)`
	if _, err := tx.Exec(ctx, remove, r.Name, r.Sale); err != nil {
		return err
	}
	if !r.Settings.ByLot() {
		return nil
	}
	order := draw.Uniform
	if r.Settings.Weighted() {
		order = draw.Weighted
	}
	lanes := make([]draw.Lane, len(r.Settings.Lanes))
	for i, l := range r.Settings.Lanes {
		lanes[i] = draw.Lane{Name: l.Name, Weight: l.Weight}
	}
	_, err := tx.Exec(ctx, insert, r.Name, r.Sale, draw.NewSeed().Reveal(), order, lanes)
	return err
}

// Draw returns the draw or lottery of a sale with its seed, or room.ErrNoDraw.
func (s *Store) Draw(ctx context.Context, name string, sale int64) (draw.Record, error) {
	const q = `SELECT seed, ordering, lanes, listed_at IS NOT NULL, coalesce(entrants, 0), root, pieces FROM draws WHERE room = $1 AND sale = $2`
	var seed string
	var lanes, root, roots []byte
	var entrants int64
	rec := draw.Record{Plan: draw.Plan{Draw: draw.Draw{Room: name, Sale: sale}}}
	err := s.db.QueryRow(ctx, q, name, sale).Scan(&seed, &rec.Order, &lanes, &rec.Listed, &entrants, &root, &roots)
	if errors.Is(err, pgx.ErrNoRows) {
		err = room.ErrNoDraw
	}
	if err == nil {
		rec.Seed, err = draw.ParseSeed(seed)
	}
	if err == nil {
		err = json.Unmarshal(lanes, &rec.Lanes)
	}
	if err == nil && rec.Listed {
		rec.Roots = draw.ReadHashes(roots)
		rec.Header = rec.ListHeader(entrants, slices.Concat(draw.ReadHashes(root), make([]draw.Hash, 1))[0])
	}
	if err != nil {
		return draw.Record{}, fmt.Errorf("draw of room %s: %w", name, err)
	}
	return rec, nil
}

// piecesAtOnce are written by one statement, about 8 MB.
const piecesAtOnce = 64

// KeepList keeps the list of a draw and makes it public with its seed, unless one
// is kept already: the first stays, whoever made it.
func (s *Store) KeepList(ctx context.Context, l *draw.List) error {
	const lock = `SELECT listed_at IS NOT NULL FROM draws WHERE room = $1 AND sale = $2 FOR UPDATE`
	const list = `UPDATE draws SET listed_at = now(), entrants = $3, root = $4, pieces = $5 WHERE room = $1 AND sale = $2`
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		var listed bool
		if err := tx.QueryRow(ctx, lock, l.Room, l.Sale).Scan(&listed); err != nil || listed {
			return err
		}
		roots, err := keepPieces(ctx, tx, l)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, list, l.Room, l.Sale, l.Entrants, l.Root[:], roots)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the list of the draw of room %s: %w", l.Room, err)
	}
	return nil
}

func keepPieces(ctx context.Context, tx pgx.Tx, l *draw.List) ([]byte, error) {
	const q = `INSERT INTO draw_pieces (room, sale, piece, first, body) SELECT $1, $2, * FROM unnest($3::int[], $4::bytea[], $5::text[])`
	var numbers []int
	var firsts [][]byte
	var bodies []string
	write := func() error {
		if len(numbers) == 0 {
			return nil
		}
		_, err := tx.Exec(ctx, q, l.Room, l.Sale, numbers, firsts, bodies)
		numbers, firsts, bodies = nil, nil, nil
		return err
	}
	var roots []byte
	number := 0
	for p := range l.Pieces() {
		numbers, firsts, bodies = append(numbers, number), append(firsts, p.First[:]), append(bodies, string(p.Body))
		roots = draw.AppendHashes(roots, p.Root)
		if number++; len(numbers) == piecesAtOnce {
			if err := write(); err != nil {
				return nil, err
			}
		}
	}
	if roots == nil {
		roots = []byte{} // of a draw without entrants: not NULL
	}
	return roots, write()
}

// Piece reads a piece of a kept list, by number from 0; nil where there is none.
func (s *Store) Piece(ctx context.Context, name string, sale int64, number int) ([]byte, error) {
	const q = `SELECT body FROM draw_pieces WHERE room = $1 AND sale = $2 AND piece = $3`
	var body []byte
	err := s.db.QueryRow(ctx, q, name, sale, number).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list of the draw of room %s: %w", name, err)
	}
	return body, nil
}

// PieceOf finds the piece in which an entrant of a kept list is, if anywhere: its
// number and lines. No lines: in none.
func (s *Store) PieceOf(ctx context.Context, name string, sale int64, entrant draw.Hash) (number int, body []byte, err error) {
	const q = `SELECT piece, body FROM draw_pieces WHERE room = $1 AND sale = $2 AND first <= $3 ORDER BY first DESC LIMIT 1`
	err = s.db.QueryRow(ctx, q, name, sale, entrant[:]).Scan(&number, &body)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("entrant of the draw of room %s: %w", name, err)
	}
	return number, body, nil
}
