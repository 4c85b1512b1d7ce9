//go:build faults

package verify

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

// busy is a load in which every way through the room is taken: some order, some
// leave, some let their tokens expire, and some are never seen again.
func (s *shop) busy(n int, base string) {
	s.t.Helper()
	inParallel(32, n, func(i int) {
		c := s.customer()
		c.enterAt(base)
		if i%5 == 4 {
			return
		}
		for until := time.Now().Add(longEnough); c.token == "" && time.Now().Before(until); pause(s.t.Context(), 50*time.Millisecond) {
			c.pollAt(base, "")
		}
		switch i % 5 {
		case 0, 1:
			c.buyAt(base)
		case 2:
			c.leave(&fault.Process{Public: base})
		}
	})
	s.client.CloseIdleConnections()
}

// empty is what is left in Redis of people, when all times have passed.
func (s *shop) empty() bool {
	s.t.Helper()
	for _, key := range s.roomKeys() {
		if part := key[strings.LastIndex(key, "}:")+2:]; !slices.Contains([]string{"conf", "state", "stats"}, part) {
			return false
		}
	}
	return true
}

// I22 in one process: everything that serves is wired here, used, and stopped.
// Not parallel: goroutines of other tests would be taken for leftovers.
func TestWhenAllIsStoppedNoGoroutineAndNoConnectionIsLeft(t *testing.T) {
	r, url := ownRedis(t)
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.BatchSize, r.IntervalMs = 100, 200 })
	// Those of others than the test itself.
	sessions := func() int {
		n := sqlValue[int](s, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
		return n - int(s.pool.Stat().TotalConns())
	}
	clients := func() int {
		list, err := r.Client().ClientList(t.Context()).Result()
		require.NoError(t, err)
		ours := r.Client().PoolStats().TotalConns + s.rdb.PoolStats().TotalConns
		return strings.Count(list, "\n") - int(ours)
	}
	before := goleak.IgnoreCurrent()
	base, stop := s.serveHere()
	s.busy(300, base)
	require.Positive(t, clients(), "nothing was used: this test shows nothing")
	require.Positive(t, sessions())
	s.delivered() // nobody else would
	stop()
	require.NoError(t, goleak.Find(before), "a goroutine is left")
	eventually(t, longEnough, "every connection is closed", func() bool { return clients() == 0 && sessions() == 0 })
	s.judge()
}

// serveHere serves the room in this process, wired as serve wires it. stop returns
// when all of it has ended.
func (s *shop) serveHere() (base string, stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var u config.URL
	require.NoError(s.t, u.UnmarshalText([]byte(s.redis)))
	o, err := config.RedisOptions(u)
	require.NoError(s.t, err)
	l, err := config.LockOptions(u, 2*time.Second)
	require.NoError(s.t, err)
	rdb, locks := config.OpenRedis(o), config.OpenRedis(l)
	money, err := orderstore.NewPool(ctx, s.dsn)
	require.NoError(s.t, err)
	books, err := pgxpool.NewWithConfig(ctx, money.Config())
	require.NoError(s.t, err)

	line, rooms := redisstore.New(rdb, s.prefix), roomstore.New(books)
	relay := outbox.NewRelay(books, sink{line}, outbox.Options{})
	orders := orderstore.New(money, orderstore.Options{Committed: relay.Poke})
	a := api.New(api.Options{
		Line: line, Returns: line, Snapshots: line, Hearer: line, Health: line, Books: rooms, Orders: order.New(line, orders, order.Options{}),
		OrderBook: orders, Ring: s.ring,
	})
	leads := scheduler.New(scheduler.Config{
		Line: line, Batches: line, Rooms: line, Books: rooms, Admissions: rooms, Terms: line.Terms(),
		Lock: scheduler.NewLock(s.prefix+":leader", 2*time.Second, goredis.NewPool(locks)), TTL: 2 * time.Second,
		Leader: credential.NewMember(), NewGrant: credential.NewGrantID, Log: slog.New(slog.DiscardHandler),
	})
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{a.Run, relay.Run, leads.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	server := httptest.NewServer(a.Handler())
	s.untilSnapshot("the room has begun", func(queue.Snapshot) bool { return true })
	return server.URL, func() {
		server.Close()
		cancel()
		running.Wait()
		for _, c := range []redis.UniversalClient{rdb, locks} {
			require.NoError(s.t, c.Close())
		}
		money.Close()
		books.Close()
	}
}

// using is what a process holds, beside the connections that its pools keep.
type using struct{ goroutines, files float64 }

func (s *shop) using(p *fault.Process) using {
	s.t.Helper()
	defer s.client.CloseIdleConnections()
	u := using{metricOf(s.t, s.client, p, "go_goroutines"), metricOf(s.t, s.client, p, "process_open_fds")}
	for _, pool := range []struct{ of, name string }{{"redis", "main"}, {"postgres", "orders"}, {"postgres", "books"}} {
		for _, state := range []string{"idle", "in_use"} {
			u.files -= metricOf(s.t, s.client, p, fmt.Sprintf("linekeeper_%s_pool_connections{pool=%q,state=%q}", pool.of, pool.name, state))
		}
	}
	return u
}

// I22 on whole processes, and in Redis: when the load is over and all times have
// passed, which the clock of Redis makes them do at once, nothing is left of it.
func TestWhenTheLoadIsOverProcessesAndRedisHoldWhatTheyHeldBefore(t *testing.T) {
	t.Parallel()
	clock, err := fault.NewClock(t.TempDir())
	if err != nil {
		t.Skip(harness.MissingPart + err.Error())
	}
	t.Cleanup(clock.Close)
	server, err := devstack.StartRedis(t.Context(), devstack.Options{Env: clock.Env()})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	s := openShop(t, "redis://"+server.Addr, harness.DSN(t), func(r *room.Settings) {
		r.BatchSize, r.IntervalMs, r.EntryTokenTTLSeconds, r.ForgetAfterSeconds = 100, 200, 15, 60
	})
	all := []*fault.Process{s.start(), s.start()}
	s.begun()
	s.busy(200, all[0].Public) // pools fill with the first load, and stay filled
	s.busy(200, all[1].Public)
	before := make([]using, len(all))
	for i, p := range all {
		before[i] = s.using(p)
	}

	for i, p := range all {
		s.busy(1000, p.Public)
		t.Logf("before the load %+v, at its end %+v", before[i], s.using(p))
		eventually(t, longEnough, "goroutines and files are back where they were", func() bool {
			now := s.using(p)
			return now.goroutines <= before[i].goroutines+3 && now.files <= before[i].files+3
		})
	}
	require.False(t, s.empty(), "nobody is in the room: this test shows nothing")
	passes := func(step time.Duration) func() bool {
		return func() bool {
			require.NoError(t, s.store.Heard(t.Context(), shopRoom, nil)) // or silence would not count
			require.NoError(t, clock.Step(step))
			pause(t.Context(), 200*time.Millisecond)
			q, ok := s.look()
			return ok && q.Waiting()+q.Away+q.Processing+q.Ready+q.Claimed == 0
		}
	}
	eventually(t, longEnough, "everybody who went has been found out", passes(4*time.Second))
	require.NoError(t, clock.Step(2*time.Hour)) // outcomes
	eventually(t, longEnough, "nothing is left in Redis", s.empty)
	s.judge()
}
