package pgstore_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
)

// BenchmarkCreate is one order transaction, from many callers at once: all on
// one product, or each on one of a hundred.
func BenchmarkCreate(b *testing.B) {
	for _, products := range []int{1, 100} {
		b.Run(fmt.Sprintf("products=%d", products), func(b *testing.B) {
			f := newFixture(b)
			f.exec(`INSERT INTO products SELECT 'p' || i, 1000000000, 1, 'USD' FROM generate_series(0, 99) i`)
			store := newStore(f.pool(size(16)))
			b.SetParallelism(16)
			b.ResetTimer() // the server may have been started for this
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					o := order.Order{
						ID: uuid.Must(uuid.NewV7()).String(), Grant: uuid.NewString(), Room: "r", Member: "ann",
						Items: []order.Item{{SKU: fmt.Sprintf("p%d", i%products), Quantity: 1}},
					}
					_, err := store.Create(b.Context(), o)
					require.NoError(b, err)
				}
			})
		})
	}
}
