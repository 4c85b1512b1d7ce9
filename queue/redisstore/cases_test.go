package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// The tests of this file try what has gone wrong in other systems of this kind.
// Each names the public report that it follows.

// away tells whether a member is AWAY, without waking them by the question.
func (f *fixture) away(member string) bool {
	return f.rdb.ZScore(f.Context(), f.key("away"), member).Err() == nil
}

// order has a member pick up, claim and pay.
func (f *fixture) order(member string) {
	f.Helper()
	g := f.pickUp(member)
	require.NoError(f, f.Claim(f.Context(), g, "claim-"+member, 15*time.Second))
	words, err := f.Consume(f.Context(), f.room, spent(g))
	require.NoError(f, err)
	require.Equal(f, []Consumed{ConsumedNow}, words)
}

// Case 1, aws-solutions/virtual-waiting-room-on-aws#154: those who have gone
// hold up nobody behind them, whether that is noticed before their turn or at
// it, and keep their places.
func TestCase1WhoHasGoneHoldsUpNobody(t *testing.T) {
	noticed := func(f *fixture, first, here []string) {
		for _, m := range first {
			f.pickUp(m)
		}
		f.reap() // from now on the room listens for them
		f.keepHearing(125*time.Second, here...)
		require.Empty(f, f.tick(), "the room is full")
		for _, m := range first {
			f.order(m)
		}
	}
	unnoticed := func(f *fixture, first, _ []string) {
		for _, m := range first {
			f.order(m)
		}
		f.pass(time.Second)
		require.Len(f, f.tick(), 10, "nobody knows yet that they have gone")
		require.Empty(f, f.tick())
		f.pass(30 * time.Second)
	}
	for name, wait := range map[string]func(f *fixture, first, here []string){"noticed before": noticed, "noticed at their turn": unnoticed} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, func(r *queue.Rules) { r.Capacity = 10 })
			f.enterMany(1, 31)
			first := f.tick()
			require.Len(t, first, 10)
			var gone, here []string
			for i := 11; i <= 20; i++ {
				gone, here = append(gone, fmt.Sprintf("m%05d", i)), append(here, fmt.Sprintf("m%05d", i+10))
			}
			wait(f, first, here)
			require.Equal(t, here, f.tick(), "21 to 30 have their turn")
			for _, m := range gone {
				require.True(t, f.away(m), m)
			}
			f.conserved()

			require.Zero(t, f.standing(gone[0]).Rank, "who comes back is first again")
			for _, m := range here {
				f.order(m)
			}
			f.pass(time.Second)
			require.Equal(t, gone[:1], f.tick())
			f.conserved()
		})
	}
}

// Case 2, aws-solutions/virtual-waiting-room-on-aws#208: a place that has ended
// counts nowhere any more, whichever way it has.
func TestCase2ExpiredPlacesAreNotCounted(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Capacity = 4 })
	f.enterMany(0, 6)
	four := f.tick()
	require.Len(t, four, 4)
	f.order(four[0])
	f.order(four[1])
	f.pickUp(four[2])
	f.pickUp(four[3])
	require.Len(t, f.tick(), 2, "as many as have ordered")
	require.Zero(t, f.snap().Waiting())
	f.pass(301 * time.Second)
	f.reap()
	s := f.snap()
	require.Zero(t, s.Waiting()+s.Processing+s.Ready+s.Claimed, "%+v", s)
	require.EqualValues(t, 2, s.Counters["expired"])
	require.EqualValues(t, 2, s.Away, "the last two have never fetched theirs")
	f.conserved()
}

// Case 13, a trouble that the documentation of Cloudflare's waiting room
// describes: ten thousand who enter once and never ask again cost a hundred who
// do no more than the time after which silence counts.
func TestCase13OneShotCrowdDelaysOthersByAwayAfterAtMost(t *testing.T) {
	f := setup(t)
	f.enterAtOnce(10_000)
	var real []string
	for i := range 100 {
		real = append(real, fmt.Sprint("real-", i))
	}
	f.enter(real...)
	admitted, last := 0, 0
	for f.clock.Sub(start) < 180*time.Second && len(real) > 0 {
		f.pass(time.Second)
		require.NoError(t, f.Heard(t.Context(), f.room, real))
		for f.reap().More {
		}
		got := f.tick()
		admitted += len(got)
		if waiting := f.snap().Waiting(); waiting > 0 {
			last++
			require.NotEmpty(t, got, "%d wait, and after %v nobody has a turn", waiting, f.clock.Sub(start))
		}
		real = slices.DeleteFunc(real, func(m string) bool { return slices.Contains(got, m) })
	}
	require.Empty(t, real, "somebody who polls is still behind those who have gone")
	require.LessOrEqual(t, f.clock.Sub(start), f.life.Rules.AwayAfter+25*time.Second, "10,100 at 50 a second take 202 s")
	require.Less(t, admitted, 10_000, "nobody was passed over: this test shows nothing")
	f.conserved()
}

