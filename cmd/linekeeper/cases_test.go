package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// shop is a room, orders and a relay, wired as serve does, with a clock of Redis
// that the test moves. The relay runs when the test says so.
type shop struct {
	t      *testing.T
	db     *pgxpool.Pool
	line   *redisstore.Store
	orders *order.Service
	step   queue.Step

	mu    sync.Mutex
	clock time.Time
}

const shopRoom = "sale"

func openShop(t *testing.T, rdb redis.UniversalClient) *shop {
	t.Helper()
	s := &shop{t: t, db: harness.Database(t), clock: time.UnixMicro(1_764_500_000_000_000)}
	s.line = redisstore.New(rdb, "shop-"+uuid.NewString(), redisstore.WithClock(s.now))
	s.orders = order.New(s.line, orderstore.New(s.db, orderstore.Options{AcquireTimeout: time.Minute}), order.Options{})
	_, err := s.db.Exec(t.Context(), `INSERT INTO products (sku, stock, price_cents, currency) VALUES ('demo', 1000, 1990, 'EUR')`)
	require.NoError(t, err)
	s.step = begin(t, s.line, 1)
	return s
}

// begin begins the room, of 50 a second.
func begin(t *testing.T, line *redisstore.Store, generation int64) queue.Step {
	t.Helper()
	require.NoError(t, line.Create(t.Context(), queue.Life{
		Room: shopRoom, Generation: generation, Sale: 1, RestorableFrom: generation, Version: 1, Settings: []byte(`{}`), Floors: make([]int64, queue.MaxLanes),
		Rules: queue.Rules{Batch: 50, Interval: time.Second, TokenTTL: 300 * time.Second, PickupTTL: 30 * time.Second, ClaimLease: 15 * time.Second,
			ProcessingTimeout: 5 * time.Second, AwayAfter: 120 * time.Second, ForgetAfter: time.Hour, DoneTTL: time.Hour, MaxWaiting: 1000, Weights: []int{1}},
	}))
	return queue.Step{Generation: generation, Term: 1, Leader: "test"}
}

func (s *shop) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

func (s *shop) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(d)
}

// admitted enters, is let through and picks up.
func admitted(t *testing.T, line *redisstore.Store, step *queue.Step, member string) queue.Grant {
	t.Helper()
	ctx := t.Context()
	_, err := line.Enter(ctx, shopRoom, member, 0)
	require.NoError(t, err)
	step.Seq++
	r, err := line.Reserve(ctx, shopRoom, *step, queue.Take{Keep: step.Seq, Effective: 50, Max: 1})
	require.NoError(t, err)
	require.Len(t, r.Taken, 1)
	_, err = line.Issue(ctx, shopRoom, *step, []queue.Decision{{Member: member, Grant: uuid.NewString()}})
	require.NoError(t, err)
	st, err := line.Standing(ctx, shopRoom, member)
	require.NoError(t, err)
	g, err := line.PickUp(ctx, st.Grant, "k1")
	require.NoError(t, err)
	return g
}

func (s *shop) admitted(member string) queue.Grant {
	s.t.Helper()
	s.pass(time.Second)
	return admitted(s.t, s.line, &s.step, member)
}

func (s *shop) standing(member string) queue.Standing {
	s.t.Helper()
	st, err := s.line.Standing(s.t.Context(), shopRoom, member)
	require.NoError(s.t, err)
	return st
}

func (s *shop) place(g queue.Grant) order.Placed {
	s.t.Helper()
	placed, err := s.orders.Place(s.t.Context(), order.Request{Grant: g, Items: []order.Item{{SKU: "demo", Quantity: 1}}, Lease: 15 * time.Second})
	require.NoError(s.t, err)
	return placed
}

// relay delivers until nothing is pending.
func (s *shop) relay() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- outbox.NewRelay(s.db, sink{s.line}, outbox.Options{Poll: 5 * time.Millisecond}).Run(ctx)
	}()
	harness.Eventually(s.t, 30*time.Second, "all events are done", func() bool { return count(s.t, s.db, "status <> 'done'") == 0 })
	cancel()
	require.NoError(s.t, <-done)
}

