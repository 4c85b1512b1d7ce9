package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/contract"
	"github.com/linekeeper/linekeeper/test/harness"
)

// document is read once for all tests.
var document struct {
	once sync.Once
	*contract.Contract
}

type ctx = context.Context

// flusher is who changes rooms behind the API's back.
var flusher = room.Actor{Name: "ada", Role: "admin", Remote: "local"}

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// fixture is the whole API on a database and rooms of its own, with one token
// per role.
type fixture struct {
	t       *testing.T
	pool    *pgxpool.Pool
	store   *pgstore.Store
	redis   *redisstore.Store
	url     string
	client  *http.Client // holds every exchange against openapi.yaml
	handler http.Handler
	tokens  map[string]string // by role
	log     *lines
	failed  *counts // of failed authentications, by result
	evicted *names
	prefix  string // of Redis
}

type counts struct {
	mu sync.Mutex
	of map[string]int
}

// names are who has lost a place, and from where.
type names struct {
	mu  sync.Mutex
	all []string
}

func (n *names) add(_ ctx, _ string, who room.Subject) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, who.Member+" "+who.State)
}

func (n *names) sorted() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(slices.Values(n.all))
}

func (c *counts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[what]++
}

func (c *counts) get(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[what]
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, pool: harness.Database(t), tokens: map[string]string{}, log: &lines{}, failed: &counts{of: map[string]int{}}, evicted: &names{}}
	f.store = pgstore.New(f.pool)
	f.prefix = "test-" + uuid.NewString()
	f.redis = redisstore.New(harness.Redis(t), f.prefix)
	f.serve(f.store, f.redis)
	return f
}

// serve starts the API with these parts; a test may put a broken one in.
func (f *fixture) serve(store admin.Store, redis admin.Lines) {
	f.t.Helper()
	var list []string
	for name, role := range map[string]admin.Role{"vera": admin.Viewer, "olaf": admin.Operator, "ada": admin.Admin} {
		token, line, err := admin.NewToken(name, role)
		require.NoError(f.t, err)
		f.tokens[role.String()] = token
		list = append(list, line)
	}
	tokens, err := admin.ParseTokens(strings.Join(list, ","))
	require.NoError(f.t, err)
	h := admin.New(admin.Options{
		Store: store, Lines: redis, Outbox: outboxOf{outbox.NewAdmin(f.pool)}, Tokens: tokens,
		Log:     slog.New(slog.NewJSONHandler(f.log, nil)),
		Trusted: clientip.Trusted{netip.MustParsePrefix("127.0.0.0/8")}, HashMember: func(member string) string { return "hash-of-" + member[:1] },
		Failed: func(result string) { f.failed.add(result) }, Evicted: f.evicted.add,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") }),
	})
	server := httptest.NewServer(h)
	f.t.Cleanup(server.Close)
	document.once.Do(func() { document.Contract = contract.Load(f.t) })
	f.handler, f.url, f.client = h, server.URL, server.Client()
	f.client.Transport = document.Transport(f.t, f.client.Transport)
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// outboxOf fits the outbox to what the API asks for.
type outboxOf struct{ real *outbox.Admin }

func (o outboxOf) List(ctx context.Context, status string, limit int, after int64) ([]admin.Entry, error) {
	rows, err := o.real.List(ctx, outbox.Status(status), limit, after)
	entries := make([]admin.Entry, len(rows))
	for i, r := range rows {
		entries[i] = admin.Entry{ID: r.ID, OrderID: r.OrderID, Kind: r.Kind, Room: r.Room, Status: string(r.Status),
			Attempts: r.Attempts, NextAttemptAt: r.NextAttempt, LastError: r.LastError, CreatedAt: r.CreatedAt}
	}
	return entries, err
}

func (o outboxOf) Requeue(ctx context.Context, id int64) error {
	err := o.real.Requeue(ctx, id)
	if errors.Is(err, outbox.ErrNotDead) {
		return admin.ErrNotDead
	}
	return err
}

// answer is a response, read.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	data   []byte // as it came
}

// header pairs, such as If-Match.
type headers map[string]string

