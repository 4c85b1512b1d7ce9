package config_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/test/harness"
)

// silent is a log of the client that nobody reads: each failed dial is a line.
type silent struct{}

// Printf implements go-redis's logger.
func (silent) Printf(context.Context, string, ...any) {}

// Case 36, redis/go-redis#3630: Redis is down, and all who ask give up while
// their connection is still being made. Nothing of them stays behind, and the
// client works as soon as Redis does.
//
// It measures the memory of the process, and so runs alone.
func TestCase36AStormOfShortDeadlinesLeavesNothingBehind(t *testing.T) {
	redis.SetLogger(silent{})
	server := harness.RedisServer(t)
	o, err := config.RedisOptions(config.URL("redis://" + server.Addr))
	require.NoError(t, err)
	client := config.OpenRedis(o)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.Ping(t.Context()).Err())
	server.Kill()

	storm := func(calls int) {
		var wg sync.WaitGroup
		for range 2 { // more would mostly wait for each other
			wg.Go(func() {
				for range calls / 2 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20_000)))
					_ = client.Incr(ctx, "k").Err()
					cancel()
				}
			})
		}
		wg.Wait()
	}
	left := func() (bytes uint64, goroutines int) {
		harness.Eventually(t, 10*time.Second, "dials under way have ended", func() bool {
			runtime.GC()
			before := runtime.NumGoroutine()
			time.Sleep(20 * time.Millisecond) // between two looks
			return runtime.NumGoroutine() == before
		})
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	storm(2000) // so that pools have the size they take
	bytes, goroutines := left()
	storm(8000)
	bytesAfter, goroutinesAfter := left()
	require.Less(t, int64(bytesAfter)-int64(bytes), int64(512<<10), "the heap has grown from %d to %d", bytes, bytesAfter)
	require.LessOrEqual(t, goroutinesAfter, goroutines+10)

	require.NoError(t, server.Start())
	harness.Eventually(t, 5*time.Second, "the client works again", func() bool { return client.Ping(t.Context()).Err() == nil })
}
