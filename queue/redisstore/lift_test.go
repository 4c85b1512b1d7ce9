package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

func longestWait(d time.Duration) func(*queue.Rules) {
	return func(r *queue.Rules) { r.MaxWait = d }
}

// reserveIn is reserve, in a room whose day is so far ahead of UTC.
func (f *fixture) reserveIn(zone time.Duration) queue.Reservation {
	f.Helper()
	f.step.Seq++
	r, err := f.Reserve(f.Context(), f.room, f.step, queue.Take{
		Keep: f.step.Seq, Effective: f.life.Rules.Batch, Max: 500, Zone: int(zone / time.Second),
	})
	require.NoError(f, err)
	return r
}

func TestWhoHasWaitedTooLongIsTakenBeforeTheRatioUpToHalf(t *testing.T) {
	f := setup(t, weights(1, 9), longestWait(10*time.Minute), func(r *queue.Rules) { r.Batch = 10 })
	f.enterCrowd(0, 20)
	f.pass(10*time.Minute + time.Second)
	f.enterCrowd(1, 100)
	// Five are lifted; of the other five the ratio gives the first lane one, whose
	// pass is equal, and the VIPs the rest.
	require.Equal(t, [4]int{6, 4}, perLane(f.tick()))
	require.EqualValues(t, 5, f.snap().Counters["lifted"])
	for i := range 6 {
		m := fmt.Sprintf("0-%05d", i)
		require.Equal(t, i < 5, f.standing(m).Lifted, m)
	}
	f.change(longestWait(0))
	f.pass(time.Second)
	require.Equal(t, [4]int{1, 9}, perLane(f.tick()), "lifts are not charged to the lane's share")
}

func TestALiftIsToldWhileProcessingAndWithTheGrant(t *testing.T) {
	f := setup(t, weights(1, 9), longestWait(time.Minute), func(r *queue.Rules) { r.Batch = 2 })
	f.enterLane(0, "ann", "bob")
	place := f.standing("ann").Place
	f.pass(2 * time.Minute)
	f.enterCrowd(1, 5)
	require.False(t, f.standing("ann").Lifted)
	r := f.reserve()
	require.Equal(t, []string{"ann"}, r.Lifted)
	require.True(t, f.standing("ann").Lifted, "by the script")
	st, err := f.Poll(t.Context(), f.room, "ann", place)
	require.NoError(t, err)
	require.True(t, st.Lifted, "by a poll")
	f.grantAll(r)
	require.True(t, f.standing("ann").Lifted)
	g := f.pickUp("ann")
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	require.True(t, f.standing("ann").Lifted)
	require.Equal(t, queue.Claimed, f.status("ann"))
}

func TestAMemberReturnedKeepsTheLiftAndIsCountedOnce(t *testing.T) {
	f := setup(t, weights(1, 9), longestWait(time.Minute), func(r *queue.Rules) { r.Batch = 2 })
	f.enterLane(0, "ann")
	f.pass(2 * time.Minute)
	f.enterCrowd(1, 20)
	require.Equal(t, []string{"ann"}, f.reserve().Lifted)
	f.pass(6 * time.Second) // beyond processingTimeout: the tick has died
	f.reap()
	require.Equal(t, queue.Waiting, f.status("ann"))
	r := f.reserve()
	require.Equal(t, "ann", r.Taken[0].Member, "first again, before the ratio")
	require.Empty(t, r.Lifted)
	require.EqualValues(t, 1, f.snap().Counters["lifted"])
	require.True(t, f.standing("ann").Lifted)
}

// stay has a member of the first lane wait for longer than is promised, and be let
// through; it tells whether by a lift.
func (f *fixture) stay(member string, zone time.Duration) bool {
	f.Helper()
	f.enterLane(0, member)
	f.pass(2 * time.Minute)
	r := f.reserveIn(zone)
	require.Len(f, r.Taken, 1)
	f.grantAll(r)
	f.order(member)
	return slices.Contains(r.Lifted, member)
}

func TestOneLiftADayByTheDayOfTheRoom(t *testing.T) {
	f := setup(t, weights(1, 1), longestWait(time.Minute))
	f.clock = time.Date(2026, 3, 1, 21, 0, 0, 0, time.UTC)
	const berlin = time.Hour
	require.True(t, f.stay("ann", berlin))
	require.False(t, f.stay("ann", berlin), "not twice a day")
	require.True(t, f.stay("bob", berlin), "another member has a day of their own")
	f.clock = time.Date(2026, 3, 1, 22, 50, 0, 0, time.UTC)
	require.False(t, f.stay("ann", berlin), "a few minutes before midnight there")
	f.clock = time.Date(2026, 3, 1, 23, 0, 1, 0, time.UTC)
	require.True(t, f.stay("ann", berlin), "after midnight there, an hour before that of UTC")
	f.clock = time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC)
	require.False(t, f.stay("ann", berlin), "midnight of UTC is not that of the room")
}

// Whoever has had today's lift is overtaken by nobody of the lane.
func TestALiftOvertakesNobodyOfTheOwnLane(t *testing.T) {
	f := setup(t, weights(1, 9), longestWait(time.Minute), func(r *queue.Rules) { r.Batch = 10 })
	require.True(t, f.stay("ann", 0))
	f.enterLane(0, "ann", "bob")
	f.pass(2 * time.Minute)
	f.enterCrowd(1, 50)
	got := f.tick()
	require.Equal(t, "ann", got[0], "by the lane's own turn: %v", got)
	require.Less(t, slices.Index(got, "ann"), slices.Index(got, "bob"), "%v", got)
	require.EqualValues(t, 2, f.snap().Counters["lifted"], "ann and bob once each")
}

