package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// answered is an error that Redis itself has sent.
type answered string

func (a answered) Error() string { return string(a) }
func (answered) RedisError()     {}

var _ redis.Error = answered("")

func TestARedisThatHasNoTimeForUsIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"ERR max number of clients reached", "BUSY Redis is busy running a script",
		"MISCONF Errors writing to the AOF file. script: 7f, on @user_script:3.",
	} {
		require.ErrorIs(t, mapError(answered(text)), queue.ErrUnavailable, text)
	}
	require.ErrorIs(t, mapError(errors.New("broken pipe")), queue.ErrUnavailable)
	require.NotErrorIs(t, mapError(answered("NOPERM no permissions to run the 'evalsha' command")), queue.ErrUnavailable, "waiting does not help")
}

// TestAMissingRightIsNoDamage is about a server whose rights are changed while
// events are under way: they must not die of it.
func TestAMissingRightIsNoDamage(t *testing.T) {
	t.Parallel()
	f := on(t, client(t, harness.RedisServer(t).Addr))
	f.enter("ann")
	f.tick()
	g := f.pickUp("ann")
	admin := client(t, f.rdb.Options().Addr)
	require.NoError(t, admin.Do(context.Background(), "ACL", "SETUSER", "weak", "on", ">w", "~*", "+@all", "-hmget").Err())
	weak := redis.NewClient(&redis.Options{Addr: f.rdb.Options().Addr, Username: "weak", Password: "w"})
	t.Cleanup(func() { weak.Close() })
	_, err := New(weak, f.prefix).Consume(t.Context(), f.room, spent(g))
	require.ErrorContains(t, err, "user")
	require.NotErrorIs(t, err, queue.ErrDamaged)
	_, err = f.Consume(t.Context(), f.room, spent(g))
	require.NoError(t, err)
	require.Equal(t, queue.Consumed, f.status("ann"))
}

// TestACrowdThatComesAtOnceComesIn is about the moment when a room opens: those who
// share a call with a crowd are answered within the time that a read has.
func TestACrowdThatComesAtOnceComesIn(t *testing.T) {
	t.Parallel()
	const crowd = 15_000
	f := on(t, harness.Redis(t))
	o := *f.rdb.Options()
	o.ReadTimeout, o.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond // as the product has them
	o.MaxRetries = -1
	rdb := redis.NewClient(&o)
	t.Cleanup(func() { rdb.Close() })
	line := New(rdb, f.prefix, WithClock(func() time.Time { return f.clock }))
	var refused atomic.Int64
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			if _, err := line.Enter(t.Context(), f.room, fmt.Sprint("m", i), 0); err != nil {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	require.Zero(t, refused.Load())
	require.EqualValues(t, crowd, f.snap().Waiting())
}
