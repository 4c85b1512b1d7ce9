package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/linekeeper/linekeeper/api/jsonbody"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/order/pgstore"
)

// The statements are those of package order/pgstore for one order. The grant is a
// random one, because the column asks for one: nobody was asked for it.
const (
	insertOrder = `
INSERT INTO orders (id, grant_id, room, sale, generation, member, items, total_cents, currency)
SELECT $1, $2, 'bare', 1, 1, $3, $4,
       coalesce(sum(p.price_cents * i.quantity), 0)::bigint, coalesce(min(p.currency), '')
FROM unnest($5::text[], $6::bigint[]) AS i (sku, quantity) JOIN products p USING (sku)
RETURNING total_cents, currency, created_at`

	takeStock = `
UPDATE products SET stock = stock - $2 WHERE sku = $1 AND stock >= $2
RETURNING price_cents, currency`
)

// bareServer takes orders of anybody: the order and the stock in one transaction,
// its statements sent at once as the product sends them, and nothing else.
func bareServer(ctx context.Context, url string) (*comparator, error) {
	db, err := pgstore.NewPool(ctx, url)
	if err != nil {
		return nil, err
	}
	c := newComparator()
	c.close = db.Close
	c.router.Post(orderRoute, func(w http.ResponseWriter, r *http.Request) {
		var body spec.OrderRequest
		if err := jsonbody.Read(w, r, &body); err != nil {
			problem.Write(w, r, jsonbody.Problem(err))
			return
		}
		placed, err := bareOrder(r.Context(), db, r.Header.Get(memberHeader), body.Items)
		if err != nil {
			c.log.Error("order failed", "err", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Location", "/v1/orders/"+placed.ID)
		asJSON(w, http.StatusCreated, placed)
	})
	return c, nil
}

// line of an order, as the product stores it.
type orderLine struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

func bareOrder(ctx context.Context, db *pgxpool.Pool, member string, items []spec.Item) (spec.Order, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return spec.Order{}, err
	}
	o := spec.Order{ID: id.String(), Room: "bare", Member: member, Items: items}
	lines, skus, quantities := make([]orderLine, len(items)), make([]string, len(items)), make([]int64, len(items))
	for i, it := range items {
		lines[i], skus[i], quantities[i] = orderLine{it.SKU, it.Quantity}, it.SKU, int64(it.Quantity)
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(insertOrder, o.ID, uuid.NewString(), member, lines, skus, quantities)
		for i := range skus {
			batch.Queue(takeStock, skus[i], quantities[i])
		}
		results := tx.SendBatch(ctx, batch)
		if err := results.QueryRow().Scan(&o.TotalCents, &o.Currency, &o.CreatedAt); err != nil {
			return errors.Join(err, results.Close())
		}
		for range skus {
			var price int64
			var currency string
			if err := results.QueryRow().Scan(&price, &currency); err != nil {
				return errors.Join(err, results.Close())
			}
		}
		return results.Close()
	})
	o.CreatedAt = o.CreatedAt.In(time.UTC)
	return o, err
}
