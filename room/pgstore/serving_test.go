package pgstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

func TestGenerationsAreOfRoomsThatThereAre(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.Create(t.Context(), "drop", room.Defaults(), ann)
	require.NoError(t, err)
	begun, err := f.Begin(t.Context(), "sale", 0)
	require.NoError(t, err)
	all, err := f.Generations(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"drop": 0, "sale": begun.Generation}, all)
	require.NoError(t, f.Delete(t.Context(), "drop", ann))
	all, err = f.Generations(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"sale": begun.Generation}, all)
}

func TestRestorableIsAboveTheFloorOfItsLaneUnlessExcluded(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ask := func(member string, sale int64, lane int) (int64, bool) {
		floor, ok, err := f.Restorable(t.Context(), "sale", sale, member, lane)
		require.NoError(t, err)
		return floor, ok
	}
	floor, ok := ask("ann", 1, 0)
	require.Zero(t, floor, "nobody was admitted yet")
	require.True(t, ok)

	require.NoError(t, f.Advance(t.Context(), []queue.Progress{{Room: "sale", Sale: 1, Floors: []int64{7, 9, 0, 0}, LastScore: 12}}))
	floor, _ = ask("ann", 1, 0)
	require.EqualValues(t, 7, floor)
	floor, _ = ask("ann", 1, 1)
	require.EqualValues(t, 9, floor)

	require.NoError(t, f.Evict(t.Context(), "sale", room.Subject{Member: "ann"}, ann))
	_, ok = ask("ann", 1, 0)
	require.False(t, ok, "evicted from this sale")
	_, ok = ask("ann", 2, 0)
	require.True(t, ok, "and from no other")
	require.NoError(t, f.Block(t.Context(), "sale", room.Subject{Member: "bob"}, ann))
	_, ok = ask("bob", 2, 0)
	require.False(t, ok, "blocked for good")

	_, _, err := f.Restorable(t.Context(), "sale", 1, "ann", queue.MaxLanes)
	require.Error(t, err)
}
