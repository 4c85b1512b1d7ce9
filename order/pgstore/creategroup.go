package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/outbox"
)

// A group's transaction has the steps of create, each for all orders at once. An
// order that meets a unique index, of an order elsewhere or in the group itself,
// is left out. Products are locked in the order in which takeStock locks those of
// one order: by bytes, whatever the database sorts by.
const (
	insertOrders = `
INSERT INTO orders (id, grant_id, room, sale, generation, member, once, fingerprint, idempotency_key, items, total_cents, currency)
SELECT o.id, o.grant_id, o.room, o.sale, o.generation, o.member, o.once, o.fingerprint, nullif(o.key, ''), o.items::jsonb,
       coalesce(total.cents, 0), coalesce(total.currency, '')
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bool[], $8::bytea[], $9::text[], $10::text[])
     AS o (id, grant_id, room, sale, generation, member, once, fingerprint, key, items),
     LATERAL (SELECT sum(p.price_cents * i.quantity)::bigint AS cents, min(p.currency) AS currency
              FROM jsonb_to_recordset(o.items::jsonb) AS i (sku text, quantity bigint) JOIN products p USING (sku)) AS total
ON CONFLICT DO NOTHING
RETURNING id::text, total_cents, currency, created_at`

	lockProducts = `
SELECT sku, stock, price_cents, currency FROM products WHERE sku = ANY ($1)
ORDER BY sku COLLATE "C" FOR NO KEY UPDATE`

	deleteOrders = `DELETE FROM orders WHERE id = ANY ($1::uuid[])`

	takeStocks = `
UPDATE products p SET stock = p.stock - t.quantity
FROM unnest($1::text[], $2::bigint[]) AS t (sku, quantity) WHERE p.sku = t.sku`
)

// outcomes is what became of the orders of a group. An order that is in neither
// is not written.
type outcomes struct {
	placed map[*attempt]order.Order
	short  map[*attempt]error // ErrSoldOut or ErrUnknownProduct, as true as the COMMIT is
}

// createGroup runs the transaction of a group once. With order.ErrOutcomeUnknown what is
// placed may be there, or come; any other error is a definite abort.
func createGroup(ctx context.Context, conn *pgx.Conn, group []*attempt) (outcomes, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return outcomes{}, fmt.Errorf("begin: %w", err)
	}
	out, err := writeGroup(ctx, tx, group)
	if err != nil || len(out.placed) == 0 {
		rollback(ctx, tx)
		return out, err
	}
	return out, commit(ctx, tx)
}

// writeGroup sends the statements of a group and reads every answer. Stock is
// given out in the order of arrival; the rows of those who get none go again.
func writeGroup(ctx context.Context, tx pgx.Tx, group []*attempt) (outcomes, error) {
	inserted, stock, err := insertGroup(ctx, tx, group)
	if err != nil {
		return outcomes{}, err
	}
	out := outcomes{placed: map[*attempt]order.Order{}, short: map[*attempt]error{}}
	var refused []string
	for _, a := range group {
		o, ok := inserted[a.order.ID]
		if !ok {
			continue
		}
		err := stock.take(o)
		switch {
		case err == nil:
			out.placed[a] = o
			continue
		case !errors.Is(err, errAlone):
			out.short[a] = err
		}
		refused = append(refused, o.ID)
	}
	if len(out.placed) == 0 {
		return out, nil
	}
	return out, settle(ctx, tx, out, stock, refused)
}

