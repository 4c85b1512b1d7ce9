package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

func place(offset int64) queue.Place { return queue.Place{Score: start.UnixMicro() + offset} }

// afterLoss begins generation 8 as after a loss of everything: tickets of 7 are good.
func afterLoss(t *testing.T, floor int64) *fixture {
	f := setup(t)
	f.life.Generation, f.life.RestorableFrom = 8, 7
	f.life.Floors[0] = start.UnixMicro() + floor
	f.life.LastScore = start.UnixMicro() + 1000
	require.NoError(t, f.rdb.Del(t.Context(), keys(f.prefix, f.room)...).Err())
	require.NoError(t, f.Create(t.Context(), f.life))
	f.step.Generation = 8
	return f
}

func (f *fixture) restore(member string, ticket int64, at queue.Place) (queue.Standing, error) {
	return f.Restore(f.Context(), f.room, queue.Lost{Generation: f.life.Generation, Member: member, Ticket: ticket, Place: at})
}

func TestALostPlaceComesBackAtItsScore(t *testing.T) {
	f := afterLoss(t, 100)
	f.enter("new")
	st, err := f.restore("ann", 7, place(200))
	require.NoError(t, err)
	require.True(t, st.New)
	require.Zero(t, st.Rank, "ahead of who entered after the loss")
	again, err := f.restore("ann", 7, place(150))
	require.NoError(t, err)
	require.False(t, again.New)
	require.Equal(t, place(200), again.Place, "restoring twice is restoring once")
	require.EqualValues(t, 1, f.snap().Counters["restored"])
	f.conserved()
}

func TestNewScoresStartAboveAllThatPostgresKnows(t *testing.T) {
	f := afterLoss(t, 0)
	f.enter("ann")
	require.Greater(t, f.standing("ann").Place.Score, f.life.LastScore)
}

func TestRestoreRefusals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		ticket int64
		at     queue.Place
		before func(f *fixture)
	}{
		{"at the floor", 7, place(100), func(*fixture) {}},
		{"a ticket from before a flush", 6, place(200), func(*fixture) {}},
		{"a ticket of the future", 9, place(200), func(*fixture) {}},
		{"after forgetAfter", 7, place(200), func(f *fixture) { f.pass(1800 * time.Second) }},
		{"of this generation, at the watermark", 8, place(300), func(f *fixture) {
			_, err := f.restore("cy", 7, place(300))
			require.NoError(f, err)
			f.pass(41 * time.Second)
			f.tick()
		}},
		{"who has an outcome in this generation", 7, place(200), func(f *fixture) {
			_, err := f.restore("ann", 7, place(200))
			require.NoError(f, err)
			_, err = f.Leave(f.Context(), f.room, "ann", 0, queue.OutcomeLeft)
			require.NoError(f, err)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := afterLoss(t, 100)
			tc.before(f)
			before := f.dump("state")
			_, err := f.restore("ann", tc.ticket, tc.at)
			require.ErrorIs(t, err, queue.ErrGone)
			require.Equal(t, before, f.dump("state"))
		})
	}
}

func TestAVoidedTokenComesBackBelowTheFloor(t *testing.T) {
	f := afterLoss(t, 100)
	_, err := f.Restore(t.Context(), f.room, queue.Lost{Generation: 8, Member: "ann", Ticket: 7, Place: place(50), LostToken: true})
	require.NoError(t, err)
}

func TestPartialLossIsBoundedByTheWatermarkOfPostgres(t *testing.T) {
	f := afterLoss(t, 0)
	lost := queue.Lost{Generation: 8, Member: "ann", Ticket: 8, Place: place(500), Floor: place(500).Score}
	_, err := f.Restore(t.Context(), f.room, lost)
	require.ErrorIs(t, err, queue.ErrGone, "Postgres knows of a later admission")
	lost.Floor--
	_, err = f.Restore(t.Context(), f.room, lost)
	require.NoError(t, err)
}

