package redisstore

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

func TestFirstInLineHasRankZero(t *testing.T) {
	f := setup(t)
	st, err := f.Enter(t.Context(), f.room, "ann", 0)
	require.NoError(t, err)
	require.Equal(t, queue.Standing{
		Status: queue.Waiting, Generation: 7, Sale: 3, New: true, Rank: 0, Total: 1,
		Place: queue.Place{Lane: 0, Score: start.UnixMicro()},
	}, st)
}

func TestEnteringAgainKeepsThePlace(t *testing.T) {
	f := setup(t)
	f.enter("ann", "bob")
	f.pass(time.Minute)
	first := f.standing("ann")
	st, err := f.Enter(t.Context(), f.room, "ann", 0)
	require.NoError(t, err)
	require.False(t, st.New)
	require.Equal(t, first.Place, st.Place)
	require.Zero(t, st.Rank)
	require.EqualValues(t, 2, st.Total)
	f.conserved()
}

// Case 8, aws-solutions/virtual-waiting-room-on-aws (assign_queue_num.py): a
// repeated enter neither moves a member nor makes the line longer.
func TestCase8DuplicateEnterAfterAMinuteOfOthers(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	place := f.standing("ann").Place
	for range 60 {
		f.pass(time.Second)
		f.enterMany(f.ids, f.ids+3)
		f.ids += 3
	}
	f.enter("ann")
	require.Zero(t, f.standing("ann").Rank)
	require.Equal(t, place, f.standing("ann").Place)
	require.EqualValues(t, 181, f.snap().Waiting())
	require.EqualValues(t, 181, f.snap().Counters["entered"])
}

func TestOneMemberEnteringManyTimesAtOnceGetsOneScore(t *testing.T) {
	f := setup(t)
	var wg sync.WaitGroup
	scores := make([]int64, 64)
	fresh := make([]bool, 64)
	for i := range scores {
		wg.Go(func() {
			st, err := f.Enter(t.Context(), f.room, "ann", 0)
			if err == nil {
				scores[i], fresh[i] = st.Place.Score, st.New
			}
		})
	}
	wg.Wait()
	made := 0
	for i := range scores {
		require.Equal(t, scores[0], scores[i])
		if fresh[i] {
			made++
		}
	}
	require.Equal(t, 1, made)
	require.EqualValues(t, 1, f.snap().Counters["entered"])
}

// Case 42, redis/redis#1071 and #15824: scores of one microsecond are distinct,
// rising, and exact in a double.
func TestCase42ScoresOfOneInstantAreDistinctAndInOrder(t *testing.T) {
	f := setup(t)
	var last int64
	for i := range 2000 {
		st, err := f.Enter(t.Context(), f.room, fmt.Sprint("m", i), 0)
		require.NoError(t, err)
		require.Greater(t, st.Place.Score, last)
		require.EqualValues(t, i, st.Rank)
		last = st.Place.Score
	}
	require.Less(t, last, int64(1)<<53)
	for i, z := range f.rdb.ZRangeWithScores(t.Context(), f.key("lane0"), 0, -1).Val() {
		require.Equal(t, start.UnixMicro()+int64(i), int64(z.Score), "the stored score has lost digits")
	}
}

func TestScoresRiseWhenTheClockStepsBack(t *testing.T) {
	for _, step := range []time.Duration{time.Second, 30 * time.Second, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			f := setup(t)
			f.enter("ann")
			f.pass(-step)
			f.enter("bob")
			require.Equal(t, f.standing("ann").Place.Score+1, f.standing("bob").Place.Score)
			want := int64(0)
			if step > time.Minute {
				want = 1
			}
			require.Equal(t, want, f.snap().Counters["steps"], "accepted steps of the clock")
		})
	}
}

func TestEnterRefusals(t *testing.T) {
	open := start.Add(time.Minute)
	for _, tc := range []struct {
		name   string
		change func(*queue.Rules)
		after  time.Duration
		want   error
	}{
		{"before opensAt", func(r *queue.Rules) { r.OpensAt = open }, 0, queue.ErrNotOpen},
		{"at opensAt", func(r *queue.Rules) { r.OpensAt = open }, time.Minute, nil},
		{"before admitsAt people line up", func(r *queue.Rules) { r.AdmitsAt = open }, 0, nil},
		{"before closesAt", func(r *queue.Rules) { r.ClosesAt = open }, time.Minute - 1000, nil},
		{"at closesAt", func(r *queue.Rules) { r.ClosesAt = open }, time.Minute, queue.ErrClosed},
		{"paused people line up", func(r *queue.Rules) { r.Paused = true }, 0, nil},
		{"draining", func(r *queue.Rules) { r.Draining = true }, 0, queue.ErrClosed},
		{"at maxWaiting", func(r *queue.Rules) { r.MaxWaiting = 0 }, 0, queue.ErrFull},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := setup(t, tc.change)
			f.pass(tc.after)
			before := f.dump("state")
			_, err := f.Enter(t.Context(), f.room, "ann", 0)
			require.ErrorIs(t, err, tc.want)
			if tc.want != nil {
				require.Equal(t, before, f.dump("state"), "a refusal changes nothing")
			}
		})
	}
}

