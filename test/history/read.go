package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// ReadFinal reads all that Redis and Postgres hold of a room. It is not one
// moment: nothing should be under way.
func ReadFinal(ctx context.Context, rdb redis.UniversalClient, pool *pgxpool.Pool, prefix, room string) (Final, error) {
	var f Final
	var err error
	if f.Redis, err = readRedis(ctx, rdb, prefix+":{"+room+"}:"); err != nil {
		return Final{}, fmt.Errorf("read room %s from redis: %w", room, err)
	}
	if err := readPostgres(ctx, pool, room, &f); err != nil {
		return Final{}, fmt.Errorf("read room %s from postgres: %w", room, err)
	}
	return f, nil
}

// readRedis goes the way of the journal: what a member's keys hold becomes the
// fields of an entry, so that there is one reader of records.
func readRedis(ctx context.Context, rdb redis.UniversalClient, base string) (Dump, error) {
	members := map[string]map[string]text{}
	put := func(m, field, value string) {
		if members[m] == nil {
			members[m] = map[string]text{}
		}
		if old := members[m][field]; old != "" {
			value = string(old) + "," + value
		}
		members[m][field] = text(value)
	}
	for _, z := range []struct{ key, field string }{
		{"lane0", "score"}, {"lane1", "score"}, {"lane2", "score"}, {"lane3", "score"}, {"seen", "seen"}, {"away", "away"},
		{"processing", "processing"}, {"ready", "ready"}, {"claimed", "claimed"}, {"done", "done"},
	} {
		found, err := rdb.ZRangeWithScores(ctx, base+z.key, 0, -1).Result()
		if err != nil {
			return Dump{}, err
		}
		for _, e := range found {
			m := e.Member.(string)
			put(m, z.field, strconv.FormatFloat(e.Score, 'f', 0, 64))
			if z.field == "score" {
				put(m, "lane", z.key[4:])
			}
		}
	}
	for _, h := range []struct{ key, field string }{
		{"away:place", "place"}, {"processing:place", "held"}, {"grants", "grant"}, {"done:info", "outcome"},
	} {
		found, err := rdb.HGetAll(ctx, base+h.key).Result()
		if err != nil {
			return Dump{}, err
		}
		for m, v := range found {
			put(m, h.field, v)
		}
	}
	return readHashes(ctx, rdb, base, members)
}

func readHashes(ctx context.Context, rdb redis.UniversalClient, base string, members map[string]map[string]text) (Dump, error) {
	d := Dump{Members: make(map[string]Member, len(members)), Stats: map[string]int64{}}
	var hashes [3]map[string]text
	for i, key := range []string{"conf", "state", "stats"} {
		found, err := rdb.HGetAll(ctx, base+key).Result()
		if err != nil {
			return Dump{}, err
		}
		hashes[i] = make(map[string]text, len(found))
		for name, v := range found {
			hashes[i][name] = text(v)
		}
		if i == 0 {
			d.Conf, d.Begun = found, len(found) > 0
		}
	}
	p := &parser{}
	d.Generation, d.State = p.int(hashes[0]["generation"]), p.state(hashes[1])
	for name, v := range hashes[2] {
		d.Stats[name] = p.int(v)
	}
	for m, fields := range members {
		d.Members[m] = p.member(fields)
	}
	return d, p.err
}

const (
	ordersOf = `
SELECT id::text, grant_id::text, void, room, member, sale, generation, once, coalesce(idempotency_key, ''), items, created_at
FROM orders WHERE room = $1 ORDER BY created_at, id`
	eventsOf = `
SELECT o.id, o.order_id::text, o.kind, o.status, coalesce(o.payload->>'member', ''), coalesce(o.payload->>'grant', ''), o.attempts
FROM outbox o WHERE o.room = $1 ORDER BY o.id`
	progressOf   = `SELECT floors, last_score FROM room_progress WHERE room = $1`
	exclusionsOf = `SELECT member, kind, sale FROM room_exclusions WHERE room = $1 ORDER BY member, kind, sale`
	productsAll  = `SELECT sku, stock FROM products ORDER BY sku`
)

func readPostgres(ctx context.Context, pool *pgxpool.Pool, room string, f *Final) error {
	var err error
	if f.Orders, err = collect(ctx, pool, scanOrder, ordersOf, room); err != nil {
		return err
	}
	if f.Outbox, err = collect(ctx, pool, func(row pgx.CollectableRow) (o OutboxRow, err error) {
		return o, row.Scan(&o.ID, &o.Order, &o.Kind, &o.Status, &o.Member, &o.Grant, &o.Attempts)
	}, eventsOf, room); err != nil {
		return err
	}
	if f.Exclusions, err = collect(ctx, pool, func(row pgx.CollectableRow) (e Exclusion, err error) {
		return e, row.Scan(&e.Member, &e.Kind, &e.Sale)
	}, exclusionsOf, room); err != nil {
		return err
	}
	if f.Draws, err = readDraws(ctx, pool, room); err != nil {
		return err
	}
	if f.Products, err = collect(ctx, pool, func(row pgx.CollectableRow) (p Product, err error) {
		return p, row.Scan(&p.SKU, &p.Stock)
	}, productsAll); err != nil {
		return err
	}
	err = pool.QueryRow(ctx, progressOf, room).Scan(&f.Progress.Floors, &f.Progress.LastScore)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // nobody has been admitted yet
	}
	return err
}

func collect[T any](ctx context.Context, pool *pgxpool.Pool, scan pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, err := pool.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

func scanOrder(row pgx.CollectableRow) (OrderRow, error) {
	var o OrderRow
	var items []byte
	err := row.Scan(&o.ID, &o.Grant, &o.Void, &o.Room, &o.Member, &o.Sale, &o.Generation, &o.Once, &o.Key, &items, &o.CreatedAt)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(items, &o.Items); err != nil {
		return o, fmt.Errorf("items of order %s: %w", o.ID, err)
	}
	o.Content = Content(o.Items)
	return o, nil
}
