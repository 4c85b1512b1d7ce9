package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// seen looks at a member, and demands that looking has changed nothing at all.
func (f *fixture) seen(member string) queue.Sight {
	f.Helper()
	dump := func() map[string]string {
		all := map[string]string{}
		for _, key := range keys("t", f.room) {
			all[key] = f.rdb.Dump(f.Context(), key).Val()
		}
		return all
	}
	before := dump()
	s, err := f.Look(f.Context(), f.room, member)
	require.NoError(f, err)
	require.Equal(f, before, dump(), "an operator's look has changed the room")
	require.Equal(f, f.clock.UnixMicro(), s.Now.UnixMicro())
	return s
}

func TestALookFindsAMemberInEveryStateAndMovesNobody(t *testing.T) {
	f := setup(t)
	require.Equal(t, queue.Sight{State: queue.StateNotEntered, Now: f.seen("ann").Now, Sale: 3}, f.seen("ann"))
	f.enter("ann", "bob")
	s := f.seen("bob")
	require.Equal(t, []any{queue.StateWaiting, int64(1), int64(2)}, []any{s.State, s.Rank, s.Total})
	require.Equal(t, f.standing("bob").Place, s.Place)

	f.pass(time.Second)
	r := f.reserve()
	require.Equal(t, queue.StateProcessing, f.seen("ann").State)
	f.grantAll(r)
	s = f.seen("ann")
	require.Equal(t, queue.StateReady, s.State)
	require.Equal(t, r.Taken[0].Place, s.Place)
	require.Equal(t, f.clock.Add(30*time.Second).UnixMicro(), s.Expiry.UnixMicro())

	g := f.standing("ann").Grant
	require.NoError(t, f.Claim(t.Context(), g, "c1", 15*time.Second))
	s = f.seen("ann")
	require.Equal(t, queue.StateClaimed, s.State)
	require.Equal(t, f.clock.Add(15*time.Second).UnixMicro(), s.Lease.UnixMicro())
	_, err := f.Consume(t.Context(), f.room, []queue.Spent{{Member: "ann", Grant: g.ID, Order: "o1"}})
	require.NoError(t, err)
	s = f.seen("ann")
	require.Equal(t, []any{queue.StateConsumed, "o1", f.clock.UnixMicro()}, []any{s.State, s.OrderID, s.Ended.UnixMicro()})

	_, err = f.Leave(t.Context(), f.room, "bob", 0, queue.OutcomeEvicted)
	require.NoError(t, err)
	s = f.seen("bob")
	require.Equal(t, []any{queue.StateNotEntered, queue.OutcomeEvicted}, []any{s.State, s.Outcome})
}

// Nothing has run since: the look knows what time has decided all the same.
func TestALookCountsWhatTimeHasDecidedAsDone(t *testing.T) {
	f := setup(t)
	f.enter("ann", "bob", "eve")
	f.pass(time.Second)
	f.reserve()
	f.pass(5 * time.Second)
	require.Equal(t, queue.StateWaiting, f.seen("ann").State, "processing is over")
	require.Equal(t, int64(1), f.seen("ann").Total)
	f.reap()
	f.pass(time.Second)
	r := f.reserve()
	f.grantAll(r)
	ann, bob := f.standing("ann").Grant, f.standing("bob").Grant
	require.NoError(t, f.Claim(t.Context(), bob, "c1", 15*time.Second))
	_, err := f.PickUp(t.Context(), ann, "k")
	require.NoError(t, err)
	f.pass(16 * time.Second)
	require.Equal(t, queue.StateReady, f.seen("bob").State, "the lease is over")
	f.pass(15 * time.Second)
	s := f.seen("eve")
	require.Equal(t, queue.StateAway, s.State, "nobody fetched the grant")
	require.Equal(t, r.Taken[2].Place, s.Place)
	f.pass(300 * time.Second)
	require.Equal(t, []any{queue.StateNotEntered, queue.OutcomeExpired}, []any{f.seen("ann").State, f.seen("ann").Outcome})
	f.reap()
	require.Equal(t, queue.OutcomeExpired, f.seen("ann").Outcome)
	require.Equal(t, queue.StateAway, f.seen("eve").State)
	require.False(t, f.seen("eve").Since.IsZero())
	f.pass(3600 * time.Second)
	require.Equal(t, queue.StateAway, f.seen("eve").State, "looking is not forgetting")
}

func TestALookIntoARoomWithoutDataSaysSo(t *testing.T) {
	f := setup(t)
	_, err := f.Look(t.Context(), "nowhere", "ann")
	require.ErrorIs(t, err, queue.ErrNoRoom)
}
