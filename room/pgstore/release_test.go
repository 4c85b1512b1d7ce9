package pgstore_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestReleasesAtOnceAddUp(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	before := f.life()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := f.Release(t.Context(), "sale", 3, 0, ann)
			require.NoError(t, err)
		})
	}
	all.Wait()
	after := f.life()
	require.EqualValues(t, 60, after.Released)
	require.Equal(t, before.Version+20, after.Version, "schedulers compare the version")
	require.Len(t, f.changes("sale"), 21)
}

func TestAReleaseRepeatedWithItsVersionAddsNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.Release(t.Context(), "sale", 3, 1, ann)
	require.NoError(t, err)
	_, err = f.Release(t.Context(), "sale", 3, 1, ann)
	require.ErrorIs(t, err, room.ErrVersion)
	require.EqualValues(t, 3, f.life().Released)
	_, err = f.Release(t.Context(), "nowhere", 3, 0, ann)
	require.ErrorIs(t, err, room.ErrNotFound)
}