func TestABoostedLaneIsNotLiftedAndTheOrdinaryOneIsInOneLineToo(t *testing.T) {
	f := setup(t, boosted(0, time.Hour), longestWait(time.Minute), func(r *queue.Rules) { r.Batch = 4 })
	f.enterCrowd(0, 10)
	f.pass(2 * time.Minute)
	f.enterCrowd(1, 10)
	require.Equal(t, [4]int{2, 2}, perLane(f.tick()), "half is lifted, the rest goes by score")
	require.EqualValues(t, 2, f.snap().Counters["lifted"])
}

func TestLiftsAreForgottenAfterTwoDays(t *testing.T) {
	f := setup(t, weights(1, 1), longestWait(time.Minute))
	f.stay("ann", 0)
	f.pass(47 * time.Hour)
	f.reap()
	require.EqualValues(t, 1, f.rdb.ZCard(t.Context(), f.key("lifted")).Val())
	f.pass(2 * time.Hour)
	f.reap()
	require.Zero(t, f.rdb.ZCard(t.Context(), f.key("lifted")).Val())
}

func TestAStepBackPullsLiftsBackToNow(t *testing.T) {
	f := setup(t, weights(1, 1), longestWait(time.Minute))
	f.stay("ann", 0)
	f.pass(-time.Hour)
	f.reap()
	require.InDelta(t, float64(f.clock.UnixMicro()), f.rdb.ZScore(t.Context(), f.key("lifted"), "ann").Val(), 0)
}

// TestLiftsAreAsTheModelSays has ordinary and VIP members come, be let through,
// come again, and now and then be returned by a tick that died, over some days of
// a zone: a call lifts at most half of what it may take and at least one of one,
// nobody twice a day, in the order of the lane, and exactly those whom the rule
// allows.
func TestLiftsAreAsTheModelSays(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { runLifts(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// lifts is the model: the first lane, and who was lifted when.
type lifts struct {
	line []waiter
	at   map[string]time.Time
	days map[string]int // member and day -> lifts
	zone time.Duration
	max  time.Duration
}

func (l *lifts) day(at time.Time) string { return at.Add(l.zone).UTC().Format(time.DateOnly) }

// due is who a call that takes up to n has to lift now, and which of them anew.
func (l *lifts) due(now time.Time, n int) (all, fresh []string) {
	for _, w := range l.line {
		in := time.UnixMicro(w.score)
		at, was := l.at[w.name]
		again := was && !at.Before(in)
		if len(all) == max(n/2, 1) || now.Sub(in) <= l.max || was && !again && l.day(at) >= l.day(now) {
			break
		}
		if !again {
			fresh = append(fresh, w.name)
		}
		all = append(all, w.name)
	}
	return all, fresh
}

func runLifts(t *testing.T, rnd *rand.Rand) {
	batch := []int{1, 2, 3, 8, 20}[rnd.IntN(5)]
	zones := []time.Duration{0, 5*time.Hour + 30*time.Minute, -8 * time.Hour, 13 * time.Hour}
	model := &lifts{at: map[string]time.Time{}, days: map[string]int{}, zone: zones[rnd.IntN(len(zones))], max: 20 * time.Minute}
	f := setup(t, weights(1, 3), longestWait(model.max), func(r *queue.Rules) { r.Batch = batch })
	total := 0
	for i := range 120 {
		f.pass(time.Duration(1+rnd.IntN(40)) * time.Minute)
		for range rnd.IntN(2 * batch) {
			if m := "0-" + strconv.Itoa(rnd.IntN(5*batch)); f.status(m) == queue.NotEntered {
				f.enterLane(0, m)
				model.line = append(model.line, waiter{m, 0, f.standing(m).Place.Score})
			}
			f.enterLane(1, fmt.Sprintf("1-%d-%d", i, rnd.IntN(1000)))
		}
		waiting := int(f.snap().Waiting())
		if waiting == 0 {
			continue
		}
		due, fresh := model.due(f.clock, min(batch, 500))
		r := f.reserveIn(model.zone)
		require.Equal(t, fresh, r.Lifted, "call %d of %d", i, batch)
		require.LessOrEqual(t, len(r.Lifted), max(batch/2, 1))
		for n, m := range due {
			require.Equal(t, m, r.Taken[n].Member, "lifts come first, in the order of their lane")
		}
		for _, m := range fresh {
			total++
			model.at[m] = f.clock
			model.days[m+model.day(f.clock)]++
			require.Equal(t, 1, model.days[m+model.day(f.clock)], "%s was lifted twice on %s", m, model.day(f.clock))
		}
		if rnd.IntN(5) == 0 {
			f.pass(6 * time.Second)
			f.reap() // the tick died: all go back to their places
			continue
		}
		for _, m := range f.grantAll(r) {
			f.order(m)
			model.line = slices.DeleteFunc(model.line, func(w waiter) bool { return w.name == m })
		}
	}
	require.Positive(t, total, "a model in which nobody is lifted proves nothing")
	require.EqualValues(t, total, f.snap().Counters["lifted"])
	f.conserved()
}
