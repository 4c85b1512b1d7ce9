package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// Absence is proved, not assumed: only somebody for whom the room has listened
// can go silent.
func TestWhoIsNotListenedForIsNotSilent(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Paused = true })
	f.enter("ann")
	f.keepHearing(300 * time.Second)
	require.Zero(t, f.reap().Away, "no entry yet")
	f.keepHearing(119 * time.Second)
	require.Zero(t, f.reap().Away)
	f.keepHearing(time.Second)
	require.Equal(t, 1, f.reap().Away, "silent for awayAfter, also while paused")
	f.conserved()
}

func TestWhoIsHeardStays(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Paused = true })
	f.enter("ann", "bob")
	f.reap()
	f.keepHearing(600*time.Second, "ann", "a-stranger")
	require.Equal(t, 1, f.reap().Away)
	require.Equal(t, []string{"ann"}, f.rdb.ZRange(t.Context(), f.key("lane0"), 0, -1).Val())
	require.Equal(t, []string{"ann"}, f.rdb.ZRange(t.Context(), f.key("seen"), 0, -1).Val(), "hearing never makes an entry")
	require.Zero(t, f.standing("bob").Rank+f.standing("ann").Rank-1, "bob is back behind ann")
}

func TestSilenceDoesNotCountWhileTheRoomCouldNotHear(t *testing.T) {
	t.Run("no process reported", func(t *testing.T) {
		f := setup(t)
		f.enterMany(0, 10)
		f.reap()
		for range 60 {
			f.pass(5 * time.Second)
			require.Zero(t, f.reap().Away, "reap runs, but nobody hears")
		}
		f.keepHearing(100 * time.Second)
		require.Zero(t, f.reap().Away)
	})
	t.Run("redis was away for 90 s", func(t *testing.T) {
		f := setup(t, func(r *queue.Rules) { r.Paused = true })
		f.enterMany(0, 10)
		f.reap()
		f.keepHearing(100 * time.Second)
		f.pass(90 * time.Second)
		f.enter("late") // whichever script comes first sees the gap
		require.NoError(t, f.Heard(t.Context(), f.room, nil))
		require.Zero(t, f.reap().Away)
		f.keepHearing(115 * time.Second)
		require.Zero(t, f.reap().Away)
		f.keepHearing(5 * time.Second)
		require.Equal(t, 11, f.reap().Away)
	})
}

func TestReservePassesOverTheSilent(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 1 })
	f.enter("gone", "bob")
	f.tick()
	f.pass(time.Second)
	f.enter("cy")
	// Both are listened for; only cy is heard.
	f.life.Version, f.life.Rules.Paused = 2, true
	require.NoError(t, f.Update(t.Context(), f.life))
	f.reap()
	f.keepHearing(130*time.Second, "cy")
	f.life.Version, f.life.Rules.Paused = 3, false
	require.NoError(t, f.Update(t.Context(), f.life))
	require.Equal(t, []string{"cy"}, members(f.reserve()))
	require.EqualValues(t, 1, f.snap().Away, "bob")
	f.conserved()
}

// Case 13 as well, and the bound of one call: however many vanished, each call
// moves on.
func TestCase13ManyVanishedAreSkippedABoundedNumberPerCall(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 1; r.Paused = true })
	f.enterMany(0, 1000)
	f.enter("here")
	for range 15 { // an eighth of AwayAfter
		f.pass(time.Second)
		f.reap()
	}
	f.keepHearing(130*time.Second, "here")
	f.life.Version, f.life.Rules.Paused = 2, false
	require.NoError(t, f.Update(t.Context(), f.life))
	calls := 0
	for {
		r := f.reserve()
		calls++
		if len(r.Taken) > 0 {
			require.Equal(t, []string{"here"}, members(r))
			break
		}
		require.True(t, r.More)
	}
	require.LessOrEqual(t, calls, 4)
	f.conserved()
}

// A call of reap looks at so many that everybody before the horizon is met in an
// eighth of AwayAfter, and at no more: it costs Redis time each second.
func TestReapMeetsTheFrontInAnEighthOfAwayAfter(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch, r.AwayAfter = 50, 120*time.Second })
	f.enterAtOnce(10_000)
	met := func() int64 { return f.rdb.ZCard(t.Context(), f.key("seen")).Val() }
	for range 15 {
		before := met()
		f.reap()
		require.EqualValues(t, 600, met()-before)
	}
	require.EqualValues(t, f.life.Rules.Horizon(), met())
	f.reap()
	require.EqualValues(t, f.life.Rules.Horizon(), met(), "nobody behind it")
}

func TestForgotten(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	f.tick()
	f.keepHearing(31 * time.Second)
	require.Equal(t, 1, f.reap().Away)
	f.keepHearing(1795 * time.Second)
	require.Zero(t, f.reap().Forgotten)
	f.keepHearing(10 * time.Second)
	require.Equal(t, 1, f.reap().Forgotten)
	require.Equal(t, queue.OutcomeForgotten, f.standing("ann").Outcome)
	f.conserved()
}

