package breaker_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/breaker"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // a client whose server is killed talks a lot
	os.Exit(harness.Run(m))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// patience is for what has no promised time but must come.
const patience = 20 * time.Second

// log is what a breaker has told.
type log struct {
	mu     sync.Mutex
	states map[string][]breaker.State
}

func (l *log) note(name string, _, s breaker.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.states == nil {
		l.states = map[string][]breaker.State{}
	}
	l.states[name] = append(l.states[name], s)
}

func (l *log) of(name string) []breaker.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.states[name])
}

// guarded is a client as the product opens it, behind breakers.
func guarded(t *testing.T, url string) (redis.UniversalClient, *log) {
	t.Helper()
	o, err := config.RedisOptions(config.URL(url))
	require.NoError(t, err)
	c, told := config.OpenRedis(o), &log{}
	t.Cleanup(func() { _ = c.Close() })
	breaker.Guard(c, told.note)
	return c, told
}

func single(t *testing.T, p *devstack.Proc) (redis.UniversalClient, *log) {
	t.Helper()
	return guarded(t, "redis://"+p.Addr)
}

func isOpen(err error) bool {
	var open breaker.OpenError
	return errors.As(err, &open)
}

func TestABreakerOpensForThreeSecondsAndOneRequestTries(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	c, told := single(t, server)
	asked := breaker.Request(t.Context())
	require.NoError(t, c.Set(asked, "k", "v", 0).Err())
	require.Equal(t, []breaker.State{breaker.Closed}, told.of("redis"))

	server.Kill()
	harness.Eventually(t, patience, "the breaker opens", func() bool { return isOpen(c.Get(asked, "k").Err()) })
	opened := time.Now()
	var refused breaker.OpenError
	for range 100 {
		err := c.Get(asked, "k").Err()
		require.ErrorAs(t, err, &refused)
		require.GreaterOrEqual(t, refused.RetryAfter(), time.Second)
		require.LessOrEqual(t, refused.RetryAfter(), 4*time.Second)
		_, err = c.Pipelined(asked, func(p redis.Pipeliner) error { return p.Get(asked, "k").Err() })
		require.ErrorAs(t, err, &refused)
	}
	require.Less(t, time.Since(opened), time.Second, "a refusal waits for nothing")
	require.False(t, isOpen(c.Get(t.Context(), "k").Err()), "who is no request asks for itself")

	require.NoError(t, server.Start())
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err(), "the scheduler is not kept waiting")
	require.True(t, isOpen(c.Get(asked, "k").Err()) || time.Since(opened) > 3*time.Second)
	harness.Eventually(t, patience, "one request tries, and the breaker closes", func() bool { return c.Get(asked, "k").Err() == nil })
	require.Greater(t, time.Since(opened), 2500*time.Millisecond)
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.Closed}, told.of("redis"))
	require.NoError(t, c.Get(asked, "k").Err())
}

func TestABreakerOfARedisThatHangsOpensToo(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	c, told := single(t, server)
	asked := breaker.Request(t.Context())
	require.NoError(t, c.Set(asked, "k", "v", 0).Err())
	server.Pause()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _ = c.Get(asked, "k").Err() })
	}
	all.Wait()
	began := time.Now()
	require.True(t, isOpen(c.Get(asked, "k").Err()))
	require.Less(t, time.Since(began), 300*time.Millisecond)
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open}, told.of("redis"))
	server.Resume()
	harness.Eventually(t, patience, "it closes", func() bool { return c.Get(asked, "k").Err() == nil })
}

// TestWhatRedisSaysIsAnAnswer is about a server that is full, read-only, busy, or
// does not like the question.
func TestWhatRedisSaysIsAnAnswer(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(c redis.UniversalClient, direct *redis.Client) error{
		"OOM": func(c redis.UniversalClient, direct *redis.Client) error {
			return direct.ConfigSet(t.Context(), "maxmemory", "1").Err()
		},
		"READONLY": func(c redis.UniversalClient, direct *redis.Client) error {
			return direct.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err()
		},
		"BUSY": func(c redis.UniversalClient, direct *redis.Client) error {
			go direct.Eval(context.WithoutCancel(t.Context()), "while true do end", nil)
			return direct.ConfigSet(t.Context(), "busy-reply-threshold", "10").Err()
		},
		"WRONGTYPE": func(c redis.UniversalClient, direct *redis.Client) error {
			return direct.SAdd(t.Context(), "k", "x").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := harness.RedisServer(t)
			c, told := single(t, server)
			direct := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, ReadTimeout: -1})
			t.Cleanup(func() { _ = direct.Close() })
			_ = put(c, direct)
			asked := breaker.Request(t.Context())
			harness.Eventually(t, patience, "Redis says "+name, func() bool {
				err := c.Append(asked, "k", "v").Err()
				return redis.HasErrorPrefix(err, name) || name == "OOM" && err != nil && redis.HasErrorPrefix(err, "OOM")
			})
			for range 20 {
				require.True(t, redis.HasErrorPrefix(c.Append(asked, "k", "v").Err(), name))
			}
			require.ErrorContains(t, c.EvalSha(asked, "0123456789012345678901234567890123456789", nil).Err(), map[bool]string{true: "BUSY", false: "NOSCRIPT"}[name == "BUSY"])
			require.Equal(t, []breaker.State{breaker.Closed}, told.of("redis"))
			server.Kill() // a busy one would not end otherwise
		})
	}
}

func TestAClientThatHangsUpProvesNothing(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	c, told := single(t, server)
	asked := breaker.Request(t.Context())
	require.NoError(t, c.Set(asked, "k", "v", 0).Err())
	server.Pause()
	for range 20 {
		ctx, hangUp := context.WithTimeout(asked, 5*time.Millisecond)
		require.Error(t, c.Get(ctx, "k").Err())
		hangUp()
	}
	require.Equal(t, []breaker.State{breaker.Closed}, told.of("redis"))
	server.Resume()
}

func TestAShardThatIsAwayTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	cluster := harness.Cluster(t)
	c, told := guarded(t, cluster.URL())
	asked := breaker.Request(t.Context())
	keys := map[*devstack.Proc]string{}
	for i := 0; len(keys) < 3; i++ {
		key := "{room-" + string(rune('a'+i)) + "}:conf"
		owner, err := cluster.Owner(t.Context(), key)
		require.NoError(t, err)
		keys[owner] = key
	}
	dead, alive := keys[cluster.Nodes[0]], []string{keys[cluster.Nodes[1]], keys[cluster.Nodes[2]]}
	for _, key := range keys {
		require.NoError(t, c.Set(asked, key, "v", 0).Err())
	}
	cluster.Nodes[0].Kill()
	harness.Eventually(t, patience, "the breaker of the shard opens", func() bool { return isOpen(c.Get(asked, dead).Err()) })
	for range 50 {
		for _, key := range alive {
			require.NoError(t, c.Get(asked, key).Err())
		}
	}
	require.Contains(t, told.of("redis "+cluster.Nodes[0].Addr), breaker.Open)
	for _, p := range cluster.Nodes[1:3] {
		require.Equal(t, []breaker.State{breaker.Closed}, told.of("redis "+p.Addr))
	}
}
