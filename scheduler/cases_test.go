package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// The tests of this file try what has gone wrong with the leaders of other
// systems. Each names the public report that it follows.

// stuck is a lock whose first extend hangs until the test lets it go, and whose
// holder wins it once only.
type stuck struct {
	scheduler.Lock
	resume <-chan struct{}
	wins   *atomic.Int64
}

func (s stuck) ExtendContext(context.Context) (bool, error) {
	<-s.resume
	return false, errors.New("i/o timeout")
}

func (s stuck) TryLockContext(ctx context.Context) error {
	if s.wins.Add(1) > 1 {
		return errors.New("connection refused")
	}
	return s.Lock.TryLockContext(ctx)
}

// stuckLine is a line whose second Reserve is on its way until the test lets it
// arrive, whatever its caller's deadline says.
type stuckLine struct {
	scheduler.Line
	reached, resume chan struct{}
	calls           *atomic.Int64
}

func (s stuckLine) Reserve(ctx context.Context, room string, step queue.Step, take queue.Take) (queue.Reservation, error) {
	if s.calls.Add(1) == 2 {
		close(s.reached)
		<-s.resume
		ctx = context.WithoutCancel(ctx)
	}
	return s.Line.Reserve(ctx, room, step, take)
}

// Case 18, go-redsync/redsync#72: a reply is later than the lock lives. The
// holder, who does not know yet, has a call on its way meanwhile: it changes
// nothing.
func TestCase18ACallOfBeforeTheLockWasLostChangesNothing(t *testing.T) {
	h := setup(t, rate(50, 200*time.Millisecond))
	const ttl = time.Second
	var wins, calls atomic.Int64
	resume, failed := make(chan struct{}), make(chan error, 1)
	line := stuckLine{h.Store, make(chan struct{}), resume, &calls}
	h.run("old", func(c *scheduler.Config) {
		c.Lock, c.TTL, c.Line = stuck{h.lock(ttl), resume, &wins}, ttl, line
		c.Observer.Ticked = func(k scheduler.Tick) {
			if k.Err != nil {
				select {
				case failed <- k.Err:
				default:
				}
			}
		}
	})
	h.tickedBy("old", 5*time.Second)
	<-line.reached
	next := h.run("next", h.withTTL(ttl))
	h.tickedBy("next", ttl+2*time.Second)
	h.enter(20)
	h.eventually(2*time.Second, "the line moves", func() bool { return h.admitted() > 0 })
	next() // so that all stands still
	before := h.dump()
	close(resume)
	select {
	case err := <-failed:
		require.ErrorIs(t, err, queue.ErrStale)
	case <-time.After(10 * time.Second):
		t.Fatal("a step of before the lock was lost was taken")
	}
	require.Equal(t, before, h.dump())
	require.Equal(t, "next", h.snapshot().Leader)
}

// dump is all that Redis holds of the room.
func (h *house) dump() map[string]any {
	h.Helper()
	all := harness.Contents(h, h.rdb, h.prefix+":{*")
	require.NotEmpty(h, all)
	return all
}

// failsOnce is a lock whose first extend gets no answer.
type failsOnce struct {
	scheduler.Lock
	failed *atomic.Bool
}

func (f failsOnce) ExtendContext(ctx context.Context) (bool, error) {
	if f.failed.CompareAndSwap(false, true) {
		return false, errors.New("i/o timeout")
	}
	return f.Lock.ExtendContext(ctx)
}

// watched counts the steps that were sent after the extend had failed.
type watched struct {
	scheduler.Line
	failed *atomic.Bool
	mu     sync.Mutex
	after  map[int64]int // by term
}

func (w *watched) Reserve(ctx context.Context, room string, step queue.Step, take queue.Take) (queue.Reservation, error) {
	if w.failed.Load() {
		w.mu.Lock()
		w.after[step.Term]++
		w.mu.Unlock()
	}
	return w.Line.Reserve(ctx, room, step, take)
}

