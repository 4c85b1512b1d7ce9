package scheduler_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// immortal is a lock whose holder dies without giving it back.
type immortal struct{ scheduler.Lock }

func (immortal) UnlockContext(context.Context) (bool, error) { return false, errors.New("dead") }

func TestThreeSchedulersKeepTheRateAndFillIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*scheduler.Config){
		"lock on":  func(*scheduler.Config) {},
		"lock off": withoutLock,
	} {
		t.Run(name, func(t *testing.T) {
			const batch, interval = 50, 200 * time.Millisecond
			h := setup(t, rate(batch, interval))
			h.open()
			members := h.enter(600)
			for _, leader := range []string{"x", "y", "z"} {
				h.run(leader, change)
			}
			h.eventually(10*time.Second, "all are let through", func() bool { return h.admitted() == 600 })
			times := h.grantTimes(members)
			h.checkRate(times, batch, interval)
			for i := 1; i < len(times); i++ {
				require.False(t, times[i].Before(times[i-1]), "who came first is let through first")
			}
			const ideal = (600 - batch) / batch * interval
			require.Less(t, times[599].Sub(times[0]), ideal*3/2, "the rate is used")
		})
	}
}

func TestBatchOfTenThousandIsFilledInOneTick(t *testing.T) {
	h := setup(t, rate(10_000, time.Minute))
	h.open()
	h.enter(12_000)
	h.run("only")
	// The second half of the batch would take half a minute at the rate alone.
	h.eventually(10*time.Second, "the batch is full", func() bool { return h.admitted() >= 10_000 })
}

// Whoever was taken by a scheduler that died before issuing stands where they
// stood, and is let through by the next.
func TestMembersOfADeadSchedulerKeepTheirPlaces(t *testing.T) {
	h := setup(t, rate(10, 100*time.Millisecond))
	life := h.open()
	members := h.enter(40)
	term, err := h.Terms().Next(t.Context())
	require.NoError(t, err)
	res, err := h.Reserve(t.Context(), theRoom, queue.Step{Generation: life.Generation, Term: term, Leader: "dead", Seq: 1},
		queue.Take{Keep: 1, Effective: 10, Max: 500})
	require.NoError(t, err)
	require.Len(t, res.Taken, 10)

	h.run("next")
	h.eventually(5*time.Second, "all are let through", func() bool { return h.admitted() == 40 })
	times := h.grantTimes(members)
	for i := 1; i < len(times); i++ {
		require.False(t, times[i].Before(times[i-1]), "%s was passed", members[i-1])
	}
}

// deaf can't write progress, so that ticks stop between reserve and issue.
type deaf struct{ scheduler.Admissions }

func (deaf) Advance(context.Context, []queue.Progress) error { return errors.New("connection refused") }

func TestTakenMembersReturnWithoutATickInProcessingTimeoutAndOneTick(t *testing.T) {
	h := setup(t, func(s *room.Settings) { s.ProcessingTimeoutSeconds = 1 })
	h.open()
	members := h.enter(80)
	before := h.standing(members[0]).Place
	h.run("deaf", func(c *scheduler.Config) { c.Admissions = deaf{c.Admissions} })
	h.eventually(3*time.Second, "50 are taken", func() bool { return h.snapshot().Processing == 50 })
	h.eventually(2500*time.Millisecond, "they are back", func() bool { return h.snapshot().Processing == 0 })
	got := h.standing(members[0])
	require.Equal(t, queue.Waiting, got.Status)
	require.Equal(t, before, got.Place)
	require.Zero(t, h.admitted(), "nobody was granted anything that Postgres does not know of")
}

// slow holds up its first write of progress until released.
type slow struct {
	scheduler.Admissions
	reached chan struct{}
	release chan struct{}
	once    *sync.Once
}

func (s slow) Advance(ctx context.Context, rooms []queue.Progress) error {
	s.once.Do(func() {
		close(s.reached)
		<-s.release
	})
	return s.Admissions.Advance(context.WithoutCancel(ctx), rooms)
}

func TestIssueOfAnOlderTermChangesNothing(t *testing.T) {
	h := setup(t, rate(10, time.Minute))
	h.open()
	h.enter(30)
	issued := make(chan error, 1)
	old := slow{h.books, make(chan struct{}), make(chan struct{}), &sync.Once{}}
	h.run("old", withoutLock, func(c *scheduler.Config) {
		c.Admissions = old
		c.Observer.Ticked = func(k scheduler.Tick) {
			if k.Err != nil {
				select {
				case issued <- k.Err:
				default:
				}
			}
		}
	})
	<-old.reached // it has taken ten and will issue late
	h.run("new", withoutLock)
	h.eventually(5*time.Second, "the new term lets ten through", func() bool { return h.admitted() == 10 })
	close(old.release)
	require.ErrorIs(t, <-issued, queue.ErrStale)
	require.Equal(t, int64(10), h.admitted())
	require.Equal(t, int64(10), h.snapshot().Ready)
}

func TestBarredMembersAtTheHeadDoNotStopTheLine(t *testing.T) {
	h := setup(t, rate(50, 100*time.Millisecond))
	h.open()
	members := h.enter(350)
	h.exclude(members[:300])
	h.run("only")
	h.eventually(5*time.Second, "those behind them are let through", func() bool { return h.admitted() == 50 })
	require.Equal(t, queue.OutcomeEvicted, h.standing(members[299]).Outcome)
	require.Equal(t, queue.Ready, h.standing(members[349]).Status)
}

