package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// Fact 22: a holder has to learn that its lock was lost in between.
func TestVanishedLockIsNotTakenAnewByAnExtend(t *testing.T) {
	t.Parallel()
	rdb := harness.Redis(t)
	name := uuid.NewString()
	lock := scheduler.NewLock(name, time.Minute, goredis.NewPool(rdb))
	require.NoError(t, lock.TryLockContext(t.Context()))
	require.NoError(t, rdb.Del(t.Context(), name).Err())
	ok, _ := lock.ExtendContext(t.Context())
	require.False(t, ok)
	require.Zero(t, rdb.Exists(t.Context(), name).Val())
}

// Case 26, KanishJebaMathewM/Truxify#9493 and eclipse-leshan/leshan#837, L3: a
// leader that resumes after a pause neither prolongs nor ends the lock of its
// successor, and shuts down in peace.
func TestLateUnlockLeavesTheSuccessorsLock(t *testing.T) {
	t.Parallel()
	rdb := harness.Redis(t)
	name := uuid.NewString()
	old := scheduler.NewLock(name, time.Minute, goredis.NewPool(rdb))
	require.NoError(t, old.TryLockContext(t.Context()))
	require.NoError(t, rdb.Del(t.Context(), name).Err()) // its time is over
	next := scheduler.NewLock(name, time.Minute, goredis.NewPool(rdb))
	require.NoError(t, next.TryLockContext(t.Context()))
	held := rdb.Dump(t.Context(), name).Val()
	require.NoError(t, rdb.PExpire(t.Context(), name, 30*time.Second).Err())
	ok, _ := old.ExtendContext(t.Context())
	require.False(t, ok)
	_, _ = old.UnlockContext(t.Context())
	require.Equal(t, held, rdb.Dump(t.Context(), name).Val())
	require.LessOrEqual(t, rdb.PTTL(t.Context(), name).Val(), 30*time.Second)
	ok, err := next.ExtendContext(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
}

// I21 with I24: a step of Redis' clock back lengthens what has been locked
// before, and a leader that has died since would be the leader all that time.
func TestLockOfBeforeAStepOfTheClockIsCutToItsTTL(t *testing.T) {
	t.Parallel()
	rdb := harness.Redis(t)
	name := uuid.NewString()
	held := scheduler.NewLock(name, time.Minute, goredis.NewPool(rdb))
	require.NoError(t, held.TryLockContext(t.Context()))
	require.NoError(t, rdb.PExpire(t.Context(), name, time.Hour).Err())
	other := scheduler.NewLock(name, time.Minute, goredis.NewPool(rdb))
	require.Error(t, other.TryLockContext(t.Context()))
	left := rdb.PTTL(t.Context(), name).Val()
	require.LessOrEqual(t, left, time.Minute)
	require.Greater(t, left, 50*time.Second)

	require.NoError(t, rdb.PExpire(t.Context(), name, 10*time.Second).Err())
	require.Error(t, other.TryLockContext(t.Context()))
	require.LessOrEqual(t, rdb.PTTL(t.Context(), name).Val(), 10*time.Second, "trying lengthens nobody's lock")
	ok, err := held.ExtendContext(t.Context())
	require.NoError(t, err)
	require.True(t, ok, "its holder goes on leading")
}

// far delays every command, like a Redis on another continent.
type far time.Duration

func (d far) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d far) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(d)):
		}
		return next(ctx, cmd)
	}
}

func (d far) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Case 20, go-redsync/redsync#83: by default redsync gives a reply 5 % of the TTL.
func TestElectionSucceedsOverASlowLink(t *testing.T) {
	t.Parallel()
	rdb := harness.Redis(t)
	rdb.AddHook(far(120 * time.Millisecond))
	lock := scheduler.NewLock(uuid.NewString(), 2*time.Second, goredis.NewPool(rdb))
	require.NoError(t, lock.TryLockContext(t.Context()))
	ok, err := lock.ExtendContext(t.Context())
	require.NoError(t, err)
	require.True(t, ok, "and goes on leading")
}
