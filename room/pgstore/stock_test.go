package pgstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

// bind sets or takes away the product that bounds the room.
func (f fixture) bind(sku *string) error {
	_, err := f.Update(f.t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) {
		s.Stock = sku
		return s, nil
	}, ann)
	return err
}

func (f fixture) put(sku string, stock int64) {
	f.t.Helper()
	_, _, err := f.PutProduct(f.t.Context(), room.Product{SKU: sku, Stock: stock, Currency: "EUR"}, 0, ann)
	require.NoError(f.t, err)
}

func TestALifeTellsTheStockOfTheProductThatBoundsIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.put("demo", 7)
	require.Zero(t, f.life().StockLeft, "of no product")
	sku := "demo"
	require.NoError(t, f.bind(&sku))
	l := f.life()
	require.Equal(t, int64(7), l.StockLeft)
	require.Equal(t, "demo", l.Rules.Stock)
	begun, err := f.Begin(t.Context(), "sale", l.Generation)
	require.NoError(t, err)
	require.Equal(t, int64(7), begun.StockLeft)
	_, err = f.pool.Exec(t.Context(), `DELETE FROM products`)
	require.NoError(t, err)
	require.Zero(t, f.life().StockLeft, "a product that is gone has nothing left")
}

func TestARoomCanOnlyBeBoundByAProductThatExists(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	want := room.Problems{{Field: "stock", Detail: `must be null or the sku of a product that exists, got "nope"`}}
	sku, before := "nope", f.room()
	var problems room.Problems
	require.ErrorAs(t, f.bind(&sku), &problems)
	require.Equal(t, want, problems)
	require.Equal(t, before, f.room(), "refused, and nothing changed")

	settings := room.Defaults()
	settings.Stock = &sku
	_, err := f.Create(t.Context(), "other", settings, ann)
	require.ErrorAs(t, err, &problems)
	require.Equal(t, want, problems)
	_, err = f.Get(t.Context(), "other")
	require.ErrorIs(t, err, room.ErrNotFound)

	f.put("nope", 0)
	require.NoError(t, f.bind(&sku), "with nothing in stock it may be")
	_, err = f.pool.Exec(t.Context(), `DELETE FROM products`)
	require.NoError(t, err)
	_, err = f.Update(t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) {
		s.Paused = true
		return s, nil
	}, ann)
	require.NoError(t, err, "a product taken away by hand keeps nobody from pausing the room")
	require.NoError(t, f.bind(nil))
	require.Error(t, f.bind(&sku))
}