func TestMaxWaitingIsExactUnderARace(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.MaxWaiting = 110 })
	f.enterMany(0, 100)
	var wg sync.WaitGroup
	errs := make([]error, 200)
	for i := range errs {
		wg.Go(func() { _, errs[i] = f.Enter(t.Context(), f.room, fmt.Sprint("r", i), 0) })
	}
	wg.Wait()
	full := 0
	for _, err := range errs {
		if err != nil {
			require.ErrorIs(t, err, queue.ErrFull)
			full++
		}
	}
	require.Equal(t, 190, full)
	require.EqualValues(t, 110, f.snap().Waiting())
}

func TestARefusedNewcomerCostsOneScript(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.MaxWaiting = 1 })
	f.enter("ann")
	var scripts []string
	f.observe = func(script string, _ time.Duration, _ error) { scripts = append(scripts, script) }
	_, err := f.Enter(t.Context(), f.room, "bob", 0)
	require.ErrorIs(t, err, queue.ErrFull)
	require.Equal(t, []string{"enter"}, scripts)
}

func TestProcessingAndAwayCountAgainstMaxWaiting(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.MaxWaiting = 3; r.Batch = 1 })
	f.enter("ann", "bob", "cy")
	f.grantAll(f.reserve()) // ann is READY: her place is free
	f.enter("dan")
	f.pass(31 * time.Second)
	f.reap() // nobody fetched ann's grant: AWAY, and counted again
	_, err := f.Enter(t.Context(), f.room, "eve", 0)
	require.ErrorIs(t, err, queue.ErrFull)
	f.enter("ann") // who has a place keeps it
}

func TestEnterWhileReadyOrClaimedAnswersSo(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	f.tick()
	for _, want := range []queue.Status{queue.Ready, queue.Claimed} {
		st, err := f.Enter(t.Context(), f.room, "ann", 0)
		require.NoError(t, err)
		require.Equal(t, want, st.Status)
		require.NoError(t, f.Claim(t.Context(), st.Grant, "c1", 15*time.Second))
	}
	require.Zero(t, f.snap().Waiting())
	f.conserved()
}

func TestAfterAnEndTheNextEnterIsANewPlaceAtTheBack(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	f.tick()
	g := f.pickUp("ann")
	f.pass(301 * time.Second)
	require.Equal(t, queue.OutcomeExpired, f.standing("ann").Outcome)
	f.enter("bob", "ann")
	st := f.standing("ann")
	require.EqualValues(t, 1, st.Rank)
	require.Greater(t, st.Place.Score, g.Place.Score)
	require.Empty(t, st.Outcome)
	f.conserved()
}

func TestOneOrderRoomRefusesWhoHasOrdered(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.OneOrder = true })
	f.enter("ann")
	f.tick()
	g := f.pickUp("ann")
	_, err := f.Consume(t.Context(), f.room, []queue.Spent{{Member: "ann", Grant: g.ID, Order: "o1"}})
	require.NoError(t, err)
	_, err = f.Enter(t.Context(), f.room, "ann", 0)
	require.ErrorIs(t, err, queue.ErrOrdered)
}

func TestPollIsARead(t *testing.T) {
	f := setup(t)
	f.enter("ann", "bob")
	place := f.standing("bob").Place
	before := f.dump()
	st, err := f.Poll(t.Context(), f.room, "bob", place)
	require.NoError(t, err)
	require.Equal(t, queue.Standing{Status: queue.Waiting, Place: place, Rank: 1, InLane: 1}, st)
	require.Equal(t, before, f.dump(), "a poll of somebody who waits writes nothing")
}

func TestPollFollowsAMemberThroughEveryState(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	place := f.standing("ann").Place
	poll := func() queue.Standing {
		st, err := f.Poll(t.Context(), f.room, "ann", place)
		require.NoError(t, err)
		return st
	}
	require.Equal(t, queue.Waiting, poll().Status)
	r := f.reserve()
	require.Equal(t, queue.Waiting, poll().Status, "processing shows as WAITING")
	require.Zero(t, poll().Rank)
	f.grantAll(r)
	require.Equal(t, queue.Ready, poll().Status)
	g := f.pickUp("ann")
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	require.Equal(t, queue.Claimed, poll().Status)
	_, err := f.Consume(t.Context(), f.room, []queue.Spent{{Member: "ann", Grant: g.ID, Order: "o1"}})
	require.NoError(t, err)
	require.Equal(t, queue.Consumed, poll().Status)
	require.Equal(t, "o1", poll().OrderID)
	f.pass(3601 * time.Second)
	require.Equal(t, queue.NotEntered, poll().Status)
	require.Equal(t, queue.OutcomeConsumed, poll().Outcome, "CONSUMED once forgotten")
}

