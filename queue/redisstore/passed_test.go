package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// passed is per lane how many went without a grant, less those who came back.
func (f *fixture) passed() []int64 {
	f.Helper()
	var out []int64
	for _, l := range f.snap().Lanes {
		out = append(out, l.Passed)
	}
	return out
}

// Whoever goes without having been let through is counted in the lane that they
// stood in, and taken off again when they come back.
func TestThoseWhoGoWithoutAGrantAreCountedByLane(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Weights, r.Batch = []int{1, 1}, 4 })
	for lane, members := range [][]string{{"a0", "a1", "a2"}, {"b0", "b1", "b2", "b3"}} {
		for _, m := range members {
			_, err := f.Enter(t.Context(), f.room, m, lane)
			require.NoError(t, err)
		}
	}
	leave := func(m string) {
		_, err := f.Leave(t.Context(), f.room, m, 0, queue.OutcomeLeft)
		require.NoError(t, err)
	}
	leave("b3")
	require.Equal(t, []int64{0, 1}, f.passed(), "out of the line")
	r := f.reserve()
	require.Len(t, r.Taken, 4)
	leave(r.Taken[0].Member) // a0
	require.Equal(t, []int64{1, 1}, f.passed(), "while processing")
	var ds []queue.Decision
	for _, c := range r.Taken {
		d := queue.Decision{Member: c.Member, Grant: "g-" + c.Member}
		if c.Member == "b0" {
			d.Grant = "" // barred
		}
		ds = append(ds, d)
	}
	_, err := f.Issue(t.Context(), f.room, f.step, ds)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, f.passed())
	leave("a1")
	require.Equal(t, []int64{1, 2}, f.passed(), "who gives a grant up was let through")

	f.reap()
	f.keepHearing(125*time.Second, "a2")
	f.reap()
	require.Equal(t, []int64{1, 3}, f.passed(), "b2 was silent")
	leave("b2")
	require.Equal(t, []int64{1, 3}, f.passed(), "and counts once")
	require.Equal(t, queue.Waiting, f.status("b1"), "whose grant nobody fetched")
	require.Equal(t, []int64{1, 2}, f.passed(), "it is b1's second time in line")
	f.conserved()
}
