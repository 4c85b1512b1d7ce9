package admin_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case 6 as well, aws-solutions/virtual-waiting-room-on-aws#235: a list of 2,500
// is read to its end, each entry once, although what has been read goes from the
// list meanwhile and others come.
func TestCase6TheDeadAreListedEachOnceHoweverManyPages(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const n = 2500
	insert := func(n int) {
		_, err := f.pool.Exec(t.Context(), `WITH o AS (
				INSERT INTO orders (id, grant_id, room, sale, generation, member)
				SELECT gen_random_uuid(), gen_random_uuid(), 'sale', 1, 1, 'bob' FROM generate_series(1, $1) RETURNING id)
			INSERT INTO outbox (order_id, kind, room, payload, status, attempts)
			SELECT id, 'consume', 'sale', '{"member":"bob"}', 'dead', 9 FROM o`, n)
		require.NoError(t, err)
	}
	insert(n)
	var seen []int64
	path, next, pages := "/admin/v1/outbox?status=dead&limit=200", "", 0
	for more := true; more; pages++ {
		require.Less(t, pages, 20, "the pages have no end")
		a := f.call("viewer", "GET", path+next, "")
		require.Equal(t, 200, a.status, "%v", a.body)
		var page []int64
		for _, e := range a.body["entries"].([]any) {
			page = append(page, int64(e.(map[string]any)["id"].(float64)))
		}
		seen = append(seen, page...)
		for _, id := range page[:min(3, len(page))] { // the operator does what has to be done
			require.Equal(t, 204, f.call("operator", "POST", fmt.Sprintf("/admin/v1/outbox/%d/requeue", id), "").status)
		}
		if pages == 3 {
			insert(100)
		}
		if more = a.body["next"] != nil; more {
			next = fmt.Sprintf("&after=%.0f", a.body["next"])
		}
	}
	require.Len(t, seen, n+100)
	require.True(t, slices.IsSorted(seen))
	require.Len(t, slices.Compact(seen), n+100, "an entry was listed twice")
	require.LessOrEqual(t, pages, 14)
}
