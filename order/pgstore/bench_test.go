package pgstore_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/order/pgstore"
)

// BenchmarkCreate is one order, of 64 callers at once, all on one product or each
// on one of a hundred: in transactions of its own, and in shared ones.
func BenchmarkCreate(b *testing.B) {
	for _, c := range []struct{ group, products int }{{1, 1}, {64, 1}, {1, 100}, {64, 100}} {
		b.Run(fmt.Sprintf("group=%d/products=%d", c.group, c.products), func(b *testing.B) {
			f := newFixture(b)
			f.exec(`INSERT INTO products SELECT 'p' || i, 1000000000, 1, 'USD' FROM generate_series(0, 99) i`)
			store := pgstore.New(f.pool(size(16)), pgstore.Options{Group: c.group})
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.ResetTimer() // the server may have been started for this
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					o := order.Order{
						ID: uuid.Must(uuid.NewV7()).String(), Grant: uuid.NewString(), Room: "r", Member: "ann",
						Items: []order.Item{{SKU: fmt.Sprintf("p%d", i%c.products), Quantity: 1}},
					}
					_, err := store.Create(b.Context(), o)
					require.NoError(b, err)
				}
			})
		})
	}
}
