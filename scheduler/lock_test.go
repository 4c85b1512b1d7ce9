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

// Case 26, L3: a leader that resumes after a pause shuts down in peace.
func TestLateUnlockLeavesTheSuccessorsLock(t *testing.T) {
	t.Parallel()
	rdb := harness.Redis(t)
	name := uuid.NewString()
	old := scheduler.NewLock(name, time.Minute, goredis.NewPool(rdb))
	require.NoError(t, old.TryLockContext(t.Context()))
	require.NoError(t, rdb.Del(t.Context(), name).Err()) // its time is over
	next := scheduler.NewLock(name, time.Minute, goredis.NewPool(rdb))
	require.NoError(t, next.TryLockContext(t.Context()))
	_, _ = old.UnlockContext(t.Context())
	ok, err := next.ExtendContext(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
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

// Case 20: by default redsync gives a reply 5 % of the TTL.
func TestElectionSucceedsOverASlowLink(t *testing.T) {
	t.Parallel()
	rdb := harness.Redis(t)
	rdb.AddHook(far(120 * time.Millisecond))
	lock := scheduler.NewLock(uuid.NewString(), 2*time.Second, goredis.NewPool(rdb))
	require.NoError(t, lock.TryLockContext(t.Context()))
}
