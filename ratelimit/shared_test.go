package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// counted counts the questions that reach Redis.
type counted struct{ n atomic.Int64 }

func (c *counted) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}
func (c *counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == "evalsha" { // the others introduce a connection
				c.n.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

// countedRedis is a client of its own whose questions are counted.
func countedRedis(t *testing.T) (*redis.Client, *counted) {
	t.Helper()
	c := &counted{}
	rdb := redis.NewClient(harness.Redis(t).Options())
	t.Cleanup(func() { _ = rdb.Close() })
	rdb.AddHook(c)
	return rdb, c
}

// Several processes that remember refusals, on one count, decide as one that asks
// every time: of each algorithm, all that they answer is the same.
func TestWhatIsRememberedIsWhatRedisWouldSay(t *testing.T) {
	for _, algorithm := range algorithms {
		for _, text := range limits {
			l, err := Parse(string(algorithm) + ":" + text)
			require.NoError(t, err)
			t.Run(l.String(), func(t *testing.T) {
				t.Parallel()
				now := epoch
				clock := func() time.Time { return now }
				rdb, asked := countedRedis(t)
				plain := New(rdb, unique(t), WithClock(clock))
				shared := New(rdb, unique(t), WithClock(clock))
				processes := []*Shared{NewShared(shared, l, 1000, clock), NewShared(shared, l, 1000, clock), NewShared(shared, l, 1000, clock)}
				rnd := rand.New(rand.NewPCG(11, uint64(l.N)))
				questions, refused := 0, 0
				for _, at := range trace(l, rnd) {
					now = at
					for range 1 + rnd.IntN(4) {
						want, err := plain.Allow(t.Context(), "ann", l)
						require.NoError(t, err)
						got, err := processes[rnd.IntN(3)].Allow(t.Context(), "ann")
						require.NoError(t, err)
						require.Equal(t, want, got, "at %s", at.Sub(epoch))
						if questions++; !want.Allowed {
							refused++
						}
					}
				}
				require.Positive(t, refused)
				require.Less(t, int(asked.n.Load()), 2*questions, "nothing was remembered")
			})
		}
	}
}

func TestAFloodCostsRedisNoMoreThanItLetsThrough(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		rdb, asked := countedRedis(t)
		l := Limit{algorithm, 60, time.Hour}
		s := NewShared(New(rdb, unique(t), WithClock(func() time.Time { return epoch })), l, 1000, time.Now)
		allowed := 0
		for range 10_000 {
			r, err := s.Allow(t.Context(), "ann")
			require.NoError(t, err)
			if r.Allowed {
				allowed++
			}
		}
		require.Equal(t, l.depth(), allowed)
		require.LessOrEqual(t, asked.n.Load(), int64(allowed)+1, "one question each, and the script itself once")
	}
}

// An answer that took long to come does not keep anybody out for longer.
func TestAWaitIsReckonedFromBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	at, slow := epoch, 300*time.Millisecond
	l := Limit{Leaky, 1, time.Second}
	// The second look at the clock is when the question goes out; Redis has its own.
	var looks int
	now := func() time.Time { looks++; return at.Add(time.Duration(looks/3) * slow) }
	s := NewShared(New(harness.Redis(t), unique(t), WithClock(func() time.Time { return at })), l, 1000, now)
	looks = 0
	r, err := s.Allow(t.Context(), "ann")
	require.NoError(t, err)
	require.True(t, r.Allowed)
	looks = 0
	at = at.Add(time.Second - time.Microsecond)
	_, refused := s.Known("ann")
	require.True(t, refused)
	at, looks = at.Add(time.Microsecond), 0
	r, err = s.Allow(t.Context(), "ann")
	require.NoError(t, err)
	require.True(t, r.Allowed, "whom Redis would let through was refused from memory")
}

func TestManyAtOnceShareWhatAProcessRemembers(t *testing.T) {
	t.Parallel()
	l := Limit{Token, 25, time.Hour}
	shared, local := NewShared(New(harness.Redis(t), unique(t)), l, 1000, time.Now), NewLocal[string](l, 1000, time.Now)
	var allowed, here atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 20 {
				if r, err := shared.Allow(context.Background(), "ann"); err == nil && r.Allowed {
					allowed.Add(1)
				}
				if local.Allow("ann").Allowed {
					here.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 25, allowed.Load())
	require.EqualValues(t, 25, here.Load())
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := epoch
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	l := Limit{Leaky, 1, time.Hour}
	s := NewShared(New(harness.Redis(t), unique(t), WithClock(clock)), l, 640, clock)
	for i := range 5000 {
		_, err := s.Allow(t.Context(), fmt.Sprint(i))
		require.NoError(t, err)
	}
	n := 0
	for i := range s.waiting.shards {
		n += len(s.waiting.shards[i].young) + len(s.waiting.shards[i].old)
	}
	require.LessOrEqual(t, n, 640+2*shards)
	r, err := s.Allow(t.Context(), "0")
	require.NoError(t, err)
	require.False(t, r.Allowed, "who was forgotten here is known there")
}
