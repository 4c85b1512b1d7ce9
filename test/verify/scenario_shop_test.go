//go:build faults

package verify

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

const (
	// shopRoom is the room's name in every shop.
	shopRoom = "sale"
	// mayBeLate is what a loaded machine may add to a promised time.
	mayBeLate = 5 * time.Second
	// longEnough is for what has no promised time but must come.
	longEnough = 60 * time.Second
)

// shop is one deployment in which one thing goes wrong, and nothing else: the
// scenarios of this package. Its processes are the product with its journal;
// what customers are told is recorded, and judged at the end like every history.
type shop struct {
	t      *testing.T
	prefix string
	keys   string
	binary string
	redis  string // URLs, as the processes get them
	dsn    string

	rdb   redis.UniversalClient // past everything that a scenario breaks, as all below
	pool  *pgxpool.Pool
	store *redisstore.Store
	rooms *roomstore.Store
	ring  *credential.Ring

	client *http.Client
	all    []*fault.Process

	adminToken, adminEntry string // of an operator, and its entry for processes
	events                 *history.Recorder
	steps                  *history.Collector
	stop                   func() // ends the collecting, after one last time

	lostGeneration atomic.Int64 // the one of before the last loss; 0: none was

	mu       sync.Mutex
	facts    history.Facts
	visitors int
}

// operatorOfShop is who changes rooms.
var operatorOfShop = room.Actor{Name: "olga", Role: "admin", Remote: "127.0.0.1"}

// openShop makes the room on these servers. Nothing serves it yet.
func openShop(t *testing.T, redisURL, dsn string, change func(*room.Settings)) *shop {
	t.Helper()
	s := &shop{t: t, redis: redisURL, dsn: dsn, keys: credential.GenerateKey(), binary: productUnderTest(t), events: history.NewRecorder()}
	s.prefix = "shop" + strconv.FormatInt(time.Now().UnixNano()&0xffffffff, 36)
	var err error
	s.ring, err = credential.ParseRing(s.keys)
	require.NoError(t, err)
	s.adminToken, s.adminEntry, err = admin.NewToken("olga", admin.Operator)
	require.NoError(t, err)
	s.pool, err = pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(s.pool.Close)
	s.connect(redisURL)
	transport := &http.Transport{MaxIdleConnsPerHost: 200}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Timeout: 20 * time.Second, Transport: transport}

	s.rooms = roomstore.New(s.pool)
	settings := room.Defaults()
	change(&settings)
	_, err = s.rooms.Create(t.Context(), shopRoom, settings, operatorOfShop)
	require.NoError(t, err)
	_, _, err = s.rooms.PutProduct(t.Context(), room.Product{SKU: "demo", Stock: 100_000, PriceCents: 1990, Currency: "EUR"}, 0, operatorOfShop)
	require.NoError(t, err)
	s.facts = history.Facts{OneOrder: settings.OneOrderPerMember, Stock: map[string]int64{"demo": 100_000}}
	t.Cleanup(s.explain)
	return s
}

// connect opens the shop's own way to Redis.
func (s *shop) connect(redisURL string) {
	s.t.Helper()
	var u config.URL
	require.NoError(s.t, u.UnmarshalText([]byte(redisURL)))
	o, err := config.RedisOptions(u)
	require.NoError(s.t, err)
	s.rdb = config.OpenRedis(o)
	s.t.Cleanup(func() { _ = s.rdb.Close() })
	s.store = redisstore.New(s.rdb, s.prefix)
	s.steps = history.NewCollector(s.rdb, s.prefix, shopRoom)
	ctx, cancel := context.WithCancel(s.t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := s.steps.Run(ctx); err != nil {
			s.t.Errorf("the journal can't be read: %v", err)
		}
	})
	s.stop = sync.OnceFunc(func() {
		cancel()
		reading.Wait()
	})
	s.t.Cleanup(s.stop)
}

