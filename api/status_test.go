package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/test/harness"
)

var callsOf = regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`)

// commandsRun is how many commands a Redis has run, but for those that ask it.
func commandsRun(t *testing.T, rdb *redis.Client) (n int) {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for _, m := range callsOf.FindAllStringSubmatch(info, -1) {
		if m[1] != "info" {
			calls, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			n += calls
		}
	}
	return n
}

// TestAThousandWhoAskForTheStatusCostRedisWhatOneDoes: the status with its marks is read
// once a second by each process, however many ask.
func TestAThousandWhoAskForTheStatusCostRedisWhatOneDoes(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t) // of its own, so that nobody else's commands are counted
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	f := setUp(t, func(p *plan) { p.rdb = rdb })
	f.crowd(1000)
	warm := f.serve() // the first call of a script sends it
	warm.status(f.room)

	cost := func(callers int) (n int, took time.Duration) {
		site, began, before := f.serve(), time.Now(), commandsRun(t, rdb)
		var g errgroup.Group
		g.SetLimit(64)
		for range callers {
			g.Go(func() error {
				a, err := site.try(t.Context(), "GET", "/v1/rooms/"+f.room)
				if err != nil || a.status != http.StatusOK {
					return fmt.Errorf("%d %w", a.status, err)
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		return commandsRun(t, rdb) - before, time.Since(began)
	}
	one, _ := cost(1)
	require.Positive(t, one)
	thousand, took := cost(1000)
	seconds := 1 + int(took/time.Second) // of a machine that is slow
	require.LessOrEqual(t, thousand, one*seconds, "in %v", took)
}

// Nothing of a status is one caller's, and nothing that went wrong is kept.
func TestAStatusHasNothingThatKeepsACacheFromServingIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.limited(defaults(t))
	_, header := f.status(f.room)
	for _, name := range []string{"Set-Cookie", "RateLimit", "RateLimit-Policy", "Vary", "Retry-After"} {
		require.Empty(t, header.Values(name), name)
	}
	require.Equal(t, "public, max-age=1", header.Get("Cache-Control"))
	require.Equal(t, "no-store", f.call("GET", "/v1/rooms/none").refused(http.StatusNotFound, "room-not-found").header.Get("Cache-Control"))
	_, err := f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	away := f.serve().call("GET", "/v1/rooms/"+f.room).refused(http.StatusServiceUnavailable, "unavailable")
	require.Equal(t, "no-store", away.header.Get("Cache-Control"))
}