// Case 58, riverqueue/river#1318: expired grants are handled in one cycle however
// many others there are, and even if those stand first, as they can only in an
// index that has been damaged.
func TestCase58EntriesThatNeedNothingStarveNobody(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		t.Run(fmt.Sprint("damaged=", damaged), func(t *testing.T) {
			f := setup(t, func(r *queue.Rules) { r.Batch = 5000 })
			f.enterMany(0, 10)
			for _, m := range f.tick() {
				f.pickUp(m)
			}
			f.pass(299 * time.Second)
			f.enterAtOnce(3000)
			var first []redis.Z
			for _, m := range f.tick() {
				first = append(first, redis.Z{Score: 1, Member: m})
			}
			require.Len(t, first, 3000)
			f.pass(2 * time.Second)
			most := 1
			if damaged {
				require.NoError(t, f.rdb.ZAdd(t.Context(), f.key("ready"), first...).Err())
				most = 3000/reapAtOnce + 2
			}
			expired, calls := 0, 0
			for more := true; more && calls < 100; calls++ {
				r := f.reap()
				expired, more = expired+r.Expired, r.More
			}
			require.Equal(t, 10, expired)
			require.LessOrEqual(t, calls, most)
			require.EqualValues(t, 3000, f.snap().Ready)
			f.conserved()
		})
	}
}

// Case 6, aws-solutions/virtual-waiting-room-on-aws#235: more than one page of
// expired grants.
func TestCase6ManyExpiredGrantsAreAllProcessed(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 2500 })
	f.enterMany(0, 2500)
	f.tick()
	for i := range 2500 {
		f.pickUp(fmt.Sprintf("m%05d", i))
	}
	f.pass(301 * time.Second)
	total, calls := 0, 0
	for more := true; more && calls < 100; calls++ {
		r := f.reap()
		total, more = total+r.Expired, r.More
	}
	require.Equal(t, 2500, total)
	require.LessOrEqual(t, calls, 2500/reapAtOnce+1)
	require.EqualValues(t, 2500, f.snap().Counters["expired"])
	f.conserved()
}

func TestReapingTwiceIsReapingOnce(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 20)
	f.tick()
	f.pass(31 * time.Second)
	f.reap()
	before := f.dump("state")
	require.Equal(t, queue.Reaped{}, f.reap())
	require.Equal(t, before, f.dump("state"))
}

// W6: an entry in one index without the other is mended, in both directions.
func TestLostIndexEntriesAreMended(t *testing.T) {
	for _, part := range []string{"ready", "claimed", "processing", "away"} {
		t.Run(part, func(t *testing.T) {
			f := setup(t)
			f.enter("ann")
			switch part {
			case "ready":
				f.tick()
			case "claimed":
				require.NoError(t, f.Claim(t.Context(), grantOf(f), "c", 15*time.Second))
			case "processing":
				f.reserve()
			case "away":
				f.tick()
				f.pass(31 * time.Second)
				f.reap()
			}
			require.NoError(t, f.rdb.ZRem(t.Context(), f.key(part), "ann").Err())
			f.reap()
			require.NotEqual(t, queue.NotEntered, f.status("ann"))
			f.conserved()
		})
	}
	t.Run("a grant whose record is lost", func(t *testing.T) {
		f := setup(t)
		f.enter("ann")
		f.tick()
		require.NoError(t, f.rdb.HDel(t.Context(), f.key("grants"), "ann").Err())
		f.pass(31 * time.Second)
		f.reap()
		require.Zero(t, f.snap().Ready)
	})
}

func TestWhenAllIsOverNothingIsLeft(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.DoneTTL = time.Minute })
	f.enterMany(0, 120)
	f.tick()
	g := f.pickUp("m00000")
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	_, err := f.Consume(t.Context(), f.room, spent(g))
	require.NoError(t, err)
	for range 3 {
		f.keepHearing(1800*time.Second + 400*time.Second)
		for range 4 {
			f.tick()
		}
	}
	left := f.dump("conf", "state", "stats")
	require.Empty(t, left, "I22")
	f.conserved()
}

// A process sends the heartbeats of those within the horizon alone. Whoever stands
// behind it must not be listened for, or a pause would make them absent.
func TestNobodyBehindTheHorizonIsListenedFor(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch, r.Paused = 7, true })
	f.enterMany(0, 1500)
	bound := int(f.life.Rules.Horizon())
	require.Equal(t, 1260, bound, "not a multiple of what reap reads at once")
	var heard []string
	for i := range bound {
		heard = append(heard, fmt.Sprintf("m%05d", i))
	}
	f.reap()
	for range 25 {
		f.pass(5 * time.Second)
		for part := range slices.Chunk(heard, 500) {
			require.NoError(t, f.Heard(t.Context(), f.room, part))
		}
		f.reap()
	}
	require.Zero(t, f.snap().Away, "all have polled as they were told")
}
