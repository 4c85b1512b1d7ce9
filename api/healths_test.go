package api_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

var follows = settings(func(s *room.Settings) { s.Adaptive = true })

func (f *fixture) health() queue.Health {
	f.t.Helper()
	s, err := f.line.Snapshot(f.t.Context(), f.room)
	require.NoError(f.t, err)
	return s.Health
}

// orderAfter has somebody who was let through order after some time, of a process
// that has not looked at the clock of Redis before and reports when it ends.
func (f *fixture) orderAfter(d time.Duration, items string) {
	f.t.Helper()
	_, entry := f.ready()
	f.pass(d)
	s := f.serve()
	end := s.run()
	s.order(items, token(entry)).is(201)
	end()
}

func TestOrdersAreCountedByHowLongTheyTookAndWhenTheyCame(t *testing.T) {
	t.Parallel()
	f := setUp(t, follows)
	f.orderAfter(20*time.Second, oneA)
	f.orderAfter(10*time.Second, oneA)
	h := f.health()
	require.Equal(t, int64(2), h.Orders())
	require.Zero(t, h.Failed)
	require.InDelta(t, 30, h.Delay.Seconds(), 3, "from the grants, whose tokens tell whole seconds, by the clock of Redis")
}

func TestWhatIsNotTheDatabasesFaultCountsNowhere(t *testing.T) {
	t.Parallel()
	f := setUp(t, follows, settings(func(s *room.Settings) { s.MaxInFlightOrders = 1 }))
	end := f.run()
	_, entry := f.ready()
	f.order(`[{"sku":"a","quantity":101}]`, token(entry)).refused(409, "sold-out")
	f.order(`[{"sku":"nothing","quantity":1}]`, token(entry)).refused(422, "invalid-order")
	f.order(`[{"sku":"a"`, token(entry)).is(400)
	f.order(oneA, token("x")).is(401)
	_, other := f.ready()
	require.NoError(t, f.line.Claim(t.Context(), f.grant(other), "c", time.Minute))
	f.order(oneA, token(entry)).refused(429, "order-limit")
	f.order(oneA, token(other)).refused(409, "order-in-progress")
	require.NoError(t, f.line.Release(t.Context(), f.grant(other), "c"))
	f.order(oneA, token(entry)).is(201)
	f.order(oneA, token(entry)).is(200) // a replay
	end()
	require.Equal(t, int64(1), f.health().Attempts())
}

func TestFailuresOfTheDatabaseAreCounted(t *testing.T) {
	t.Parallel()
	for _, err := range []error{order.ErrOutcomeUnknown, order.ErrUnavailable, queue.ErrUnavailable, fmt.Errorf("never seen"), context.DeadlineExceeded} {
		f := setUp(t, follows)
		s := f.serve(func(o *api.Options) { o.Orders = brokenOrders{err} })
		end := s.run()
		_, entry := f.ready()
		require.GreaterOrEqual(t, s.order(oneA, token(entry)).status, 500)
		end()
		require.Equal(t, queue.Health{Failed: 1, Delay: f.health().Delay}, f.health(), err)
	}
}

func TestARoomThatIsNotAdaptiveReportsNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	k := &keeper{HealthKeeper: f.line}
	s := f.serve(func(o *api.Options) { o.Health = k })
	end := s.run()
	_, entry := f.ready()
	s.order(oneA, token(entry)).is(201)
	end()
	require.Zero(t, k.calls)
}

// keeper loses the answers of some calls.
type keeper struct {
	api.HealthKeeper
	mu    sync.Mutex
	calls int
	lost  int // answers still to be lost
}

func (k *keeper) AddHealth(ctx context.Context, room string, r queue.Report) error {
	err := k.HealthKeeper.AddHealth(ctx, room, r)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	if k.lost > 0 {
		k.lost--
		return fmt.Errorf("lost: %w", queue.ErrUnavailable)
	}
	return err
}

func (k *keeper) asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls
}

func TestAReportWhoseReplyIsLostCountsOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t, follows)
	k := &keeper{HealthKeeper: f.line, lost: 3}
	s := f.serve(func(o *api.Options) { o.Health = k })
	end := s.run()
	for range 3 {
		_, entry := f.ready()
		before := k.asked()
		s.order(oneA, token(entry)).is(201)
		f.eventually("a report is sent", func() bool { return k.asked() > before })
	}
	end()
	require.Zero(t, k.lost, "three answers were lost, and what they were of was sent again")
	require.Equal(t, int64(3), f.health().Orders())
}
