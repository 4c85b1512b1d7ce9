package redisstore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// boosted makes the lanes one line in which each is ahead by so much.
func boosted(by ...time.Duration) func(*queue.Rules) {
	return func(r *queue.Rules) {
		r.OneLine, r.Boosts, r.Weights = true, by, slices.Repeat([]int{1}, len(by))
	}
}

// allInOrder is who is let through, until nobody is left.
func (f *fixture) allInOrder() (out []string) {
	f.Helper()
	for got := f.tick(); len(got) > 0; got = f.tick() {
		out = append(out, got...)
		f.pass(f.life.Rules.Interval)
	}
	return out
}

func TestABoostedMemberStandsAheadByTheBoostAndNoMore(t *testing.T) {
	f := setup(t, boosted(0, time.Minute))
	f.enterLane(0, "early")
	f.pass(2 * time.Minute)
	f.enterLane(0, "ann")
	f.pass(30 * time.Second)
	f.enterLane(1, "vip")
	st := f.standing("vip")
	require.EqualValues(t, f.clock.Add(-time.Minute).UnixMicro(), st.Place.Score)
	require.EqualValues(t, 1, st.Rank, "behind early, ahead of ann")
	require.EqualValues(t, 0, st.InLane)
	require.EqualValues(t, 3, st.Total)
	require.EqualValues(t, 2, f.standing("ann").Rank)
	require.Equal(t, []string{"early", "vip", "ann"}, f.allInOrder())
}

func TestOfEqualScoresTheLowerLaneIsFirst(t *testing.T) {
	f := setup(t, boosted(0, time.Minute, time.Minute))
	f.enterLane(0, "ann")
	f.pass(time.Minute)
	f.enterLane(2, "bob")
	f.enterLane(1, "eve")
	for i, m := range []string{"ann", "eve", "bob"} {
		require.EqualValues(t, i, f.standing(m).Rank, m)
		st := f.standing(m)
		polled, err := f.PollLine(t.Context(), f.room, m, st.Place, 3)
		require.NoError(t, err)
		require.Equal(t, st.Rank, polled.Rank, m)
		require.Equal(t, st.InLane, polled.InLane, m)
	}
	require.Equal(t, []string{"ann", "eve", "bob"}, f.allInOrder())
}

// waiter is somebody in the model of one line.
type waiter struct {
	name  string
	lane  int
	score int64
}

func inOrder(a, b waiter) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.lane, b.lane))
}

// TestOneLineIsAsTheModelSays has random people enter random lanes at random
// times, while boosts change and the clock steps back: scores are what the
// formula says, within a lane they rise, ranks told by script, poll and marks are
// those of the whole line, and everybody is let through in the order of it.
func TestOneLineIsAsTheModelSays(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { runOneLine(t, rand.New(rand.NewPCG(seed, 5))) })
	}
}

func runOneLine(t *testing.T, rnd *rand.Rand) {
	drawBoosts := func(n int) []time.Duration {
		by := make([]time.Duration, n)
		for i := 1; i < n; i++ {
			by[i] = time.Duration(rnd.IntN(4)*rnd.IntN(40)) * time.Second
		}
		return by
	}
	lanes := 2 + rnd.IntN(3)
	f := setup(t, boosted(drawBoosts(lanes)...), func(r *queue.Rules) { r.Batch = 1 + rnd.IntN(8) })
	var line []waiter
	var last int64
	in := make([]int64, lanes)
	for i := range 150 {
		f.pass(time.Duration(rnd.IntN(3)*rnd.IntN(2_000_000)) * time.Microsecond)
		if rnd.IntN(25) == 0 {
			f.change(boosted(drawBoosts(lanes)...))
		}
		lane := rnd.IntN(lanes)
		want := max(last+1, f.clock.UnixMicro())
		if boost := f.life.Rules.Boost(lane); boost > 0 {
			want = max(in[lane]+1, f.clock.Add(-boost).UnixMicro())
		}
		last, in[lane] = max(last, want), want
		w := waiter{fmt.Sprintf("%d-%03d", lane, i), lane, want}
		f.enterLane(lane, w.name)
		require.EqualValues(t, want, f.standing(w.name).Place.Score, "by the formula")
		line = append(line, w)
		slices.SortFunc(line, inOrder)
		f.checkRanks(rnd, line, lanes)
		if rnd.IntN(6) == 0 {
			f.pass(time.Second)
			got := f.tick()
			for n, m := range got {
				require.Equal(t, line[n].name, m, "the first in line is taken first")
			}
			line = line[len(got):]
		}
	}
	f.conserved()
}

