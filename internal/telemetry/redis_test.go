package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/telemetry"
	"github.com/linekeeper/linekeeper/test/harness"
)

// kindOf returns the one kind that err is counted as.
func kindOf(t *testing.T, err error) string {
	t.Helper()
	m := telemetry.New("v")
	m.ObserveScript("s", 0, err)
	kind := "none"
	for name, value := range scrape(t, m) {
		if label, ok := strings.CutPrefix(name, `redis_errors_total{kind="`); ok {
			require.Equal(t, "none", kind, "counted twice")
			require.Equal(t, "1", value)
			kind = strings.TrimSuffix(label, `"}`)
		}
	}
	return kind
}

func TestErrorsOfRedisItselfAreToldApart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := harness.RedisServer(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	require.Equal(t, "none", kindOf(t, c.Ping(ctx).Err()))
	require.Equal(t, "none", kindOf(t, c.Get(ctx, "nothing").Err()), "a nil reply is no error")
	require.Equal(t, "noscript", kindOf(t, c.EvalSha(ctx, strings.Repeat("0", 40), nil).Err()))
	require.NoError(t, c.Set(ctx, "k", "v", 0).Err())
	require.Equal(t, "wrongtype", kindOf(t, c.Eval(ctx, "return redis.call('LPUSH', KEYS[1], 1)", []string{"k"}).Err()))
	require.Equal(t, "other", kindOf(t, c.Eval(ctx, "return nonsense(", nil).Err()))

	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.Equal(t, "canceled", kindOf(t, c.Ping(gone).Err()))
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	require.Equal(t, "timeout", kindOf(t, c.BLPop(short, 0, "empty").Err()))

	require.NoError(t, c.ConfigSet(ctx, "maxmemory", "1").Err())
	require.Equal(t, "oom", kindOf(t, c.Eval(ctx, "return redis.call('SET', KEYS[1], 1)", []string{"k"}).Err()))
	require.NoError(t, c.ConfigSet(ctx, "maxmemory", "0").Err())
	require.NoError(t, c.ReplicaOf(ctx, "127.0.0.1", "1").Err())
	require.Equal(t, "readonly", kindOf(t, c.Set(ctx, "k", 1, 0).Err()))
	server.Kill()
	require.Equal(t, "network", kindOf(t, c.Ping(ctx).Err()))
}

// reply is an error that a server would have to be brought into a rare state for.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

func TestEveryErrorHasOneOfAFewKinds(t *testing.T) {
	t.Parallel()
	for want, errs := range map[string][]error{
		"loading":  {reply("LOADING Redis is loading the dataset in memory")},
		"busy":     {reply("BUSY Redis is busy running a script.")},
		"cluster":  {reply("CLUSTERDOWN Hash slot not served"), reply("MOVED 1 h:1"), reply("ASK 1 h:1"), reply("TRYAGAIN x"), reply("CROSSSLOT x"), reply("MASTERDOWN x")},
		"network":  {io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, &net.DNSError{Err: "no such host"}},
		"timeout":  {redis.ErrPoolTimeout, context.DeadlineExceeded, &net.DNSError{IsTimeout: true}},
		"canceled": {context.Canceled},
		"other":    {errors.New("x"), reply("ERR x"), reply("BUSYGROUP x"), redis.ErrClosed},
	} {
		for _, err := range errs {
			require.Equal(t, want, kindOf(t, err), "%v", err)
			require.Equal(t, want, kindOf(t, fmt.Errorf("enter: %w", err)), "wrapped: %v", err)
		}
	}
}

func watchPools(t *testing.T, m *telemetry.Metrics) {
	t.Helper()
	c := harness.Redis(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	require.NoError(t, m.WatchRedis("main", c))
	require.NoError(t, m.WatchRedis("lock", c))
	pool := harness.Database(t)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	require.NoError(t, m.WatchPostgres("main", pool))
	require.Error(t, m.WatchPostgres("main", pool), "two pools of one name would export the same series")
}

func TestPoolsAreReadWhenScraped(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	watchPools(t, m)
	got := scrape(t, m)
	for series, want := range map[string]string{
		`redis_pool_connections{pool="main",state="idle"}`:      "1",
		`redis_pool_connections{pool="main",state="in_use"}`:    "0",
		`redis_pool_connections{pool="lock",state="pipeline"}`:  "0",
		`redis_pool_misses_total{pool="main"}`:                  "1",
		`redis_pool_hits_total{pool="main"}`:                    "0",
		`redis_pool_timeouts_total{pool="main"}`:                "0",
		`postgres_pool_connections{pool="main",state="in_use"}`: "1",
		`postgres_pool_acquires_total{pool="main"}`:             "1",
		`postgres_pool_waits_total{pool="main"}`:                "1",
	} {
		require.Equal(t, want, got[series], series)
	}
}

func TestConnectionsOfPipelinesAreCounted(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	c := harness.Redis(t)
	require.NoError(t, m.WatchRedis("main", c))
	_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error { return p.Ping(t.Context()).Err() })
	require.NoError(t, err)
	require.Equal(t, "1", scrape(t, m)[`redis_pool_connections{pool="main",state="pipeline"}`])
}