func TestNobodyIsTakenWhileARoomSettles(t *testing.T) {
	f := afterLoss(t, 0)
	f.enter("ann")
	require.Equal(t, queue.Restoring, f.snap().State(f.clock))
	f.pass(39 * time.Second)
	require.Empty(t, f.tick())
	f.pass(time.Second)
	require.Equal(t, []string{"ann"}, f.tick())
}

func TestAStepBackDoesNotProlongSettling(t *testing.T) {
	f := afterLoss(t, 0)
	f.enter("ann")
	f.pass(-time.Hour)
	f.reap()
	f.pass(40 * time.Second)
	require.Equal(t, []string{"ann"}, f.tick())
}

func TestAFirstGenerationDoesNotSettle(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	require.Equal(t, []string{"ann"}, f.tick())
}

func TestEveryScriptOfAnotherGenerationIsRefused(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	before := f.dump()
	other := queue.Step{Generation: 6, Term: 1, Leader: "a", Seq: 1}
	_, err := f.Reserve(t.Context(), f.room, other, queue.Take{Keep: 1, Effective: 50, Max: 1})
	require.Equal(t, queue.GenerationError{Generation: 7}, unwrapAll(err))
	_, err = f.Issue(t.Context(), f.room, other, []queue.Decision{{Member: "ann", Grant: "g"}})
	require.ErrorIs(t, err, queue.ErrGeneration)
	_, err = f.Restore(t.Context(), f.room, queue.Lost{Generation: 6, Member: "bob", Ticket: 6, Place: place(1)})
	require.ErrorIs(t, err, queue.ErrGeneration)
	f.life.Generation, f.life.Version = 6, 9
	require.ErrorIs(t, f.Update(t.Context(), f.life), queue.ErrGeneration)
	require.Equal(t, before, f.dump())
}

func TestAnEmptyRedisAnswersThatTheRoomIsNotThere(t *testing.T) {
	f := setup(t)
	require.NoError(t, f.rdb.Del(t.Context(), keys(f.prefix, f.room)...).Err())
	_, err := f.Enter(t.Context(), f.room, "ann", 0)
	require.ErrorIs(t, err, queue.ErrNoRoom)
	_, err = f.Standing(t.Context(), f.room, "ann")
	require.ErrorIs(t, err, queue.ErrNoRoom)
	_, err = f.Reserve(t.Context(), f.room, queue.Step{Generation: 7, Term: 1, Leader: "a", Seq: 1}, queue.Take{Keep: 1, Effective: 50, Max: 1})
	require.ErrorIs(t, err, queue.ErrNoRoom)
	_, err = f.Snapshot(t.Context(), f.room)
	require.ErrorIs(t, err, queue.ErrNoRoom)
	g := queue.Grant{Room: f.room, Member: "ann", ID: "g"}
	require.ErrorIs(t, f.Claim(t.Context(), g, "c", time.Second), queue.ErrNoRoom)
	f.life.Version = 2
	require.ErrorIs(t, f.Update(t.Context(), f.life), queue.ErrNoRoom, "a stale push starts nothing")

	// What ends things is done where there is nothing.
	require.NoError(t, f.Release(t.Context(), g, "c"))
	words, err := f.Consume(t.Context(), f.room, spent(g))
	require.NoError(t, err)
	require.Equal(t, []Consumed{ConsumedNone}, words)
	ok, err := f.Leave(t.Context(), f.room, "ann", 0, queue.OutcomeLeft)
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, queue.Reaped{}, f.reap())
	require.NoError(t, f.Heard(t.Context(), f.room, []string{"ann"}))
	require.Empty(t, f.dump(), "none of them wrote anything")
}

func TestSettingsAreOrderedByVersion(t *testing.T) {
	f := setup(t)
	f.life.Version, f.life.Rules.Batch = 3, 30
	require.NoError(t, f.Update(t.Context(), f.life))
	f.life.Version, f.life.Rules.Batch = 2, 20
	require.NoError(t, f.Update(t.Context(), f.life), "late, and without effect")
	s := f.snap()
	require.Equal(t, 30, s.Rules.Batch)
	require.EqualValues(t, 3, s.Version)
}

