package fault

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/test/harness"
)

// A step moves what Redis takes for the time, and what it forgets by that; it
// does not move how long Redis waits.
func TestClockOfARunningRedisIsStepped(t *testing.T) {
	t.Parallel()
	c, err := NewClock(t.TempDir())
	if errors.Is(err, ErrNoPreload) {
		t.Skip(harness.MissingPart + err.Error())
	}
	require.NoError(t, err)
	defer c.Close()
	p, err := devstack.StartRedis(t.Context(), devstack.Options{Env: c.Env()})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	r := NewRedis(p)
	t.Cleanup(r.Close)
	off := func() time.Duration {
		now, err := r.Client().Time(t.Context()).Result()
		require.NoError(t, err)
		return time.Since(now)
	}
	const hour = float64(time.Hour)
	require.InDelta(t, 0, off(), float64(10*time.Second))
	require.NoError(t, r.Client().Set(t.Context(), "soon", "v", 30*time.Minute).Err())
	require.NoError(t, c.Step(-time.Hour))
	require.InDelta(t, hour, off(), float64(10*time.Second))
	require.Equal(t, "v", r.Client().Get(t.Context(), "soon").Val())
	require.NoError(t, c.Step(2*time.Hour))
	require.Equal(t, time.Hour, c.Ahead())
	require.InDelta(t, -hour, off(), float64(10*time.Second))
	require.Empty(t, r.Client().Get(t.Context(), "soon").Val(), "its time is over")

	p.Kill()
	require.NoError(t, p.Start())
	require.InDelta(t, -hour, off(), float64(10*time.Second), "a restarted server has the same clock")
	require.NoError(t, c.Set(0))
	require.InDelta(t, 0, off(), float64(10*time.Second))
}