// enterAtOnce puts n members in line at this moment, over many connections.
func (f *fixture) enterAtOnce(n int) {
	f.Helper()
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if _, err := f.Enter(f.Context(), f.room, fmt.Sprint("m", i), 0); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(f, failed.Load())
}

// forgetful makes the server forget every script before each call.
type forgetful struct {
	direct *redis.Client
	piped  atomic.Int64 // scripts that were sent in a pipeline
}

func (h *forgetful) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *forgetful) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			if err := h.direct.ScriptFlush(ctx).Err(); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

func (h *forgetful) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			if strings.HasPrefix(c.Name(), "eval") {
				h.piped.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

// Case 32, redis/go-redis#3228: every script there is, each time on a server
// that does not know it. None is sent in a pipeline, where nobody would send it
// again.
func TestCase32EveryScriptRunsOnAServerThatHasForgottenIt(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	h := &forgetful{direct: client(t, server.Addr)}
	rdb := client(t, server.Addr)
	rdb.AddHook(h)
	var mu sync.Mutex
	ran := map[string]bool{"raise": true} // which has no observer
	s := New(rdb, "t", WithObserver(func(script string, _ time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		ran[script] = ran[script] || err == nil
	}))
	wholeLife(t, s, "room")
	for _, name := range scriptNames(t) {
		require.True(t, ran[name], "script %s has not run", name)
	}
	require.Zero(t, h.piped.Load())
}

// Case 40, redis/redis#8478: a flood into a Redis that is full is refused entry
// by entry, and the server stays within its limit. Nobody has told the room to
// close: this is the last line of defence.
func TestCase40AFloodDoesNotPassTheMemoryLimit(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	f := on(t, client(t, server.Addr))
	used := func() int64 {
		info, err := f.rdb.Info(t.Context(), "memory").Result()
		require.NoError(t, err)
		return infoField(info, "used_memory")
	}
	long := strings.Repeat("x", 6000) // so that it is soon full
	limit := used() + 24<<20
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(limit)).Err())
	var entered, full, other, next, most atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := next.Add(1); i <= 9000; i = next.Add(1) {
				_, err := f.Enter(t.Context(), f.room, fmt.Sprint("m", i, long), 0)
				switch {
				case err == nil:
					entered.Add(1)
				case errors.Is(err, queue.ErrFull):
					full.Add(1)
				default:
					other.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(5 * time.Millisecond): // between two looks
		}
		most.Store(max(most.Load(), used()))
	}
	require.Zero(t, other.Load(), "who finds no room is told that it is full")
	require.Greater(t, entered.Load(), int64(1000))
	require.Greater(t, full.Load(), int64(1000), "the flood was not refused: this test shows nothing")
	require.LessOrEqual(t, most.Load(), limit+limit/100)
	require.Equal(t, entered.Load(), f.snap().Waiting(), "each was refused whole or let in whole")
	f.conserved()
}

// Case 42, redis/redis#1071 and #15824: a hundred thousand enter within one
// second, by a clock that moves on by ten microseconds from one to the next. They
// are sent in pipelines, to be done in time, and to a server that nobody else
// waits for.
func TestCase42AHundredThousandScoresOfOneSecondAreDistinct(t *testing.T) {
	const n, perPipeline = 100_000, 1000
	t.Parallel()
	f := on(t, client(t, harness.RedisServer(t).Addr), func(r *queue.Rules) { r.MaxWaiting = n })
	require.NoError(t, enterScript.Load(t.Context(), f.rdb).Err())
	for from := 0; from < n; from += perPipeline {
		_, err := f.rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := from; i < from+perPipeline; i++ {
				at := unixMicro(start.Add(time.Duration(i) * time.Second / n))
				p.EvalSha(t.Context(), enterScript.Hash(), keys(f.prefix, f.room), at, fmt.Sprint("m", i), 0, 0, 0, "", 0)
			}
			return nil
		})
		require.NoError(t, err)
	}
	scores := f.rdb.ZRangeWithScores(t.Context(), f.key("lane0"), 0, -1).Val()
	require.Len(t, scores, n)
	for i, z := range scores {
		want := float64(start.UnixMicro() + int64(i)*10)
		if z.Score != want || z.Score >= 1<<53 || z.Member != fmt.Sprint("m", i) {
			t.Fatalf("place %d: %v at %.0f, and not at %.0f", i, z.Member, z.Score, want)
		}
	}
}