// settings are those of a process.
func (s *shop) settings(more ...string) []string {
	return append([]string{
		"LINEKEEPER_REDIS_URL=" + s.redis, "LINEKEEPER_DATABASE_URL=" + s.dsn, "LINEKEEPER_KEY_PREFIX=" + s.prefix,
		"LINEKEEPER_KEYS=" + s.keys, "LINEKEEPER_LISTEN=127.0.0.1:0", "LINEKEEPER_ADMIN_LISTEN=127.0.0.1:0",
		"LINEKEEPER_LEADER_TTL=2s", "LINEKEEPER_SHUTDOWN_DELAY=0s", "LINEKEEPER_ADMIN_TOKENS=" + s.adminEntry,
	}, slices.Concat(harness.Unlimited, more)...)
}

// start adds a process and returns when it serves. It is stopped, and looked
// over, at the end of the test.
func (s *shop) start(more ...string) *fault.Process {
	s.t.Helper()
	p := s.launch(more...)
	ctx, cancel := context.WithTimeout(s.t.Context(), longEnough)
	defer cancel()
	require.NoError(s.t, p.AwaitServing(ctx))
	return p
}

// launch is start for a process that may end before it serves.
func (s *shop) launch(more ...string) *fault.Process {
	s.t.Helper()
	p, err := fault.StartProcess(s.binary, s.settings(more...), "serve")
	require.NoError(s.t, err)
	s.all = append(s.all, p)
	s.t.Cleanup(func() { s.end(p) })
	return p
}

// end stops a process in order and complains about what it has said.
func (s *shop) end(p *fault.Process) {
	s.client.CloseIdleConnections() // it would wait for those that were never used
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), 40*time.Second)
	defer cancel()
	if err := p.Terminate(ctx); err != nil {
		s.t.Error(err)
	}
	for _, bad := range []string{"DATA RACE", "panic", "request failed"} {
		if at := strings.Index(p.Said(), bad); at >= 0 {
			s.t.Errorf("a process has said: %.2000s", p.Said()[max(0, at-300):])
		}
	}
}

// begun waits until every process serves the room as it is now.
func (s *shop) begun() {
	s.t.Helper()
	s.begunAt(s.all...)
}

func (s *shop) begunAt(all ...*fault.Process) {
	s.t.Helper()
	for _, p := range all {
		eventually(s.t, longEnough, "the room has begun", func() bool {
			return s.send(p, http.MethodGet, "/v1/rooms/"+shopRoom, nil, "").status == http.StatusOK
		})
	}
}

