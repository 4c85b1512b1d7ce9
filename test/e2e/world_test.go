package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/test/contract"
	"github.com/linekeeper/linekeeper/test/harness"
)

// noAppendOnlyFile is what a process logs about a Redis that keeps nothing.
const noAppendOnlyFile = "redis keeps no append-only file: a restart loses places, which then have to be restored from tickets"

// room is the name of the room in every test that needs one only.
const room = "sale"

// settings are those of a room that differ from the defaults.
type settings map[string]any

// world is one deployment: a Redis and a Postgres, and the processes on them.
type world struct {
	t          testing.TB
	redis      string // URLs
	dsn        string
	prefix     string
	keys       string
	adminToken string
	adminEntry string
	outages    bool // its processes may log errors
	transport  *http.Transport
	client     *http.Client
	replicas   []*process
}

// newWorld is a deployment on the servers that all tests share.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, redis: redisURL(harness.Redis(t).Options()), dsn: harness.DSN(t)}
	return w.furnish()
}

// onRedis is a deployment with a Redis of its own, which the test may break.
func onRedis(t testing.TB, p *devstack.Proc) *world {
	t.Helper()
	w := &world{t: t, redis: "redis://" + p.Addr, dsn: harness.DSN(t), outages: true}
	return w.furnish()
}

// onGroup is a deployment on several Redis servers, of its own too.
func onGroup(t testing.TB, url string) *world {
	t.Helper()
	w := &world{t: t, redis: url, dsn: harness.DSN(t), outages: true}
	return w.furnish()
}

// onPostgres is a deployment with a Postgres of its own, migrated by the binary.
func onPostgres(t testing.TB, p *devstack.Postgres) *world {
	t.Helper()
	require.NoError(t, p.CreateDatabase(t.Context(), "shop"))
	w := &world{t: t, redis: redisURL(harness.Redis(t).Options()), dsn: p.DSN("shop"), outages: true}
	code, out, said := tool(t, []string{"LINEKEEPER_DATABASE_URL=" + w.dsn}, "migrate", "up")
	require.Equal(t, 0, code, "migrate up: %s%s", out, said)
	return w.furnish()
}

func redisURL(o *redis.Options) string {
	u := url.URL{Scheme: "redis", Host: o.Addr}
	if o.Password != "" {
		u.User = url.UserPassword(o.Username, o.Password)
	}
	if o.DB != 0 {
		u.Path = fmt.Sprint("/", o.DB)
	}
	return u.String()
}

// document is the contract, read once for all tests.
var document = struct {
	once sync.Once
	*contract.Contract
}{}

func (w *world) furnish() *world {
	w.t.Helper()
	document.once.Do(func() { document.Contract = contract.Load(w.t) })
	require.NotNil(w.t, document.Contract, "the contract can't be read")
	w.prefix = strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, w.t.Name()))
	w.prefix = w.prefix[max(0, len(w.prefix)-50):] + fmt.Sprintf("-%x", time.Now().UnixNano()&0xffffff)
	made := madeSecrets(w.t)
	w.keys, w.adminToken, w.adminEntry = made.keys, made.token, made.entry
	w.transport = &http.Transport{MaxIdleConnsPerHost: 100}
	w.t.Cleanup(w.transport.CloseIdleConnections)
	w.client = &http.Client{Timeout: 20 * time.Second, Transport: document.Transport(w.t, w.transport)}
	return w
}

type secrets struct {
	once               sync.Once
	keys, token, entry string
}

var made secrets

// madeSecrets has the binary make a signing key and an admin token, once.
func madeSecrets(t testing.TB) *secrets {
	t.Helper()
	made.once.Do(func() {
		_, keys, _ := tool(t, nil, "keys", "new")
		_, token, said := tool(t, nil, "admin-token", "new", "ops", "--role", "admin")
		made.keys, made.token = strings.TrimSpace(keys), strings.TrimSpace(token)
		_, made.entry, _ = strings.Cut(strings.TrimSpace(said), "LINEKEEPER_ADMIN_TOKENS: ")
	})
	require.NotEmpty(t, made.keys)
	require.NotEmpty(t, made.token)
	require.NotEmpty(t, made.entry)
	return &made
}

// settings are what a process of this deployment is given.
func (w *world) settings(more ...string) []string {
	return append([]string{
		"LINEKEEPER_REDIS_URL=" + w.redis,
		"LINEKEEPER_DATABASE_URL=" + w.dsn,
		"LINEKEEPER_KEY_PREFIX=" + w.prefix,
		"LINEKEEPER_KEYS=" + w.keys,
		"LINEKEEPER_ADMIN_TOKENS=" + w.adminEntry,
		"LINEKEEPER_LISTEN=127.0.0.1:0",
		"LINEKEEPER_ADMIN_LISTEN=127.0.0.1:0",
		"LINEKEEPER_LEADER_TTL=2s",
		"LINEKEEPER_SHUTDOWN_DELAY=0s",
	}, slices.Concat(harness.Unlimited, more)...) // a test asks as a crowd, from one address
}

// start adds a process to the deployment, with more settings than the usual.
func (w *world) start(more ...string) *process {
	w.t.Helper()
	return w.serve(more...).awaitServing()
}

// serve is start for processes that may not come to serve.
func (w *world) serve(more ...string) *process {
	w.t.Helper()
	p := launch(w.t, "", w.settings(more...), "serve")
	p.faulty = w.outages
	// Before the process is told to stop: it would wait for connections that a
	// client has opened and not used.
	w.t.Cleanup(w.transport.CloseIdleConnections)
	w.replicas = append(w.replicas, p)
	return p
}

// pair is a deployment's usual size.
func (w *world) pair() (a, b *process) { return w.start(), w.start() }

// open makes the room, with stock for all that a test orders, and returns when
// every process knows it.
func (w *world) open(s settings) {
	w.t.Helper()
	w.stock("demo", 100_000)
	w.openRoom(room, s)
}

func (w *world) openRoom(name string, s settings) {
	w.t.Helper()
	w.operate("POST", "/admin/v1/rooms", settings{"name": name, "settings": s}).is(201)
	harness.Eventually(w.t, patience, "every process knows the room", func() bool {
		for _, p := range w.replicas {
			if p.serves() && w.ask("GET", p.public+"/v1/rooms/"+name, nil, "").status != 200 {
				return false
			}
		}
		return true
	})
}

// sql reads one value from the deployment's database.
func sql[T any](w *world, query string, args ...any) T {
	w.t.Helper()
	c, err := pgx.Connect(w.t.Context(), w.dsn)
	require.NoError(w.t, err)
	defer c.Close(w.t.Context())
	var v T
	require.NoError(w.t, c.QueryRow(w.t.Context(), query, args...).Scan(&v))
	return v
}

// placed is how many orders there are in Postgres.
func (w *world) placed() int { return sql[int](w, "SELECT count(*) FROM orders WHERE NOT void") }

// leader is the process that leads, once one does.
func (w *world) leader() *process {
	w.t.Helper()
	var found *process
	harness.Eventually(w.t, patience, "somebody leads", func() bool {
		for _, p := range w.replicas {
			if !p.ended() && p.leads() {
				found = p
			}
		}
		return found != nil
	})
	return found
}

// together runs f for 0 to n-1 at the same moment, and returns when all are done.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			f(i)
		})
	}
	close(gate)
	wg.Wait()
}
