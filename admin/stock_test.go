package admin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

func TestARoomIsBoundByAProductThatExistsAndShowsIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	patch := headers{"If-Match": "*"}
	a := f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"stock":"tickets","overbook":1.2}`, patch)
	f.refused(a, 422, "invalid-settings")
	require.Equal(t, []string{"stock"}, a.fields())
	a = f.call("admin", "POST", "/admin/v1/rooms", `{"name":"other","settings":{"stock":"tickets"}}`)
	f.refused(a, 422, "invalid-settings")
	require.Equal(t, []string{"stock"}, a.fields())

	require.Equal(t, 201, f.call("operator", "PUT", "/admin/v1/products/tickets", `{"stock":5,"priceCents":100,"currency":"EUR"}`).status)
	a = f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"stock":"tickets","overbook":1.2}`, patch)
	require.Equal(t, 200, a.status, "%v", a.body)
	require.Equal(t, []any{"tickets", 1.2}, []any{a.setting("stock"), a.setting("overbook")})

	life := f.begin("sale")
	shown := func() answer { return f.call("viewer", "GET", "/admin/v1/rooms/sale/snapshot", "") }
	require.Equal(t, map[string]any{"sku": "tickets", "left": nil, "readAt": nil}, shown().body["stock"])
	for seq, left := range []int64{5, 0} {
		_, err := f.redis.Reserve(t.Context(), "sale", queue.Step{Generation: life.Generation, Term: 1, Leader: "x", Seq: int64(seq + 1)},
			queue.Take{Keep: 1, Effective: 50, Max: 500, Stock: &queue.StockReading{SKU: "tickets", Left: left}})
		require.NoError(t, err)
		stock := shown().body["stock"].(map[string]any)
		require.Equal(t, float64(left), stock["left"])
		require.WithinDuration(t, time.Now(), parseTime(t, stock["readAt"]), time.Minute)
	}
	require.Equal(t, "SOLD_OUT", shown().body["roomState"])
}