// eventually is harness.Eventually, asking less often: here it is a whole
// deployment that is asked.
func eventually(t testing.TB, within time.Duration, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// set changes settings of the room.
func (s *shop) set(change func(*room.Settings)) {
	s.t.Helper()
	_, err := s.rooms.Update(s.t.Context(), shopRoom, 0, func(r room.Settings) (room.Settings, error) {
		change(&r)
		return r, nil
	}, operatorOfShop)
	require.NoError(s.t, err)
}

// setNow is set, and waits until Redis has it.
func (s *shop) setNow(change func(*room.Settings)) {
	s.t.Helper()
	s.set(change)
	wanted, err := s.rooms.Get(s.t.Context(), shopRoom)
	require.NoError(s.t, err)
	s.untilSnapshot("the settings are in force", func(q queue.Snapshot) bool { return q.Version >= wanted.Version })
}

// look is the room in Redis now, if it is there.
func (s *shop) look() (queue.Snapshot, bool) {
	q, err := s.store.Snapshot(s.t.Context(), shopRoom)
	return q, err == nil
}

func (s *shop) untilSnapshot(what string, is func(queue.Snapshot) bool) (q queue.Snapshot) {
	s.t.Helper()
	eventually(s.t, longEnough, what, func() (ok bool) {
		q, ok = s.look()
		return ok && is(q)
	})
	return q
}

// key is one of the room's keys.
func (s *shop) key(part string) string { return s.prefix + ":{" + shopRoom + "}:" + part }

// lose has the checker know of data that are lost from now until the function
// that it returns is called. What will be lost has been read by then.
func (s *shop) lose(kind history.LossKind) (over func()) {
	s.t.Helper()
	require.NoError(s.t, s.steps.Collect(s.t.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	tally.Faults(1)
	i := len(s.facts.Losses)
	s.facts.Losses = append(s.facts.Losses, history.Loss{Kind: kind, Mono: history.Now()})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.facts.Losses[i].MonoEnd = history.Now()
	}
}

// delivered waits until every event has ended.
func (s *shop) delivered() {
	s.t.Helper()
	eventually(s.t, longEnough, "every event has ended", func() bool {
		return sqlValue[int](s, "SELECT count(*) FROM outbox WHERE status = 'pending'") == 0
	})
}

// judge holds all that has happened against the promises.
func (s *shop) judge() history.Result {
	s.t.Helper()
	s.delivered()
	s.stop()
	final, err := history.ReadFinal(s.t.Context(), s.rdb, s.pool, s.prefix, shopRoom)
	require.NoError(s.t, err)
	h := history.History{Room: history.Room{Name: shopRoom}, Events: s.events.Events(), Journal: s.steps.Lives(), Final: final, Facts: s.facts}
	result := history.Examine(h)
	tally.History(result.Calls, result.Unknowns, len(result.Violations))
	for _, v := range result.Violations[:min(len(result.Violations), 5)] {
		s.t.Errorf("%s", v)
	}
	for _, d := range result.Deviations {
		s.t.Logf("deviation: %s: %s (%d)", d.Check, d.Text, d.Count)
	}
	s.t.Logf("%d calls, %d unknown, %d steps, %d lives: %d violations", result.Calls, result.Unknowns, result.Steps, len(h.Journal), len(result.Violations))
	require.NotZero(s.t, result.Steps, "no journal: the product was built without its overlay")
	if s.t.Failed() {
		if err := h.Write(filepath.Join(keep(s.t, s.t.Name()), "history")); err != nil {
			s.t.Error(err)
		}
	}
	return result
}

// explain keeps what the processes have said, if the test has failed.
func (s *shop) explain() {
	if !s.t.Failed() {
		return
	}
	dir := keep(s.t, s.t.Name())
	for i, p := range s.all {
		_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("process-%d.log", i)), []byte(p.Said()), 0o600)
	}
}

// metric is one series of /metrics, summed over the processes that run.
func (s *shop) metric(series string) (sum float64) {
	s.t.Helper()
	for _, p := range s.all {
		if !p.Ended() {
			sum += metricOf(s.t, s.client, p, series)
		}
	}
	return sum
}

// metricOf is 0 for a series that the process does not have: of labels not met yet.
func metricOf(t testing.TB, client *http.Client, p *fault.Process, series string) float64 {
	t.Helper()
	text, err := p.Metrics(t.Context(), client)
	require.NoError(t, err)
	v, _ := text.Value(series)
	return v
}

// logged is how often the processes have said this.
func (s *shop) logged(msg string) (n int) {
	for _, p := range s.all {
		n += len(p.Logged(msg))
	}
	return n
}

// leader is the process that leads, once one does.
func (s *shop) leader() (found *fault.Process) {
	s.t.Helper()
	eventually(s.t, longEnough, "somebody leads", func() bool {
		for _, p := range s.all {
			if !p.Ended() && len(p.Logged("leading")) > len(p.Logged("no longer leading")) {
				found = p
			}
		}
		return found != nil
	})
	return found
}

// orders is how many there are in Postgres.
func (s *shop) orders() int { return sqlValue[int](s, "SELECT count(*) FROM orders WHERE NOT void") }

// sqlValue reads one value from the shop's database.
func sqlValue[T any](s *shop, query string, args ...any) (v T) {
	s.t.Helper()
	require.NoError(s.t, s.pool.QueryRow(s.t.Context(), query, args...).Scan(&v))
	return v
}

// ownRedis is a Redis of the test's own, and its URL.
func ownRedis(t *testing.T, args ...string) (*fault.Redis, string) {
	t.Helper()
	p := harness.RedisServer(t, args...)
	r := fault.NewRedis(p)
	t.Cleanup(r.Close)
	return r, "redis://" + p.Addr
}
