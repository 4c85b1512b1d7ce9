package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/outbox"
)

var (
	// errOrderRow marks an error of the first statement, the one that meets other
	// attempts with the same grant.
	errOrderRow = errors.New("insert the order")
	// errRepriced means that a price was changed between the total and the taking
	// of stock.
	errRepriced = errors.New("a price has changed meanwhile")
)

// shortError means that the stock of a product could not be taken.
type shortError struct{ sku string }

func (e shortError) Error() string { return fmt.Sprintf("product %q is short", e.sku) }

// The total is computed before the products are locked, because the order row
// must come first: a second attempt with the same grant then waits for the
// first one without holding any stock. takeStock returns the prices in force,
// which settle prices against.
const (
	insertOrder = `
INSERT INTO orders (id, grant_id, room, sale, generation, member, once, fingerprint, idempotency_key, items, total_cents, currency)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), $10,
       coalesce(sum(p.price_cents * i.quantity), 0)::bigint, coalesce(min(p.currency), '')
FROM unnest($11::text[], $12::bigint[]) AS i (sku, quantity) JOIN products p USING (sku)
RETURNING total_cents, currency, created_at`

	takeStock = `
UPDATE products SET stock = stock - $2 WHERE sku = $1 AND stock >= $2
RETURNING price_cents, currency`
)

// create runs the transaction once. Every error but order.ErrOutcomeUnknown is
// a definite abort, and leaves conn ready for the next question, or closed.
func create(ctx context.Context, conn *pgx.Conn, o order.Order) (order.Order, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return order.Order{}, fmt.Errorf("begin: %w", err)
	}
	if err := write(ctx, tx, &o); err != nil {
		rollback(ctx, tx)
		return order.Order{}, err
	}
	if err := commit(ctx, tx); err != nil {
		return order.Order{}, err
	}
	return o, nil
}

// rollback gives the locks back at once, even if the client has hung up. If it
// fails the connection is closed, which comes to the same.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// write sends all statements at once, reads every answer, and completes o.
func write(ctx context.Context, tx pgx.Tx, o *order.Order) error {
	batch, err := statements(*o)
	if err != nil {
		return err
	}
	results := tx.SendBatch(ctx, batch)
	defer func() { _ = results.Close() }() // its error, if any, is read below

	if err := termsHold(results, *o); err != nil {
		return err
	}
	if err := results.QueryRow().Scan(&o.TotalCents, &o.Currency, &o.CreatedAt); err != nil {
		return fmt.Errorf("%w: %w", errOrderRow, err)
	}
	if err := taken(results, *o); err != nil {
		return err
	}
	if _, err := results.Exec(); err != nil {
		return fmt.Errorf("append the event: %w", err)
	}
	// Closing reads on to the end of the batch: only then has everything been
	// answered.
	if err := results.Close(); err != nil {
		return fmt.Errorf("finish the batch: %w", err)
	}
	return nil
}

func statements(o order.Order) (*pgx.Batch, error) {
	event, err := outbox.NewConsume(o.ID, o.Room, outbox.Consume{Member: o.Member, Grant: o.Grant})
	if err != nil {
		return nil, err
	}
	skus, quantities := make([]string, len(o.Items)), make([]int64, len(o.Items))
	for i, it := range o.Items {
		skus[i], quantities[i] = it.SKU, int64(it.Quantity)
	}
	batch := &pgx.Batch{}
	queueTerms(batch, o)
	batch.Queue(insertOrder, o.ID, o.Grant, o.Room, o.Sale, o.Generation, o.Member, o.Once, o.Fingerprint[:],
		o.IdempotencyKey, rows(o.Items), skus, quantities)
	for i := range skus {
		batch.Queue(takeStock, skus[i], quantities[i])
	}
	outbox.Queue(batch, event)
	return batch, nil
}

// taken reads what takeStock has answered for each item.
func taken(results pgx.BatchResults, o order.Order) error {
	var total int64
	var first string
	mixed := false
	for i, it := range o.Items {
		var price int64
		var currency string
		err := results.QueryRow().Scan(&price, &currency)
		if errors.Is(err, pgx.ErrNoRows) {
			return shortError{it.SKU}
		}
		if err != nil {
			return fmt.Errorf("take stock of %q: %w", it.SKU, err)
		}
		total += price * int64(it.Quantity)
		if i == 0 {
			first = currency
		}
		mixed = mixed || currency != first
	}
	switch {
	case mixed:
		return order.ErrMixedCurrency
	case total != o.TotalCents || first != o.Currency:
		return errRepriced
	}
	return nil
}

const productExists = `SELECT EXISTS (SELECT FROM products WHERE sku = $1)`

// shortage says why the stock of sku could not be taken.
func shortage(ctx context.Context, conn *pgx.Conn, sku string) error {
	var exists bool
	if err := conn.QueryRow(ctx, productExists, sku).Scan(&exists); err != nil {
		return fmt.Errorf("look for product %q: %w", sku, unavailable(err))
	}
	if !exists {
		return order.UnknownProductError{SKU: sku}
	}
	return order.SoldOutError{SKU: sku}
}