// insertGroup inserts the orders that meet no other, with their totals, and then
// locks every product that is asked for.
func insertGroup(ctx context.Context, tx pgx.Tx, group []*attempt) (map[string]order.Order, shelf, error) {
	args, err := table(group)
	if err != nil {
		return nil, nil, err
	}
	var skus []string
	orders := map[string]order.Order{}
	for _, a := range group {
		orders[a.order.ID] = a.order
		for _, it := range a.order.Items {
			skus = append(skus, it.SKU)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(insertOrders, args...)
	batch.Queue(lockProducts, skus)
	results := tx.SendBatch(ctx, batch)
	defer func() { _ = results.Close() }() // its error, if any, is read below

	inserted, stock := map[string]order.Order{}, shelf{}
	rows, _ := results.Query() // its error is that of the rows
	var o order.Order
	_, err = pgx.ForEachRow(rows, []any{&o.ID, &o.TotalCents, &o.Currency, &o.CreatedAt}, func() error {
		written := orders[o.ID]
		written.TotalCents, written.Currency, written.CreatedAt = o.TotalCents, o.Currency, o.CreatedAt
		inserted[o.ID] = written
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("insert the orders: %w", err)
	}
	rows, _ = results.Query()
	var sku string
	var p product
	_, err = pgx.ForEachRow(rows, []any{&sku, &p.left, &p.price, &p.currency}, func() error {
		at := p
		stock[sku] = &at
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("lock the products: %w", err)
	}
	return inserted, stock, results.Close()
}

// table has the orders of a group as columns, for insertOrders.
func table(group []*attempt) ([]any, error) {
	n := len(group)
	ids, grants, rooms, members := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	sales, generations, once := make([]int64, n), make([]int64, n), make([]bool, n)
	prints, keys, items := make([][]byte, n), make([]string, n), make([]string, n)
	for i, a := range group {
		o := &a.order
		list, err := json.Marshal(rows(o.Items))
		if err != nil {
			return nil, fmt.Errorf("items of order %s: %w", o.ID, err)
		}
		ids[i], grants[i], rooms[i], members[i] = o.ID, o.Grant, o.Room, o.Member
		sales[i], generations[i], once[i] = o.Sale, o.Generation, o.Once
		prints[i], keys[i], items[i] = o.Fingerprint[:], o.IdempotencyKey, string(list)
	}
	return []any{ids, grants, rooms, sales, generations, members, once, prints, keys, items}, nil
}

// settle takes the stock of those who are placed, appends their events, and
// deletes the rows of the refused.
func settle(ctx context.Context, tx pgx.Tx, out outcomes, stock shelf, refused []string) error {
	events := make([]outbox.Event, 0, len(out.placed))
	for _, o := range out.placed {
		event, err := outbox.NewConsume(o.ID, o.Room, outbox.Consume{Member: o.Member, Grant: o.Grant})
		if err != nil {
			return err
		}
		events = append(events, event)
	}
	batch := &pgx.Batch{}
	if len(refused) > 0 {
		batch.Queue(deleteOrders, refused)
	}
	skus, taken := stock.taken()
	batch.Queue(takeStocks, skus, taken)
	outbox.QueueAll(batch, events)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("settle the orders: %w", err)
	}
	return nil
}

// shelf is the products that a group has locked, by SKU.
type shelf map[string]*product

type product struct {
	left, taken, price int64
	currency           string
}

// take takes what o asks for, or nothing. An order that was priced otherwise, or
// in two currencies, is for create to judge.
func (s shelf) take(o order.Order) error {
	var total int64
	for _, it := range o.Items {
		p := s[it.SKU]
		switch {
		case p == nil:
			return order.UnknownProductError{SKU: it.SKU}
		case p.left < int64(it.Quantity):
			return order.SoldOutError{SKU: it.SKU}
		case p.currency != o.Currency:
			return errAlone
		}
		total += p.price * int64(it.Quantity)
	}
	if total != o.TotalCents {
		return errAlone
	}
	for _, it := range o.Items { // each SKU once
		s[it.SKU].left -= int64(it.Quantity)
		s[it.SKU].taken += int64(it.Quantity)
	}
	return nil
}

func (s shelf) taken() (skus []string, quantities []int64) {
	for sku, p := range s {
		if p.taken > 0 {
			skus, quantities = append(skus, sku), append(quantities, p.taken)
		}
	}
	return skus, quantities
}