// checkRanks compares what one member is told with the line, in every way to ask.
func (f *fixture) checkRanks(rnd *rand.Rand, line []waiter, lanes int) {
	f.Helper()
	rank := rnd.IntN(len(line))
	w := line[rank]
	st := f.standing(w.name)
	require.EqualValues(f, rank, st.Rank, "rank by the script")
	require.EqualValues(f, len(line), st.Total)
	polled, err := f.PollLine(f.Context(), f.room, w.name, st.Place, lanes)
	require.NoError(f, err)
	require.EqualValues(f, rank, polled.Rank, "rank by a poll")
	require.Equal(f, st.InLane, polled.InLane)
	snap, err := f.SnapshotMarks(f.Context(), f.room)
	require.NoError(f, err)
	for lane, l := range snap.Lanes {
		for _, m := range l.Marks {
			at := slices.IndexFunc(line, func(w waiter) bool { return w.lane == lane && w.score == m.Score })
			require.EqualValues(f, at, m.Rank, "a mark of lane %d", lane)
		}
	}
}

func TestAPollWithAnOlderTicketIsCountedByTheScript(t *testing.T) {
	f := setup(t, boosted(0, time.Minute))
	f.enterLane(1, "vip")
	old := f.standing("vip").Place
	_, err := f.Leave(t.Context(), f.room, "vip", 0, queue.OutcomeLeft)
	require.NoError(t, err)
	f.enterLane(0, "ann")
	f.pass(2 * time.Minute)
	f.enterLane(1, "vip")
	st, err := f.PollLine(t.Context(), f.room, "vip", old, 2)
	require.NoError(t, err)
	require.EqualValues(t, 1, st.Rank)
	require.EqualValues(t, 2, st.Total, "the script has answered")
	f.reserve()
	st, err = f.PollLine(t.Context(), f.room, "vip", old, 2)
	require.NoError(t, err)
	require.Equal(t, queue.Waiting, st.Status, "processing")
	require.Zero(t, st.Rank)
}

func TestAPollOfOneLineIsARead(t *testing.T) {
	f := setup(t, boosted(0, time.Minute, 2*time.Minute))
	f.enterLane(0, "ann")
	f.enterLane(2, "vip")
	before := f.dump()
	st, err := f.PollLine(t.Context(), f.room, "ann", f.standing("ann").Place, 3)
	require.NoError(t, err)
	require.EqualValues(t, 1, st.Rank)
	require.Equal(t, before, f.dump())
}

// After a loss the line of before comes back as it was, and whoever comes in
// afterwards stands behind it, boosted or not.
func TestAfterALossNobodyIsBoostedAheadOfThoseOfBefore(t *testing.T) {
	f := setup(t, boosted(0, time.Hour), func(r *queue.Rules) { r.Settle = time.Second })
	f.enterLane(0, "ann")
	f.pass(time.Minute)
	f.enterLane(1, "vip")
	f.pass(time.Minute)
	places := map[string]queue.Place{"ann": f.standing("ann").Place, "vip": f.standing("vip").Place}
	require.NoError(t, f.rdb.Del(t.Context(), keys(f.prefix, f.room)...).Err())
	f.life.Generation, f.step.Generation = 8, 8
	require.NoError(t, f.Create(t.Context(), f.life))
	f.enterLane(1, "late-vip", "later-vip")
	f.pass(time.Millisecond)
	f.enterLane(0, "late")
	for m, place := range places {
		st, err := f.Restore(t.Context(), f.room, queue.Lost{Generation: 8, Member: m, Ticket: 7, Place: place})
		require.NoError(t, err)
		require.Equal(t, place, st.Place)
	}
	f.pass(2 * time.Second)
	require.Equal(t, []string{"vip", "ann", "late-vip", "later-vip", "late"}, f.allInOrder())
}

