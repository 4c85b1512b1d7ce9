package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/room"
)

const productColumns = `sku, stock, price_cents, currency, version, updated_at`

// scanProduct reads a row of productColumns; no row is room.ErrNotFound.
func scanProduct(row pgx.Row) (room.Product, error) {
	var p room.Product
	err := row.Scan(&p.SKU, &p.Stock, &p.PriceCents, &p.Currency, &p.Version, &p.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return room.Product{}, room.ErrNotFound
	}
	p.UpdatedAt = p.UpdatedAt.UTC()
	return p, err
}

// Product returns the product, or room.ErrNotFound.
func (s *Store) Product(ctx context.Context, sku string) (room.Product, error) {
	const q = `SELECT ` + productColumns + ` FROM products WHERE sku = $1`
	p, err := scanProduct(s.db.QueryRow(ctx, q, sku))
	if err != nil {
		return room.Product{}, fmt.Errorf("get product %s: %w", sku, err)
	}
	return p, nil
}

// PutProduct makes the product, or gives it this stock, price and currency.
// ifVersion is the version that the caller has seen, 0 for any; another one is
// room.ErrVersion. created tells which of the two it was. Orders take from the
// stock all the time, so what is put counts from the moment of the commit.
func (s *Store) PutProduct(ctx context.Context, p room.Product, ifVersion int64, by room.Actor) (put room.Product, created bool, err error) {
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if ifVersion == 0 {
			if put, created, err = insertProduct(ctx, tx, p, by); created || err != nil {
				return err
			}
		}
		put, err = updateProduct(ctx, tx, p, ifVersion, by)
		return err
	})
	if err != nil {
		return room.Product{}, false, fmt.Errorf("put product %s: %w", p.SKU, err)
	}
	return put, created, nil
}

// insertProduct leaves a product that exists alone. Two that insert at once
// meet on the key, and the second goes on to update.
func insertProduct(ctx context.Context, tx pgx.Tx, p room.Product, by room.Actor) (room.Product, bool, error) {
	const q = `INSERT INTO products (sku, stock, price_cents, currency) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING RETURNING ` + productColumns
	made, err := scanProduct(tx.QueryRow(ctx, q, p.SKU, p.Stock, p.PriceCents, p.Currency))
	if errors.Is(err, room.ErrNotFound) {
		return room.Product{}, false, nil
	}
	if err != nil {
		return room.Product{}, false, err
	}
	return made, true, audit(ctx, tx, by, change{action: "product.put", target: p.SKU, version: made.Version, after: made})
}

func updateProduct(ctx context.Context, tx pgx.Tx, p room.Product, ifVersion int64, by room.Actor) (room.Product, error) {
	const lock = `SELECT ` + productColumns + ` FROM products WHERE sku = $1 FOR UPDATE`
	const q = `UPDATE products SET stock = $2, price_cents = $3, currency = $4, version = version + 1, updated_at = now()
		WHERE sku = $1 RETURNING ` + productColumns
	before, err := scanProduct(tx.QueryRow(ctx, lock, p.SKU))
	if err != nil && !errors.Is(err, room.ErrNotFound) {
		return room.Product{}, err
	}
	// Before "not found": what the caller has seen at a version is gone, or never
	// was, and both are an If-Match that does not hold.
	if ifVersion != 0 && ifVersion != before.Version {
		return room.Product{}, room.VersionError{Version: before.Version}
	}
	if err != nil {
		return room.Product{}, err
	}
	after, err := scanProduct(tx.QueryRow(ctx, q, p.SKU, p.Stock, p.PriceCents, p.Currency))
	if err != nil {
		return room.Product{}, err
	}
	return after, audit(ctx, tx, by, change{action: "product.put", target: p.SKU, version: after.Version, before: before, after: after})
}