// call sends one request. A body without a Content-Type of its own is JSON.
func (f *fixture) call(role, method, path, body string, more ...headers) answer {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(f.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token := f.tokens[role]; token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range more {
		for name, value := range h {
			req.Header.Set(name, value)
		}
	}
	resp, err := f.client.Do(req)
	require.NoError(f.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	a := answer{status: resp.StatusCode, header: resp.Header, data: data}
	if len(data) > 0 && strings.Contains(resp.Header.Get("Content-Type"), "json") {
		require.NoError(f.t, json.Unmarshal(data, &a.body), "%s", data)
	}
	require.Equal(f.t, "no-store", resp.Header.Get("Cache-Control"), "%s %s", method, path)
	require.NotEmpty(f.t, resp.Header.Get("X-Request-Id"))
	return a
}

// refused demands a problem of this status and code.
func (f *fixture) refused(a answer, status int, code string) {
	f.t.Helper()
	require.Equal(f.t, status, a.status, "%v", a.body)
	require.Equal(f.t, "application/problem+json", a.header.Get("Content-Type"))
	require.Equal(f.t, code, a.body["code"], "%v", a.body)
	require.Equal(f.t, a.header.Get("X-Request-Id"), a.body["requestId"])
}

// fields are the paths that a 422 complains about.
func (a answer) fields() []string {
	var fields []string
	list, _ := a.body["errors"].([]any)
	for _, e := range list {
		fields = append(fields, e.(map[string]any)["field"].(string))
	}
	return fields
}

func (a answer) setting(name string) any {
	return a.body["settings"].(map[string]any)[name]
}

// create makes a room of this name through the API.
func (f *fixture) create(name string) answer {
	f.t.Helper()
	a := f.call("admin", "POST", "/admin/v1/rooms", `{"name":"`+name+`"}`)
	require.Equal(f.t, http.StatusCreated, a.status, "%v", a.body)
	return a
}

func (f *fixture) get(name string) answer {
	f.t.Helper()
	a := f.call("viewer", "GET", "/admin/v1/rooms/"+name, "")
	require.Equal(f.t, http.StatusOK, a.status, "%v", a.body)
	return a
}

// changes is the audit list of a target, newest first.
func (f *fixture) changes(target string) []map[string]any {
	f.t.Helper()
	a := f.call("viewer", "GET", "/admin/v1/audit?target="+target, "")
	require.Equal(f.t, http.StatusOK, a.status, "%v", a.body)
	var changes []map[string]any
	for _, c := range a.body["changes"].([]any) {
		changes = append(changes, c.(map[string]any))
	}
	return changes
}

// begin makes the room run, as a scheduler does.
func (f *fixture) begin(name string) queue.Life {
	f.t.Helper()
	r, err := f.store.Get(f.t.Context(), name)
	require.NoError(f.t, err)
	life, err := f.store.Begin(f.t.Context(), name, r.Generation)
	require.NoError(f.t, err)
	require.NoError(f.t, f.redis.Create(f.t.Context(), life))
	return life
}

// deadEntry puts a dead event into the outbox and returns its id.
func (f *fixture) deadEntry() int64 {
	f.t.Helper()
	order := uuid.New()
	_, err := f.pool.Exec(f.t.Context(), `INSERT INTO orders (id, grant_id, room, sale, generation, member) VALUES ($1, $2, 'sale', 1, 1, 'bob')`, order, uuid.New())
	require.NoError(f.t, err)
	var id int64
	err = f.pool.QueryRow(f.t.Context(), `INSERT INTO outbox (order_id, kind, room, payload, status, attempts, last_error)
		VALUES ($1, 'consume', 'sale', '{"member":"bob"}', 'dead', 9, 'wrong type') RETURNING id`, order).Scan(&id)
	require.NoError(f.t, err)
	return id
}

// broken is a store whose every read of a room fails in one way.
type broken struct {
	admin.Store
	err error
}

func (b broken) Get(context.Context, string) (room.Room, error) { return room.Room{}, b.err }

// brokenLines is a Redis that fails in one way.
type brokenLines struct{ err error }

func (b brokenLines) Snapshot(context.Context, string) (queue.Snapshot, error) {
	return queue.Snapshot{}, b.err
}

func (b brokenLines) Look(context.Context, string, string) (queue.Sight, error) {
	return queue.Sight{}, b.err
}

func (b brokenLines) Leave(context.Context, string, string, int64, queue.Outcome) (bool, error) {
	return false, b.err
}

func keys(m map[string]any) []string {
	var names []string
	for name := range maps.Keys(m) {
		names = append(names, name)
	}
	return names
}

func parseTime(t *testing.T, v any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, v.(string))
	require.NoError(t, err)
	return at
}

// serveOnce answers a list of rooms without a network.
func serveOnce(h http.Handler, credential string) int {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/admin/v1/rooms", nil)
	r.Header.Set("Authorization", credential)
	h.ServeHTTP(w, r)
	return w.Code
}