func TestLeave(t *testing.T) {
	for _, tc := range []struct {
		name string
		to   func(f *fixture) // brings ann into the state
		ok   bool
	}{
		{"waiting", func(*fixture) {}, true},
		{"processing", func(f *fixture) { f.reserve() }, true},
		{"ready", func(f *fixture) { f.tick() }, true},
		{"away", func(f *fixture) { f.tick(); f.pass(31 * time.Second); f.reap() }, true},
		{"expired", func(f *fixture) { f.tick(); f.pickUp("ann"); f.pass(301 * time.Second) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := setup(t)
			f.enter("ann")
			place := f.standing("ann").Place
			tc.to(f)
			ok, err := f.Leave(t.Context(), f.room, "ann", place.Score, queue.OutcomeLeft)
			require.NoError(t, err)
			require.Equal(t, tc.ok, ok)
			if tc.ok {
				require.Equal(t, queue.OutcomeLeft, f.standing("ann").Outcome)
			}
			again, err := f.Leave(t.Context(), f.room, "ann", place.Score, queue.OutcomeLeft)
			require.NoError(t, err)
			require.False(t, again, "leaving twice is leaving once")
			f.conserved()
		})
	}
}

func TestLateLeaveKeepsTheNextPlace(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	old := f.standing("ann").Place
	_, err := f.Leave(t.Context(), f.room, "ann", old.Score, queue.OutcomeLeft)
	require.NoError(t, err)
	f.enter("ann")
	ok, err := f.Leave(t.Context(), f.room, "ann", old.Score, queue.OutcomeLeft)
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, queue.Waiting, f.status("ann"))
}

func TestLeaveIsRefusedWhileAnOrderRuns(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	f.tick()
	g := f.pickUp("ann")
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	_, err := f.Leave(t.Context(), f.room, "ann", g.Place.Score, queue.OutcomeLeft)
	require.Equal(t, queue.BusyError{Left: 15 * time.Second}, unwrapAll(err))
	require.Equal(t, queue.Claimed, f.status("ann"))
}

func TestScriptsRecoverFromAFlushOfTheScriptCache(t *testing.T) {
	f := setup(t)
	flush := func() { require.NoError(t, f.rdb.ScriptFlush(t.Context()).Err()) }
	flush()
	f.enter("ann")
	flush()
	r := f.reserve()
	flush()
	f.grantAll(r)
	flush()
	g := f.pickUp("ann")
	flush()
	require.NoError(t, f.Claim(t.Context(), g, "c", time.Second))
	flush()
	require.NoError(t, f.Release(t.Context(), g, "c"))
	flush()
	require.NoError(t, f.Probe(t.Context()))
	f.reap()
}

// A key of the wrong type stops a script before its first write, whichever key
// it is: Lua has no rollback.
func TestAWrongTypeChangesNothing(t *testing.T) {
	for _, part := range parts {
		if part == "conf" || part == "state" {
			continue // read first by every script: Redis itself refuses
		}
		t.Run(part, func(t *testing.T) {
			f := setup(t)
			f.enter("ann", "bob")
			g := grantOf(f)
			require.NoError(t, f.rdb.Del(t.Context(), f.key(part)).Err())
			require.NoError(t, f.rdb.Set(t.Context(), f.key(part), "x", redis.KeepTTL).Err())
			before, failed := f.dump(part), 0
			calls := map[string]func() error{
				"enter":    func() error { _, err := f.Enter(t.Context(), f.room, "cy", 0); return err },
				"standing": func() error { _, err := f.Standing(t.Context(), f.room, "ann"); return err },
				"heard":    func() error { return f.Heard(t.Context(), f.room, []string{"bob"}) },
				"reserve": func() error {
					_, err := f.Reserve(t.Context(), f.room, queue.Step{Generation: 7, Term: 9, Leader: "z", Seq: 1}, queue.Take{Keep: 1, Effective: 50, Max: 500})
					return err
				},
				"reap":   func() error { _, err := f.Reap(t.Context(), f.room); return err },
				"pickup": func() error { _, err := f.PickUp(t.Context(), g, "k"); return err },
				"claim":  func() error { return f.Claim(t.Context(), g, "c", time.Second) },
				"consume": func() error {
					_, err := f.Consume(t.Context(), f.room, []queue.Spent{{Member: "ann", Grant: g.ID, Order: "o"}})
					return err
				},
				"leave": func() error { _, err := f.Leave(t.Context(), f.room, "bob", 0, queue.OutcomeLeft); return err },
				"restore": func() error {
					_, err := f.Restore(t.Context(), f.room, queue.Lost{Generation: 7, Member: "dan", Ticket: 7, Place: queue.Place{Score: start.UnixMicro() + 1000}})
					return err
				},
			}
			for name, run := range calls {
				if err := run(); err != nil {
					require.ErrorIs(t, err, queue.ErrDamaged, name)
					failed++
					require.Equal(t, before, f.dump(part), "%s wrote before it failed", name)
				}
				before = f.dump(part)
			}
			require.GreaterOrEqual(t, failed, 2, "the ticks at least need every key")
		})
	}
}

// grantOf takes the first in line to READY.
func grantOf(f *fixture) queue.Grant {
	f.Helper()
	f.step.Seq++
	r, err := f.Reserve(f.Context(), f.room, f.step, queue.Take{Keep: f.step.Seq, Effective: 1, Max: 1})
	require.NoError(f, err)
	f.grantAll(r)
	return f.standing(r.Taken[0].Member).Grant
}
