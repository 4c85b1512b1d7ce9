package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// reached is a store as the product has it.
func reached(t *testing.T, url string) *redisstore.Store {
	t.Helper()
	o, err := config.RedisOptions(config.URL(url))
	require.NoError(t, err)
	c := config.OpenRedis(o)
	t.Cleanup(func() { _ = c.Close() })
	return redisstore.New(c, "reach")
}

func TestARedisIsOutOfReachOnlyWhereNobodyAnswersTheDoor(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	s := reached(t, "redis://"+server.Addr)
	away := func() map[string]bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return s.Unreachable(ctx, []string{"a", "b"})
	}
	require.Nil(t, s.Unreachable(t.Context(), nil))
	require.Equal(t, map[string]bool{"a": false, "b": false}, away())
	server.Pause()
	require.Equal(t, map[string]bool{"a": false, "b": false}, away(), "it hangs")
	server.Resume()
	server.Kill()
	harness.Eventually(t, 10*time.Second, "the old connections are given up", func() bool { return away()["a"] })
	require.Equal(t, map[string]bool{"a": true, "b": true}, away())
	require.NoError(t, server.Start())
	harness.Eventually(t, 10*time.Second, "it is back", func() bool { return !away()["b"] })
}

func TestAShardThatIsOutOfReachIsThatOfItsRoomsAlone(t *testing.T) {
	t.Parallel()
	cluster := harness.Cluster(t)
	s := reached(t, cluster.URL())
	rooms, of := []string{}, map[string]bool{}
	for i := range 12 {
		name := fmt.Sprint("room-", i)
		owner, err := cluster.Owner(t.Context(), "reach:{"+name+"}:conf")
		require.NoError(t, err)
		rooms, of[name] = append(rooms, name), owner == cluster.Nodes[0]
	}
	require.NotContains(t, s.Unreachable(t.Context(), rooms), true)
	cluster.Nodes[0].Kill()
	harness.Eventually(t, 20*time.Second, "the rooms of the shard, and no other, are out of reach", func() bool {
		away := s.Unreachable(t.Context(), rooms)
		for name := range away {
			require.False(t, away[name] && !of[name], "%s is on a shard that serves", name)
			if !away[name] && of[name] {
				return false
			}
		}
		return true
	})
}

// failingClient fails every dial in one way.
func failingClient(t *testing.T, err error) *redisstore.Store {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: "nowhere:1", MaxRetries: -1, DialerRetries: 1,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, err }})
	t.Cleanup(func() { _ = c.Close() })
	return redisstore.New(c, "reach")
}

// TestOnlyARefusalIsARefusal has every way in which a connection can't be had.
func TestOnlyARefusalIsARefusal(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	refused := dial(syscall.ECONNREFUSED)
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"refused":                   {refused, true},
		"no way to the host":        {dial(syscall.EHOSTUNREACH), true},
		"no way to the net":         {dial(syscall.ENETUNREACH), true},
		"no such name":              {dial(&net.DNSError{IsNotFound: true}), true},
		"all sentinels refuse":      {fmt.Errorf("all: %w", errors.Join(refused, refused)), true},
		"one sentinel is slow":      {fmt.Errorf("all: %w", errors.Join(refused, context.DeadlineExceeded)), false},
		"a dial that times out":     {dial(syscall.ETIMEDOUT), false},
		"a dial without time left":  {dial(context.DeadlineExceeded), false},
		"a name server that hangs":  {dial(&net.DNSError{IsTimeout: true}), false},
		"reset in the handshake":    {dial(syscall.ECONNRESET), false},
		"no more files of our own":  {dial(syscall.EMFILE), false},
		"a certificate of somebody": {errors.New("tls: failed to verify certificate"), false},
	} {
		require.Equal(t, map[string]bool{"a": c.want}, failingClient(t, c.err).Unreachable(t.Context(), []string{"a"}), name)
	}
}
