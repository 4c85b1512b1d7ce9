package pgstore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestBarredAreTheBlockedTheEvictedAndWhoHasOrdered(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := t.Context()
	require.NoError(t, f.Block(ctx, "sale", room.Subject{Member: "bob"}, ann))
	require.NoError(t, f.Evict(ctx, "sale", room.Subject{Member: "eve"}, ann))
	f.order("ordered", 1, true, false)
	f.order("void", 1, true, true)
	f.order("unlimited", 1, false, false)
	f.order("earlier", 0, true, false)
	all := []string{"bob", "eve", "ordered", "void", "unlimited", "earlier", "free"}

	barred, err := f.Barred(ctx, "sale", 1, all, true)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"bob": true, "eve": true, "ordered": true}, barred)
	barred, err = f.Barred(ctx, "sale", 1, []string{"free", "eve"}, false)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"eve": true}, barred)
	barred, err = f.Barred(ctx, "sale", 2, all, false)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"bob": true}, barred, "an eviction ends with its sale")
	barred, err = f.Barred(ctx, "other", 1, all, true)
	require.NoError(t, err)
	require.Empty(t, barred)
	barred, err = f.Barred(ctx, "sale", 1, nil, true)
	require.NoError(t, err)
	require.Empty(t, barred)
}

func TestPuttingAProductMakesItOrChangesIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := t.Context()
	p := room.Product{SKU: "demo", Stock: 5, PriceCents: 1999, Currency: "EUR"}
	_, err := f.Product(ctx, "demo")
	require.ErrorIs(t, err, room.ErrNotFound)
	_, _, err = f.PutProduct(ctx, p, 1, ann)
	require.ErrorIs(t, err, room.ErrVersion, "what does not exist is at no version")

	made, created, err := f.PutProduct(ctx, p, 0, ann)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, int64(1), made.Version)
	p.Stock = 6
	changed, created, err := f.PutProduct(ctx, p, 1, ann)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, int64(2), changed.Version)
	_, _, err = f.PutProduct(ctx, p, 1, ann)
	require.ErrorIs(t, err, room.ErrVersion)
	got, err := f.Product(ctx, "demo")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(changed, got))

	changes := f.changes("demo")
	require.Len(t, changes, 2)
	require.Contains(t, string(changes[0].Before), `"stock": 5`)
	require.Contains(t, string(changes[0].After), `"stock": 6`)
	require.Nil(t, changes[1].Before)
}

func TestOfProductsPutAtOnceOneIsMadeAndNoneIsLost(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made := make([]bool, 10)
	for _, err := range atOnce(10, func(i int) (err error) {
		p := room.Product{SKU: "demo", Stock: int64(i), Currency: "EUR"}
		_, made[i], err = f.PutProduct(t.Context(), p, 0, ann)
		return err
	}) {
		require.NoError(t, err)
	}
	created := 0
	for _, m := range made {
		if m {
			created++
		}
	}
	require.Equal(t, 1, created)
	got, err := f.Product(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, int64(10), got.Version)
	require.Len(t, f.changes("demo"), 10)
}

func TestTheAuditListPagesWithoutGapsWhileItGrows(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := t.Context()
	for i := range 9 {
		_, err := f.Update(ctx, "sale", 0, batch(100+i), ann)
		require.NoError(t, err)
	}
	_, err := f.Create(ctx, "other", room.Defaults(), ann)
	require.NoError(t, err)
	var versions []int64
	before := int64(0)
	for range 5 { // pages enough, and an end if the cursor stands still
		page, err := f.Changes(ctx, "sale", before, 4)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			versions = append(versions, *c.Version)
		}
		before = page[len(page)-1].ID
		_, err = f.Update(ctx, "sale", 0, batch(1000+int(before)), ann)
		require.NoError(t, err)
	}
	require.Equal(t, []int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, versions)
	all, err := f.Changes(ctx, "", 0, 100)
	require.NoError(t, err)
	require.Len(t, all, len(f.changes("sale"))+1)
}

func TestARecordedChangeIsInTheListWithItsTarget(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	by := ann
	by.Action = "outbox.requeue"
	require.NoError(t, f.Record(t.Context(), by, "outbox/7", map[string]int{"a": 1}, nil))
	changes := f.changes("outbox/7")
	require.Len(t, changes, 1)
	require.Equal(t, "outbox.requeue", changes[0].Action)
	require.Nil(t, changes[0].Version)
	require.JSONEq(t, `{"a":1}`, string(changes[0].Before))
	require.Nil(t, changes[0].After)
}