func count(t *testing.T, db *pgxpool.Pool, where string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), "SELECT count(*) FROM outbox WHERE "+where).Scan(&n))
	return n
}

// The relay comes when the grant of an order has long expired: the member has
// ordered, and is told so.
func TestALateRelayTurnsExpiredIntoConsumed(t *testing.T) {
	t.Parallel()
	s := openShop(t, harness.Redis(t))
	ann := s.admitted("ann")
	placed := s.place(ann)
	s.pass(301 * time.Second)
	require.Equal(t, queue.OutcomeExpired, s.standing("ann").Outcome, "for all that Redis knows")
	s.relay()
	st := s.standing("ann")
	require.Equal(t, queue.Consumed, st.Status)
	require.Equal(t, placed.ID, st.OrderID)
	s.pass(time.Hour)
	st = s.standing("ann")
	require.Equal(t, queue.NotEntered, st.Status)
	require.Equal(t, queue.OutcomeConsumed, st.Outcome)
	require.Equal(t, placed.ID, s.place(ann).ID, "and her token is still that order")
}

// The same where the member has come back meanwhile and holds another grant,
// which the event of the first one must not spend.
func TestALateRelayLeavesTheNextGrantAlone(t *testing.T) {
	t.Parallel()
	s := openShop(t, harness.Redis(t))
	first := s.place(s.admitted("ann"))
	s.pass(301 * time.Second)
	next := s.admitted("ann")
	s.relay()
	st := s.standing("ann")
	require.Equal(t, queue.Ready, st.Status)
	require.Equal(t, next, st.Grant)
	second := s.place(next)
	require.NotEqual(t, first.ID, second.ID)
	s.relay()
	require.Equal(t, second.ID, s.standing("ann").OrderID)
}

// trouble is one way in which a Redis fails, and how it is mended.
type trouble struct {
	begin, end func(p *devstack.Proc, admin *redis.Client) error
}

// commanded is trouble that one command makes, and another ends.
func commanded(begin, end []any) trouble {
	do := func(args []any) func(*devstack.Proc, *redis.Client) error {
		return func(_ *devstack.Proc, admin *redis.Client) error {
			return admin.Do(context.Background(), args...).Err()
		}
	}
	return trouble{do(begin), do(end)}
}

// ours is the login of the product.
var ours = []any{"ACL", "SETUSER", "shop", "reset", "on", ">any", "~*", "+@all"}

// Case 61 as well, MarcosRabadan/Agendia#260 and #322: whatever is the matter
// with Redis, no event is at fault for it, so none can die of it.
func TestCase61NoTroubleOfRedisIsTheFaultOfAnEvent(t *testing.T) {
	t.Parallel()
	killed := trouble{
		begin: func(p *devstack.Proc, _ *redis.Client) error { p.Kill(); return nil },
		end: func(p *devstack.Proc, admin *redis.Client) error {
			return errors.Join(p.Start(), admin.Do(context.Background(), ours...).Err())
		},
	}
	hung := trouble{
		begin: func(p *devstack.Proc, _ *redis.Client) error { p.Pause(); return nil },
		end:   func(p *devstack.Proc, _ *redis.Client) error { p.Resume(); return nil },
	}
	for name, of := range map[string]trouble{
		"killed": killed, "hung": hung,
		"read-only":         commanded([]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}),
		"without a right":   commanded([]any{"ACL", "SETUSER", "shop", "-evalsha"}, ours),
		"without our login": commanded([]any{"ACL", "DELUSER", "shop"}, ours),
		"without a replica": commanded([]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := harness.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
			admin := redis.NewClient(&redis.Options{Addr: server.Addr})
			t.Cleanup(func() { _ = admin.Close() })
			require.NoError(t, admin.Do(t.Context(), ours...).Err())
			o, err := config.RedisOptions(config.URL("redis://shop:any@" + server.Addr))
			require.NoError(t, err)
			rdb := config.OpenRedis(o)
			t.Cleanup(func() { _ = rdb.Close() })
			line := redisstore.New(rdb, "shop")
			step := begin(t, line, 1)
			g := admitted(t, line, &step, "ann")
			e, err := outbox.NewConsume(uuid.NewString(), shopRoom, outbox.Consume{Member: g.Member, Grant: g.ID})
			require.NoError(t, err)

			require.NoError(t, of.begin(server, admin))
			for range 2 { // a connection of before, and perhaps a new one
				err = sink{line}.Deliver(t.Context(), shopRoom, []outbox.Event{e})
				require.Error(t, err)
				require.NotErrorIs(t, err, outbox.ErrPoison)
			}
			require.NoError(t, of.end(server, admin))
			harness.Eventually(t, 5*time.Second, "the event is delivered", func() bool {
				return sink{line}.Deliver(t.Context(), shopRoom, []outbox.Event{e}) == nil
			})
			st, err := line.Standing(t.Context(), shopRoom, "ann")
			require.NoError(t, err)
			require.Equal(t, queue.Consumed, st.Status)
		})
	}
}