func TestAnUpdateTouchesNeitherRateNorFloors(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 100)
	f.tick()
	before := f.rdb.HGetAll(t.Context(), f.key("state")).Val()
	f.life.Version, f.life.Floors = 2, []int64{start.UnixMicro() + 5}
	require.NoError(t, f.Update(t.Context(), f.life))
	after := f.rdb.HGetAll(t.Context(), f.key("state")).Val()
	require.Equal(t, before, after)
	require.Equal(t, "0", f.rdb.HGet(t.Context(), f.key("conf"), "floor0").Val())
}

// I10: what is left of a batch is kept as a time, and must not be worth more
// because a batch or an interval has changed.
func TestAnUpdateOfTheRateLetsNoMoreThrough(t *testing.T) {
	for _, c := range []struct {
		name     string
		batch    int
		interval time.Duration
		want     int // after 30 of 50, at the same moment
	}{
		{"half the interval", 50, 500 * time.Millisecond, 20},
		{"twice the interval", 50, 2 * time.Second, 20},
		{"a larger batch", 500, time.Second, 20},
		{"a larger batch, less often", 500, 10 * time.Second, 20},
		{"a smaller batch", 10, time.Second, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := setup(t)
			f.enterMany(0, 30)
			require.Len(t, f.tick(), 30)
			f.enterMany(30, 700)
			f.life.Version, f.life.Rules.Batch, f.life.Rules.Interval = 2, c.batch, c.interval
			require.NoError(t, f.Update(t.Context(), f.life))
			f.step.Seq++
			r, err := f.Reserve(t.Context(), f.room, f.step, queue.Take{Keep: f.step.Seq, Effective: c.batch, Max: 500})
			require.NoError(t, err)
			got := len(f.grantAll(r))
			if half := (c.batch + 1) / 2; c.want < half {
				require.Zero(t, got, "less than half a batch is left, and waited for")
				f.pass(r.Wait)
				require.GreaterOrEqual(t, r.Wait, time.Duration(half-c.want)*c.interval/time.Duration(c.batch))
				require.Len(t, f.tick(), half)
				return
			}
			require.Equal(t, c.want, got)
			f.pass(c.interval)
			require.Len(t, f.tick(), c.batch, "and then the new rate")
		})
	}
}

func TestAFlushEndsEverythingOnce(t *testing.T) {
	f := setup(t)
	f.enter("ann", "bob")
	f.tick()
	f.life.Generation, f.life.Sale, f.life.RestorableFrom = 9, 4, 9
	require.NoError(t, f.Create(t.Context(), f.life))
	require.Equal(t, queue.NotEntered, f.status("ann"))
	f.enter("cy")
	require.NoError(t, f.Create(t.Context(), f.life), "again, and without effect")
	require.EqualValues(t, 1, f.snap().Waiting())
	f.life.Generation = 8
	require.NoError(t, f.Create(t.Context(), f.life), "an older generation never comes back")
	s := f.snap()
	require.EqualValues(t, 9, s.Generation)
	require.EqualValues(t, 1, s.Term, "the fence stays")
}

func TestDropRemovesADeletedRoomButNotOneMadeAgain(t *testing.T) {
	f := setup(t)
	f.enter("ann", "bob")
	f.tick()
	older := f.life
	older.Generation--
	before := f.dump()
	require.NoError(t, f.Drop(t.Context(), older))
	require.Equal(t, before, f.dump(), "the room has been made again since")
	require.NoError(t, f.Drop(t.Context(), f.life))
	require.Empty(t, f.dump())
	require.NoError(t, f.Drop(t.Context(), f.life), "twice is once")
}

