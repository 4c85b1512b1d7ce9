package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// limits are tried in the suite: one of each kind that rounds differently.
var limits = []string{"1/1s", "3/1s", "7/1m", "60/1m", "10/100ms"}

var algorithms = []Algorithm{Fixed, Sliding, Token, Leaky}

// unique is a prefix for keys that no other test has, nor another run of this one.
func unique(t *testing.T) string { return fmt.Sprintf("%s-%x", t.Name(), rand.Uint64()) }

// fresh returns limiters that nobody has asked, on one Redis.
func fresh(t *testing.T) func(l Limit) subject {
	var now time.Time
	var n int
	limiter := New(harness.Redis(t), unique(t), WithClock(func() time.Time { return now }))
	return func(l Limit) subject {
		n++
		key := fmt.Sprint("key", n)
		return func(at time.Time) Reply {
			now = at
			r, err := limiter.Allow(t.Context(), key, l)
			require.NoError(t, err)
			return r
		}
	}
}

func TestEachAlgorithmKeepsWhatAllPromise(t *testing.T) {
	for _, algorithm := range algorithms {
		for _, text := range limits {
			l, err := Parse(string(algorithm) + ":" + text)
			require.NoError(t, err)
			t.Run(l.String(), func(t *testing.T) {
				t.Parallel()
				seed := rand.Uint64()
				rnd := rand.New(rand.NewPCG(seed, 1))
				next := fresh(t)
				for _, p := range suite {
					require.NoError(t, p.keeps(l, next(l), rnd), "%s (seed %d)", p.name, seed)
				}
			})
		}
	}
}

func TestTheLocalBucketKeepsWhatAllPromise(t *testing.T) {
	for _, text := range limits {
		l, err := Parse("token:" + text)
		require.NoError(t, err)
		for _, p := range suite {
			now := epoch
			local := NewLocal[string](l, 1000, func() time.Time { return now })
			ask := func(at time.Time) Reply {
				now = at
				return local.Allow("ann")
			}
			if p.name == suite[len(suite)-1].name || p.name == suite[len(suite)-2].name {
				continue // a monotonic clock does not go back
			}
			require.NoError(t, p.keeps(l, ask, rand.New(rand.NewPCG(1, 2))), "%s: %s", l, p.name)
		}
	}
}

// The bucket of a process and the one in Redis are one rule.
func TestTheLocalBucketAnswersAsTheOneInRedis(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	next := fresh(t)
	for _, text := range limits {
		l, err := Parse("token:" + text)
		require.NoError(t, err)
		now := epoch
		local, shared := NewLocal[string](l, 1000, func() time.Time { return now }), next(l)
		for _, at := range trace(l, rnd) {
			now = at
			require.Equal(t, shared(at), local.Allow("ann"), "%s at %s", l, at)
		}
	}
}

func TestManyAtOnceShareOneCount(t *testing.T) {
	l := Limit{Sliding, 25, time.Minute}
	var allowed atomic.Int64
	var all sync.WaitGroup
	rdb, prefix := harness.Redis(t), unique(t)
	for range 4 { // processes
		limiter := New(rdb, prefix)
		for range 25 {
			all.Go(func() {
				r, err := limiter.Allow(context.Background(), "ann", l)
				if err == nil && r.Allowed {
					allowed.Add(1)
				}
			})
		}
	}
	all.Wait()
	require.EqualValues(t, 25, allowed.Load())
}

func TestKeysAndLimitsDoNotShare(t *testing.T) {
	limiter := New(harness.Redis(t), unique(t))
	for _, ask := range []struct {
		key   string
		limit Limit
	}{{"ann", Limit{Leaky, 1, time.Minute}}, {"bob", Limit{Leaky, 1, time.Minute}}, {"ann", Limit{Leaky, 2, time.Minute}}, {"ann", Limit{Fixed, 1, time.Minute}}} {
		r, err := limiter.Allow(t.Context(), ask.key, ask.limit)
		require.NoError(t, err)
		require.True(t, r.Allowed, "%s %s", ask.key, ask.limit)
	}
}

