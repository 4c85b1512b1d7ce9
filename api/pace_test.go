package api_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

// slowLine is a line that takes its time with polls.
type slowLine struct {
	api.Line
	pause *atomic.Int64
}

func (l slowLine) Poll(ctx context.Context, room, member string, place queue.Place) (queue.Standing, error) {
	timer := time.NewTimer(time.Duration(l.pause.Load()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return l.Line.Poll(ctx, room, member, place)
}

// TestWhileRedisIsSlowPeopleAreToldToPollLessOften is the way from a slow Redis to
// what people are told, and back.
func TestWhileRedisIsSlowPeopleAreToldToPollLessOften(t *testing.T) {
	t.Parallel()
	var pause, seen atomic.Int64
	f := setUp(t, settings(func(s *room.Settings) { s.BatchSize, s.PickupTTLSeconds = 1, 60 }))
	site := f.serve(func(o *api.Options) {
		o.Line = slowLine{f.line, &pause}
		o.Observer.Stretched = func(by float64) { seen.Store(int64(by * 1000)) }
	})
	front := site.enter()
	between := make([]redis.Z, 5000)
	for i := range between {
		between[i] = redis.Z{Score: float64(f.now().UnixMicro() + int64(i) + 10), Member: fmt.Sprint("between-", i)}
	}
	require.NoError(t, f.rdb.ZAdd(t.Context(), f.key("lane0"), between...).Err())
	f.pass(time.Second)
	back := site.enter()
	require.Equal(t, 5, site.poll(back).PollingIntervalSeconds)
	require.Equal(t, 1, site.poll(front).PollingIntervalSeconds)

	ctx, stop := context.WithCancel(t.Context())
	var g errgroup.Group
	defer func() { stop(); require.NoError(t, g.Wait()) }()
	g.Go(func() error { return site.api.Run(ctx) })
	poll := func(text string) bool { // as often as it can, so that the books fill
		for range 20 {
			site.get(ticket(text)).is(http.StatusOK)
		}
		return true
	}
	pause.Store(int64(2 * queue.SlowPoll))
	f.eventually("intervals are stretched", func() bool { return poll(back) && seen.Load() > 1250 })
	told := site.poll(back)
	require.Greater(t, told.PollingIntervalSeconds, 5)
	require.LessOrEqual(t, told.PollingIntervalSeconds, 30)
	require.LessOrEqual(t, told.NextPollAfterMs, 30_000)
	require.LessOrEqual(t, site.poll(front).NextPollAfterMs, 20_000, "a third of pickupTtl")

	pause.Store(0)
	// The books empty as appointments pass, which are queue.LongestPoll away at most.
	harness.Eventually(t, 2*queue.LongestPoll, "nobody asks any more, and so nothing is stretched", func() bool {
		return seen.Load() == 1000 && site.poll(back).PollingIntervalSeconds == 5
	})
}
