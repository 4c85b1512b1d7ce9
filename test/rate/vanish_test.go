//go:build faults

package rate

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// The first 10,000 have vanished. Nobody has noticed yet, because the room was
// just opened again; the next who is there has to be let through within one
// interval per 2,000 of them.
func TestTheFirstTenThousandWhoVanishedHoldUpNobodyForLong(t *testing.T) {
	t.Parallel()
	const vanished, interval = 10_000, time.Second
	h := newHouse(t)
	h.open("a", vanished+100, func(s *room.Settings) { s.BatchSize, s.IntervalMs = 50, int(interval.Milliseconds()) })
	now := time.Now()
	for i := 0; i < vanished; i += 5000 {
		var seen []redis.Z
		for k := i; k < i+5000; k++ {
			seen = append(seen, redis.Z{Score: float64(now.Add(-time.Hour).UnixMicro()), Member: member(k)})
		}
		require.NoError(t, h.rdb.ZAdd(t.Context(), h.key("a", "seen"), seen...).Err())
	}
	// The room has heard others all the while.
	require.NoError(t, h.rdb.HSet(t.Context(), h.key("a", "state"), "listen_since", now.Add(-time.Hour).UnixMicro(),
		"heard_at", now.UnixMicro()).Err())

	var calls atomic.Int64
	h.run("only", func(c *scheduler.Config) {
		c.Observer.Ticked = func(scheduler.Tick) { calls.Add(1) }
	})
	next := func() bool {
		_, err := h.rdb.ZScore(t.Context(), h.key("a", "ready"), member(vanished)).Result()
		return err == nil
	}
	harness.Eventually(t, 30*time.Second, "the next is let through", next)
	took := time.Since(now)
	figure("the next after 10,000 who vanished: after %v, in %d calls", took.Round(time.Millisecond), calls.Load())
	require.LessOrEqual(t, took, vanished/2000*interval)
	away, err := h.rdb.ZCard(t.Context(), h.key("a", "away")).Result()
	require.NoError(t, err)
	require.EqualValues(t, vanished, away, "their places are kept")
}
