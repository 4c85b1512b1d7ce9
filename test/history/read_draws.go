package history

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/linekeeper/linekeeper/draw"
)

const (
	drawsOf = `SELECT sale, seed, ordering, lanes, listed_at IS NOT NULL, coalesce(entrants, 0), coalesce(root, '') FROM draws WHERE room = $1 ORDER BY sale`
	listOf  = `SELECT coalesce(string_agg(body, '' ORDER BY piece), '') FROM draw_pieces WHERE room = $1 AND sale = $2`
)

// readDraws reads the draws and lotteries of a room, with their lists as they
// would be served.
func readDraws(ctx context.Context, pool *pgxpool.Pool, room string) ([]DrawRow, error) {
	rows, err := collect(ctx, pool, func(row pgx.CollectableRow) (headed, error) { return scanDraw(row, room) }, drawsOf, room)
	if err != nil {
		return nil, err
	}
	out := make([]DrawRow, len(rows))
	for i, r := range rows {
		out[i] = r.DrawRow
		if !r.Listed {
			continue
		}
		var lines string
		if err := pool.QueryRow(ctx, listOf, room, r.Sale).Scan(&lines); err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := r.header.WriteHeader(&text); err != nil {
			return nil, err
		}
		out[i].List = text.String() + lines
	}
	return out, nil
}

// headed is a draw with the header of its list.
type headed struct {
	DrawRow
	header draw.Header
}

func scanDraw(row pgx.CollectableRow, room string) (headed, error) {
	var d headed
	var lanes, root []byte
	var entrants int64
	if err := row.Scan(&d.Sale, &d.Seed, &d.Order, &lanes, &d.Listed, &entrants, &root); err != nil {
		return d, err
	}
	if err := json.Unmarshal(lanes, &d.Lanes); err != nil {
		return d, err
	}
	plan, err := d.plan(room)
	if err != nil || !d.Listed {
		return d, err
	}
	d.header = plan.ListHeader(entrants, draw.ReadHashes(root)[0])
	return d, nil
}

// plan is the draw as its room computes places by.
func (d DrawRow) plan(room string) (draw.Plan, error) {
	seed, err := draw.ParseSeed(d.Seed)
	return draw.Plan{Draw: draw.Draw{Room: room, Sale: d.Sale, Seed: seed}, Order: d.Order, Lanes: d.Lanes}, err
}
