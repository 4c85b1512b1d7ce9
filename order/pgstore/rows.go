package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/order"
)

// item is an order.Item as the column items has it.
type item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

func rows(items []order.Item) []item {
	list := make([]item, len(items))
	for i, it := range items {
		list[i] = item(it)
	}
	return list
}

const (
	columns = `
SELECT id::text, grant_id::text, void, room, sale, generation, member, once, fingerprint,
       coalesce(idempotency_key, ''), items, total_cents, currency, created_at
FROM orders `
	byID    = columns + `WHERE id = $1`
	byGrant = columns + `WHERE grant_id = $1`
	byKey   = columns + `WHERE room = $1 AND member = $2 AND idempotency_key = $3`
)

// one reads a single order: order.ErrNotFound if there is none, and
// order.ErrTokenInvalid if the row is a void one.
func one(ctx context.Context, conn *pgx.Conn, query string, args ...any) (order.Order, error) {
	var o order.Order
	var void bool
	var print []byte
	var items []item
	err := conn.QueryRow(ctx, query, args...).Scan(&o.ID, &o.Grant, &void, &o.Room, &o.Sale, &o.Generation, &o.Member,
		&o.Once, &print, &o.IdempotencyKey, &items, &o.TotalCents, &o.Currency, &o.CreatedAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return order.Order{}, order.ErrNotFound
	case err != nil:
		return order.Order{}, fmt.Errorf("read order: %w", unavailable(err))
	case void:
		return order.Order{}, order.ErrTokenInvalid
	}
	copy(o.Fingerprint[:], print)
	for _, it := range items {
		o.Items = append(o.Items, order.Item(it))
	}
	return o, nil
}