// Case 19, go-redsync/redsync#158 and #144: one extend fails. Work stops at once,
// and whoever may lead is decided anew.
func TestCase19OneFailedExtendIsAnElection(t *testing.T) {
	h := setup(t, rate(50, 100*time.Millisecond))
	const ttl = 1500 * time.Millisecond
	var failed atomic.Bool
	line := &watched{Line: h.Store, failed: &failed, after: map[int64]int{}}
	h.run("only", func(c *scheduler.Config) { c.Lock, c.TTL, c.Line = failsOnce{h.lock(ttl), &failed}, ttl, line })
	h.tickedBy("only", 5*time.Second)
	first := h.snapshot().Term
	h.eventually(5*time.Second, "the extend fails", failed.Load)
	h.eventually(ttl+time.Second, "the next term begins", func() bool { return h.snapshot().Term > first })
	line.mu.Lock()
	defer line.mu.Unlock()
	require.LessOrEqual(t, line.after[first], 1, "more than the step in hand was taken in the term that is over")
	require.Len(t, line.after, 1+line.after[first], "one election is enough")
}

// Case 24, go-co-op/gocron#841: instances that start one after the other, and
// so tick at other moments, let no more through than one does.
func TestCase24StaggeredInstancesShareOneRate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*scheduler.Config){"lock on": func(*scheduler.Config) {}, "lock off": withoutLock} {
		t.Run(name, func(t *testing.T) {
			const batch, interval, n = 10, 200 * time.Millisecond, 110 // 50 a second
			h := setup(t, rate(batch, interval))
			h.open()
			members := h.enter(n)
			for i := range 4 {
				if i > 0 {
					time.Sleep(300 * time.Millisecond) // it is what this test is about
				}
				h.run(fmt.Sprint("instance-", i), change)
			}
			h.eventually(10*time.Second, "all are let through", func() bool { return h.admitted() == n })
			times := h.grantTimes(members)
			h.checkRate(times, batch, interval)
			const ideal = (n - batch) / batch * interval
			took := times[n-1].Sub(times[0])
			require.GreaterOrEqual(t, took, ideal-interval, "50 a second in all, and not each")
			require.Less(t, took, ideal*3/2, "the rate is used")
		})
	}
}

// grant is who was let through, and how long after the beginning of the room.
type grant struct {
	member string
	after  time.Duration
}

// The clocks of applications decide nothing: ten minutes fast or slow, the same
// members are let through at the same moments by the clock of Redis, and by
// whoever leads.
func TestApplicationClocksTenMinutesOffChangeNoAdmission(t *testing.T) {
	t.Parallel()
	var want []grant
	for _, off := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			redisAt, dsn := harness.Redis(t).Options().Addr, harness.DSN(t)
			synctest.Test(t, func(t *testing.T) {
				got := admissions(t, off, redisAt, dsn)
				require.GreaterOrEqual(t, len(got), 55, "ten at once, and then ten a second")
				if want == nil {
					want = got
				}
				require.Equal(t, want, got)
			})
		})
	}
}

// admissions is six seconds of a room with 100 in line, of which one process
// leads the first half and another the second. The time of this process is off
// that of Redis; both pass as the bubble's does.
func admissions(t *testing.T, off time.Duration, redisAt, dsn string) []grant {
	rdb := redis.NewClient(&redis.Options{Addr: redisAt, ContextTimeoutEnabled: true})
	db, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	defer db.Close()
	defer func() { _ = rdb.Close() }()
	h := on(t, rdb, db, rate(10, time.Second), func(s *room.Settings) { s.PickupTTLSeconds = 60 })
	h.Store = redisstore.New(rdb, h.prefix, redisstore.WithClock(func() time.Time { return time.Now().Add(-off) }))
	began := time.Now().Add(-off)
	h.open()
	members := h.enter(100)
	for _, leader := range []string{"first", "second"} {
		stop := h.run(leader)
		time.Sleep(3*time.Second - time.Millisecond)
		stop()
	}
	var got []grant
	for _, m := range members {
		if st := h.standing(m); st.Status == queue.Ready {
			got = append(got, grant{m, st.Grant.IssuedAt.Sub(began)})
		}
	}
	return got
}