// Case 53, sidekiq/sidekiq#4495: the order is there and Redis takes no writes.
// That is tried again within the minute, however long it lasts, and anybody can
// see it.
func TestCase53AConsumeThatFailsIsSeenAndSoonRepeated(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	conf := config.Process{Roles: config.RoleRelay}
	conf.RedisURL, conf.DatabaseURL, conf.KeyPrefix = config.URL("redis://"+server.Addr), config.URL(harness.DSN(t)), "shop"
	s, err := newServer(t.Context(), conf, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer s.close()
	_, err = s.books.Exec(t.Context(), `INSERT INTO products (sku, stock, price_cents, currency) VALUES ('demo', 1000, 1990, 'EUR')`)
	require.NoError(t, err)
	step := begin(t, s.line, 1)
	g := admitted(t, s.line, &step, "ann")
	_, err = order.New(s.line, s.orders, order.Options{}).Place(t.Context(), order.Request{Grant: g, Items: []order.Item{{SKU: "demo", Quantity: 1}}, Lease: 15 * time.Second})
	require.NoError(t, err)
	require.NoError(t, s.rdb.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.relay.Run(ctx) }()
	harness.Eventually(t, 30*time.Second, "the metric tells", func() bool { return s.metric(t, "linekeeper_outbox_failures_total") != "0" })
	_, err = s.books.Exec(t.Context(), "UPDATE outbox SET attempts = 1000, next_attempt_at = now()") // as after days of it
	require.NoError(t, err)
	harness.Eventually(t, 30*time.Second, "it is tried again", func() bool { return count(t, s.books, "attempts > 1000 AND owner IS NULL") == 1 })
	require.Equal(t, 1, count(t, s.books, "status = 'pending' AND faults = 0 AND last_error LIKE '%READONLY%' AND next_attempt_at <= now() + interval '1 min'"))
	stats, err := outbox.NewAdmin(s.books).Stats(t.Context())
	require.NoError(t, err)
	require.Positive(t, stats.OldestAge, "and so does the age of the oldest event")

	require.NoError(t, s.rdb.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	_, err = s.books.Exec(t.Context(), "UPDATE outbox SET next_attempt_at = now()") // the minute is over
	require.NoError(t, err)
	harness.Eventually(t, 30*time.Second, "the grant is consumed", func() bool {
		st, err := s.line.Standing(t.Context(), shopRoom, "ann")
		return err == nil && st.Status == queue.Consumed && count(t, s.books, "status = 'done'") == 1
	})
	require.Equal(t, "1", s.metric(t, "linekeeper_outbox_delivered_total"))
	cancel()
	require.NoError(t, errors.Join(<-ended))
}

// metric is one number of /metrics.
func (s *server) metric(t *testing.T, name string) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(w.Body.String())
	require.Len(t, m, 2, name)
	return m[1]
}
