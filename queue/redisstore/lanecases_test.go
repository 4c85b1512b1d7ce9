package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// The reports about other systems, in rooms of several lanes. What they say of
// one line is in cases_test.go and where its comment says so.

// Case 1, aws-solutions/virtual-waiting-room-on-aws#154: those who have gone from
// one lane hold up neither their own nor another, and cost no lane its share.
func TestCase1WhoHasGoneFromALaneHoldsUpNoLane(t *testing.T) {
	f := setup(t, weights(1, 1), func(r *queue.Rules) { r.Batch, r.Capacity = 10, 10 })
	f.enterCrowd(0, 30)
	f.enterCrowd(1, 30)
	first := f.tick()
	require.Equal(t, [4]int{5, 5}, perLane(first))
	var here []string
	for i := range 30 {
		here = append(here, fmt.Sprintf("0-%05d", i))
		if i >= 15 { // of the other lane, ten who would be next have gone
			here = append(here, fmt.Sprintf("1-%05d", i))
		}
	}
	for _, m := range first {
		f.pickUp(m)
	}
	f.reap()
	f.keepHearing(125*time.Second, here...)
	require.Empty(t, f.tick(), "the room is full")
	for _, m := range first {
		f.order(m)
	}
	next := f.tick()
	require.Equal(t, [4]int{5, 5}, perLane(next), "%v", next)
	for _, m := range next {
		require.Contains(t, here, m)
	}
	require.True(t, f.away("1-00005"))
	f.conserved()
}

// Case 2, aws-solutions/virtual-waiting-room-on-aws#208: a place that has ended
// counts in no lane any more, and in no rank of a line of several.
func TestCase2ExpiredPlacesAreCountedInNoLane(t *testing.T) {
	f := setup(t, boosted(0, time.Minute), func(r *queue.Rules) { r.Capacity = 4 })
	f.enterCrowd(0, 3)
	f.enterCrowd(1, 3)
	four := f.tick()
	require.Equal(t, [4]int{1, 3}, perLane(four))
	f.order(four[0])
	f.order(four[1])
	f.pickUp(four[2])
	f.pickUp(four[3])
	require.Len(t, f.tick(), 2)
	for _, l := range f.snap().Lanes {
		require.Zero(t, l.Waiting)
	}
	f.pass(301 * time.Second)
	f.reap()
	f.enterLane(0, "ann")
	st := f.standing("ann")
	require.Zero(t, st.Rank)
	require.EqualValues(t, 1, st.Total)
	f.conserved()
}

// Case 4, aws-solutions/virtual-waiting-room-on-aws#265: an order frees its slot
// at once, and it goes to the lane whose turn it is.
func TestCase4AFreedSlotGoesToTheLaneWhoseTurnItIs(t *testing.T) {
	f := setup(t, weights(1, 3), func(r *queue.Rules) { r.Batch, r.Capacity = 4, 4 })
	f.enterCrowd(0, 20)
	f.enterCrowd(1, 20)
	inside := f.tick()
	require.Equal(t, [4]int{1, 3}, perLane(inside))
	var got []string
	for range 8 {
		f.order(inside[0])
		f.pass(time.Second)
		next := f.tick()
		require.Len(t, next, 1, "the slot is free at the next tick, and one is")
		inside, got = append(inside[1:], next[0]), append(got, next[0])
	}
	require.Equal(t, [4]int{2, 6}, perLane(got), "one by one, and still by weight")
	f.conserved()
}

// Case 8, aws-solutions/virtual-waiting-room-on-aws (assign_queue_num.py): a
// repeated enter changes nothing, whichever lane it asks for.
func TestCase8ADuplicateEnterByAnotherLaneKeepsPlaceAndLane(t *testing.T) {
	f := setup(t, boosted(0, time.Hour))
	f.enterLane(0, "ann")
	place := f.standing("ann").Place
	for i := range 60 {
		f.pass(time.Second)
		f.enterLane(i%2, fmt.Sprint("other-", i))
	}
	for lane := range 2 {
		st, err := f.Enter(t.Context(), f.room, "ann", lane)
		require.NoError(t, err)
		require.False(t, st.New)
		require.Equal(t, place, st.Place)
	}
	s := f.snap()
	require.EqualValues(t, 31, s.Lanes[0].Waiting)
	require.EqualValues(t, 30, s.Lanes[1].Waiting)
	require.EqualValues(t, 61, s.Counters["entered"])
}

// Case 13, a trouble that the documentation of Cloudflare's waiting room
// describes: thousands who enter one lane once and never ask again cost those of
// another lane nothing but their lane's share, and hold up no call for long.
func TestCase13AOneShotCrowdInOneLaneCostsAnotherNothing(t *testing.T) {
	f := setup(t, weights(1, 1))
	for i := range 5000 {
		f.enterLane(1, fmt.Sprintf("1-%05d", i))
	}
	var real []string
	for i := range 200 {
		real = append(real, fmt.Sprintf("0-%05d", i))
	}
	f.enterLane(0, real...)
	for round := 0; len(real) > 0; round++ {
		require.Less(t, round, 10, "the share of a lane of 200, at half of 50 a second, is 8 s")
		f.pass(time.Second)
		require.NoError(t, f.Heard(t.Context(), f.room, real))
		f.reap()
		got := f.tick()
		require.Equal(t, min(25, len(real)), perLane(got)[0], "round %d", round)
		real = slices.DeleteFunc(real, func(m string) bool { return slices.Contains(got, m) })
	}
}