func TestNothingIsKeptOfWhoHasGone(t *testing.T) {
	rdb := harness.Redis(t)
	for _, algorithm := range algorithms {
		prefix := unique(t)
		limiter, l := New(rdb, prefix), Limit{algorithm, 3, 200 * time.Millisecond}
		for range 5 {
			_, err := limiter.Allow(t.Context(), "ann", l)
			require.NoError(t, err)
		}
		key := prefix + ":limit:" + l.String() + ":ann"
		ttl := rdb.PTTL(t.Context(), key).Val()
		require.Positive(t, ttl)
		require.LessOrEqual(t, ttl, 202*time.Millisecond)
		harness.Eventually(t, time.Second, "the key goes", func() bool { return rdb.Exists(t.Context(), key).Val() == 0 })
	}
}

func TestAFullRedisIsAnErrorAndDecidesNothing(t *testing.T) {
	server := harness.RedisServer(t, "--maxmemory", "1")
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	for _, algorithm := range algorithms {
		_, err := New(rdb, unique(t)).Allow(t.Context(), "ann", Limit{algorithm, 3, time.Second})
		require.ErrorContains(t, err, "OOM")
	}
}

func TestTheLocalBucketIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Token, 3, time.Second}
		local := NewLocal[string](l, 10_000, time.Now)
		count := func() (n int) {
			for i := range local.kept.shards {
				n += len(local.kept.shards[i].young) + len(local.kept.shards[i].old)
			}
			return n
		}
		for i := range 100_000 {
			require.True(t, local.Allow(fmt.Sprint(i)).Allowed, "within the limit, whoever else floods")
		}
		require.LessOrEqual(t, count(), 10_000+2*shards)
		time.Sleep(2 * l.Per)
		for i := range 1000 { // who comes later finds the flood forgotten
			local.Allow(fmt.Sprint("late", i))
		}
		time.Sleep(2 * l.Per)
		for i := range 1000 {
			local.Allow(fmt.Sprint("late", i))
		}
		require.LessOrEqual(t, count(), 2000)
	})
}

func TestLimitsAreReadAsTheyAreWritten(t *testing.T) {
	for _, text := range []string{"sliding:60/1m", "token:3/1s", "leaky:10/1m", "fixed:1/24h", "sliding:10000/10ms", "token:5/1m30s"} {
		l, err := Parse(text)
		require.NoError(t, err, text)
		again, err := Parse(l.String())
		require.NoError(t, err)
		require.Equal(t, l, again)
	}
	for text, wrong := range map[string]string{
		"":                 "as sliding:60/1m",
		"60/1m":            "as sliding:60/1m",
		"Sliding:60/1m":    "as sliding:60/1m",
		"gcra:60/1m":       "as sliding:60/1m",
		"sliding:-1/1m":    "as sliding:60/1m",
		"sliding:0/1m":     "1 to 10000",
		"sliding:10001/1m": "1 to 10000",
		"sliding:60/":      "as sliding:60/1m",
		"sliding:60/min":   "a duration",
		"sliding:60/1ms":   "a duration",
		"sliding:60/25h":   "a duration",
		"sliding:60/-1m":   "a duration",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, wrong, text)
	}
}

func BenchmarkLocal(b *testing.B) {
	local := NewLocal[string](Limit{Token, 3, time.Second}, 1_000_000, time.Now)
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprint("member", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		local.Allow(keys[i%len(keys)])
	}
}

// BenchmarkLimiter is one question to Redis, by algorithm, of many callers' keys.
func BenchmarkLimiter(b *testing.B) {
	limiter := New(harness.Redis(b), "bench")
	for _, algorithm := range algorithms {
		b.Run("algorithm="+string(algorithm), func(b *testing.B) {
			limit := Limit{algorithm, 60, time.Minute}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := limiter.Allow(b.Context(), fmt.Sprint(algorithm, i%10_000), limit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
