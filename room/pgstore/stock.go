package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/room"
)

// productExists refuses, as room.Problems, to bound a room by the stock of a
// product that does not exist. It is asked when an operator names the product,
// and not again: a product that is taken away by hand later counts as sold out,
// and must not keep other settings from being changed.
func productExists(ctx context.Context, tx pgx.Tx, sku *string) error {
	const q = `SELECT EXISTS (SELECT FROM products WHERE sku = $1)`
	if sku == nil {
		return nil
	}
	var exists bool
	if err := tx.QueryRow(ctx, q, *sku).Scan(&exists); err != nil {
		return fmt.Errorf("look for product %s: %w", *sku, err)
	}
	if !exists {
		return room.NoSuchProduct(*sku)
	}
	return nil
}

func orNone(sku *string) string {
	if sku == nil {
		return ""
	}
	return *sku
}