// A flush ends the sale; scores of the next one are above every floor, so that a
// partial loss in it takes no place.
func TestAfterAFlushABoostedLaneGoesOnAboveItsFloor(t *testing.T) {
	f := setup(t, boosted(0, time.Hour))
	f.life.Generation, f.life.RestorableFrom, f.step.Generation = 8, 8, 8
	f.life.Floors = []int64{0, f.clock.Add(-time.Minute).UnixMicro(), 0, 0}
	require.NoError(t, f.Create(t.Context(), f.life))
	f.enterLane(1, "vip")
	require.Greater(t, f.standing("vip").Place.Score, f.life.Floors[1])
	require.Less(t, f.standing("vip").Place.Score, f.clock.UnixMicro())
}

func TestWhoEntersAfterARestoredPlaceOfTheLaneStandsBehindIt(t *testing.T) {
	f := setup(t, boosted(0, time.Hour))
	f.enterLane(1, "vip")
	old := f.standing("vip").Place
	require.NoError(t, f.rdb.ZRem(t.Context(), f.key("lane1"), "vip").Err()) // a failover has lost the entry
	require.NoError(t, f.rdb.HSet(t.Context(), f.key("state"), "last1", "0").Err())
	_, err := f.restore("vip", 7, old)
	require.NoError(t, err)
	f.enterLane(1, "next") // within the same microsecond
	require.EqualValues(t, old.Score+1, f.standing("next").Place.Score)
}

func TestPriorityChangedWhilePeopleWaitKeepsTheirScores(t *testing.T) {
	f := setup(t, weights(1, 1), func(r *queue.Rules) { r.Batch = 4 })
	f.enterLane(0, "a1", "a2", "a3")
	f.enterLane(1, "v1", "v2", "v3")
	before := map[string]queue.Place{}
	for _, m := range []string{"a1", "a2", "a3", "v1", "v2", "v3"} {
		before[m] = f.standing(m).Place
	}
	f.change(boosted(0, time.Hour))
	f.pass(time.Millisecond)
	f.enterLane(1, "v4")
	for m, place := range before {
		require.Equal(t, place, f.standing(m).Place, m)
	}
	require.Greater(t, f.standing("v4").Place.Score, before["v3"].Score, "behind those of the own lane")
	require.Equal(t, []string{"a1", "a2", "a3", "v1"}, f.tick(), "one line, by score")
	f.change(func(r *queue.Rules) { r.OneLine, r.Boosts = false, nil })
	f.pass(time.Second)
	f.enterLane(0, "a4")
	require.Equal(t, []string{"a4", "v2", "v3", "v4"}, sorted(f.tick()), "lanes again")
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

func TestSnapshotReadsBackBoostsAndTheLongestWait(t *testing.T) {
	f := setup(t, boosted(0, time.Minute), func(r *queue.Rules) { r.MaxWait = time.Hour })
	require.Equal(t, f.life.Rules, f.snap().Rules)
	f.change(func(r *queue.Rules) { r.OneLine, r.Boosts, r.MaxWait = false, nil, 0 })
	require.Equal(t, f.life.Rules, f.snap().Rules, "and what is no longer so")
}

// A boosted score is older than outcomes that ended long before its member came.
func TestALostBoostedPlaceYoungerThanAllThatIsForgottenComesBack(t *testing.T) {
	f := setup(t, boosted(0, 24*time.Hour))
	f.enterLane(0, "bob")
	f.leave("bob", 0, queue.OutcomeLeft)
	f.forgetOutcome("bob")
	f.pass(time.Second)
	f.enterLane(1, "vip")
	at := f.standing("vip").Place
	require.NoError(t, f.rdb.ZRem(t.Context(), f.key("lane1"), "vip").Err())
	lost := queue.Lost{Generation: 7, Member: "vip", Ticket: 7, Place: at, Issued: f.clock.Add(-2 * time.Hour)}
	_, err := f.Restore(t.Context(), f.room, lost)
	require.ErrorIs(t, err, queue.ErrGone, "of a stay that may have ended, and that been forgotten")
	lost.Issued = f.clock
	st, err := f.Restore(t.Context(), f.room, lost)
	require.NoError(t, err)
	require.Equal(t, at, st.Place)
}