func TestSnapshotReadsBackTheRules(t *testing.T) {
	f := setup(t, func(r *queue.Rules) {
		r.Capacity, r.MaxInFlight, r.OneOrder, r.Paused = 9, 8, true, true
		r.OpensAt, r.AdmitsAt, r.ClosesAt = start.Add(-time.Hour), start.Add(time.Hour), start.Add(2*time.Hour)
		r.Weights = []int{2, 1}
	})
	s := f.snap()
	require.Equal(t, f.life.Rules, s.Rules)
	require.Equal(t, f.life.Settings, s.Settings)
	require.True(t, s.Now.Equal(f.clock))
	require.True(t, s.Began.Equal(start))
}

func TestMarksPlaceAnybodyWithinFivePercent(t *testing.T) {
	f := setup(t)
	for i := range 3000 {
		f.pass(time.Duration(1+i%7) * time.Millisecond)
		f.enter(member(i))
	}
	s, err := f.SnapshotMarks(t.Context(), f.room)
	require.NoError(t, err)
	marks := s.Lanes[0].Marks
	require.LessOrEqual(t, len(marks), 64)
	require.EqualValues(t, 0, marks[0].Rank)
	require.EqualValues(t, 2999, marks[len(marks)-1].Rank)
	for i := 0; i < 3000; i += 37 {
		score := int64(f.rdb.ZScore(t.Context(), f.key("lane0"), member(i)).Val())
		require.InDelta(t, i, interpolate(marks, score), max(1, 0.05*float64(i)))
	}
}

func member(i int) string { return "m" + itoa(i) }

func interpolate(marks []queue.Mark, score int64) float64 {
	for i := 1; i < len(marks); i++ {
		a, b := marks[i-1], marks[i]
		if score <= b.Score {
			return float64(a.Rank) + float64(b.Rank-a.Rank)*float64(score-a.Score)/float64(b.Score-a.Score)
		}
	}
	return float64(marks[len(marks)-1].Rank)
}

func TestTermsRiseAboveWhatARoomHasSeen(t *testing.T) {
	f := setup(t)
	f.prefix = f.room
	terms := f.Terms()
	first, err := terms.Next(t.Context())
	require.NoError(t, err)
	second, err := terms.Next(t.Context())
	require.NoError(t, err)
	require.Greater(t, second, first)
	raised, err := terms.Raise(t.Context(), 1000)
	require.NoError(t, err)
	require.EqualValues(t, 1001, raised, "a counter set back by a failover locks nobody out")
}

// Case 55, sidekiq/sidekiq#5558, and case 40: at the memory limit, enter is
// refused whole and everything that moves people on still works.
func TestAFullRedisIsBusyAndMovesPeopleOn(t *testing.T) {
	t.Parallel()
	srv := harness.RedisServer(t, "--maxmemory-policy", "noeviction")
	f := on(t, client(t, srv.Addr))
	f.enterMany(0, 60)
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "1mb").Err())

	before := f.dump()
	_, err := f.Enter(t.Context(), f.room, "late", 0)
	require.ErrorIs(t, err, queue.ErrFull)
	require.Equal(t, before, f.dump(), "refused whole")
	f.enter("m00059") // who has a place is told so
	st, err := f.Poll(t.Context(), f.room, "m00059", f.standing("m00059").Place)
	require.NoError(t, err)
	require.Equal(t, queue.Waiting, st.Status)
	require.Len(t, f.tick(), 50)
	g := f.pickUp("m00000")
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	require.NoError(t, f.Release(t.Context(), g, "c"))
	_, err = f.Consume(t.Context(), f.room, spent(g))
	require.NoError(t, err)
	f.life.Version = 2
	require.NoError(t, f.Update(t.Context(), f.life), "an operator can still steer")
	require.NoError(t, f.Probe(t.Context()), "full is not down")
	f.conserved()

	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	_, err = f.Enter(t.Context(), f.room, "late", 0)
	require.ErrorIs(t, err, queue.ErrFull, "entry stays closed until the leader has seen room")
	f.memory = memory{}
	f.reap()
	f.enter("late")
}