func TestTermCounterThatWentBackLocksNobodyOut(t *testing.T) {
	h := setup(t)
	for range 5 {
		_, err := h.Terms().Next(t.Context())
		require.NoError(t, err)
	}
	stop := h.run("before")
	h.tickedBy("before", 5*time.Second)
	stop()
	require.NoError(t, h.rdb.DecrBy(t.Context(), h.prefix+":term", 2).Err()) // a failover
	const ttl = time.Second
	h.run("after", h.withTTL(ttl))
	h.tickedBy("after", ttl+time.Second)
	require.Greater(t, h.snapshot().Term, int64(6))
}

func TestRealLeaderThatDiesIsReplacedWithinTTLAndASecond(t *testing.T) {
	h := setup(t)
	const ttl = 1500 * time.Millisecond
	kill := h.run("dead", h.withTTL(ttl), func(c *scheduler.Config) { c.Lock = immortal{c.Lock} })
	h.tickedBy("dead", 5*time.Second)
	h.run("next", h.withTTL(ttl))
	kill()
	h.tickedBy("next", ttl+time.Second)
}

func TestRealLeaderThatStopsIsReplacedWithinTwoSeconds(t *testing.T) {
	h := setup(t)
	stop := h.run("first")
	h.tickedBy("first", 5*time.Second)
	h.run("next")
	stop()
	h.tickedBy("next", 2*time.Second)
}

func TestSettingsChangeIsInForceWithinASecond(t *testing.T) {
	h := setup(t)
	h.run("only")
	h.begun()
	h.tickedBy("only", 5*time.Second)
	_, err := h.books.Update(t.Context(), theRoom, 0, func(s room.Settings) (room.Settings, error) {
		s.BatchSize = 77
		return s, nil
	}, operator)
	require.NoError(t, err)
	h.eventually(time.Second, "the new batch size is in force", func() bool { return h.snapshot().Rules.Batch == 77 })
}

func TestFlushedRoomBeginsEmptyInANewSale(t *testing.T) {
	h := setup(t, func(s *room.Settings) { s.Paused = true })
	h.run("only")
	h.begun()
	h.enter(10)
	before := h.snapshot()
	_, err := h.books.Flush(t.Context(), theRoom, operator)
	require.NoError(t, err)
	h.eventually(2*time.Second, "a new generation begins", func() bool { return h.snapshot().Generation > before.Generation })
	require.Equal(t, before.Sale+1, h.snapshot().Sale)
	require.Zero(t, h.snapshot().Waiting())
}

// client returns a client of a server of the test's own.
func client(t *testing.T, addr string) *redis.Client {
	opts := *harness.Redis(t).Options()
	opts.Addr, opts.ReadTimeout, opts.DialTimeout = addr, 500*time.Millisecond, 500*time.Millisecond
	opts.DialerRetries = 1
	c := redis.NewClient(&opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestLossOfAllRedisDataBeginsANewGeneration(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	h := on(t, client(t, server.Addr), harness.Database(t), rate(50, 100*time.Millisecond))
	h.run("only", h.withTTL(time.Second))
	h.begun()
	h.enter(20)
	h.eventually(3*time.Second, "they are let through", func() bool { return h.admitted() == 20 })
	before := h.snapshot()
	require.NoError(t, h.rdb.FlushAll(t.Context()).Err())
	h.eventually(5*time.Second, "a new generation begins", func() bool {
		s, err := h.Snapshot(t.Context(), theRoom)
		return err == nil && s.Generation > before.Generation
	})
	require.Equal(t, before.Sale, h.snapshot().Sale, "a loss is no new sale")
	require.Positive(t, h.life().Floors[0], "the new generation knows how far the lost one got")
	h.enter(20)
	h.eventually(3*time.Second, "ticks go on", func() bool { return h.admitted() == 20 })
}

func TestRedisBackWithItsDataTicksWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
	h := on(t, client(t, server.Addr), harness.Database(t))
	var leads atomic.Bool
	h.run("only", func(c *scheduler.Config) { c.Observer.Led = func(_ int64, now bool) { leads.Store(now) } })
	h.begun()
	h.tickedBy("only", 5*time.Second)
	before := h.snapshot()
	server.Kill()
	// Long enough for the leader to notice, too short for its lock to run out.
	h.eventually(3*time.Second, "an extend fails", func() bool { return !leads.Load() })
	require.NoError(t, server.Start())
	h.eventually(5*time.Second, "I24: ticks go on without a restart", func() bool {
		s, err := h.Snapshot(t.Context(), theRoom)
		return err == nil && s.Term > before.Term
	})
	require.Equal(t, before.Generation, h.snapshot().Generation)
}

func TestNobodyIsLetThroughWhilePostgresIsDown(t *testing.T) {
	t.Parallel()
	server := harness.PostgresServer(t)
	require.NoError(t, server.CreateDatabase(t.Context(), "line"))
	_, err := migrations.Up(t.Context(), server.DSN("line"))
	require.NoError(t, err)
	db, err := pgxpool.New(t.Context(), server.DSN("line"))
	require.NoError(t, err)
	t.Cleanup(db.Close)
	h := on(t, harness.Redis(t), db, rate(50, 100*time.Millisecond), func(s *room.Settings) { s.ProcessingTimeoutSeconds = 1 })
	h.run("only")
	h.begun()
	h.tickedBy("only", 5*time.Second)
	server.Kill()
	members := h.enter(100)
	h.eventually(5*time.Second, "some are taken", func() bool { return h.snapshot().Processing > 0 })
	h.eventually(5*time.Second, "and return", func() bool { return h.snapshot().Processing == 0 })
	require.Zero(t, h.admitted())
	require.NoError(t, server.Start())
	h.eventually(10*time.Second, "all are let through", func() bool { return h.admitted() == 100 })
	h.checkRate(h.grantTimes(members), 50, 100*time.Millisecond)
}
