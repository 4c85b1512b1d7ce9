package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/contract"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // a client whose server is killed talks a lot
	os.Exit(harness.Run(m))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// document is read once: every exchange of every test is held against it.
var document struct {
	once sync.Once
	*contract.Contract
}

// start is when every test begins, by the clock of Redis; time is data here.
var start = time.UnixMicro(1_764_500_000_000_000)

// operator is who changes rooms in these tests.
var operator = room.Actor{Name: "olaf", Role: "admin", Remote: "127.0.0.1"}

// fixture is a room on a real Redis and Postgres with one scheduler, the test
// itself, and one process that serves it. Redis shows the clock of the test.
type fixture struct {
	*site
	t      *testing.T
	room   string
	prefix string
	rdb    *redis.Client
	db     *pgxpool.Pool
	line   *redisstore.Store
	rooms  *roomstore.Store
	orders *orderstore.Store
	ring   *credential.Ring
	life   queue.Life
	step   queue.Step

	mu    sync.Mutex
	clock time.Time
}

// plan is what a test wants different.
type plan struct {
	settings room.Settings
	rdb      *redis.Client
	db       *pgxpool.Pool
	keys     string
	api      []func(*api.Options)
}

func settings(change func(*room.Settings)) func(*plan) {
	return func(p *plan) { change(&p.settings) }
}

func options(change func(*api.Options)) func(*plan) {
	return func(p *plan) { p.api = append(p.api, change) }
}

// setUp begins a room of 50 a second with the products a, b and euro.
func setUp(t *testing.T, changes ...func(*plan)) *fixture {
	t.Helper()
	p := plan{settings: room.Defaults(), keys: credential.GenerateKey()}
	for _, change := range changes {
		change(&p)
	}
	if p.rdb == nil {
		p.rdb = harness.Redis(t)
	}
	if p.db == nil {
		p.db = harness.Database(t)
	}
	id := uuid.NewString()
	f := &fixture{t: t, room: "sale-" + id[:8], prefix: "api-" + id, rdb: p.rdb, db: p.db, clock: start}
	f.line = redisstore.New(p.rdb, f.prefix, redisstore.WithClock(f.now))
	f.rooms, f.orders = roomstore.New(p.db), orderstore.New(p.db, orderstore.Options{})
	f.ring = ringOf(t, p.keys)
	_, err := p.db.Exec(t.Context(), `INSERT INTO products (sku, stock, price_cents, currency)
		VALUES ('a', 100, 250, 'USD'), ('b', 1, 1000, 'USD'), ('euro', 100, 5, 'EUR') ON CONFLICT DO NOTHING`)
	require.NoError(t, err)
	_, err = f.rooms.Create(t.Context(), f.room, p.settings, operator)
	require.NoError(t, err)
	f.begin(0)
	f.site = f.serve(p.api...)
	return f
}

func ringOf(t *testing.T, keys string) *credential.Ring {
	t.Helper()
	ring, err := credential.ParseRing(keys)
	require.NoError(t, err)
	return ring
}

// begin begins the generation after this one, as a scheduler does.
func (f *fixture) begin(after int64) {
	f.t.Helper()
	life, err := f.rooms.Begin(f.t.Context(), f.room, after)
	require.NoError(f.t, err)
	f.adopt(life)
}

func (f *fixture) adopt(life queue.Life) {
	f.t.Helper()
	require.NoError(f.t, f.line.Create(f.t.Context(), life))
	f.life = life
	f.step = queue.Step{Generation: life.Generation, Term: f.step.Term + 1, Leader: "test"}
}

// change puts changed settings in force.
func (f *fixture) change(change func(*room.Settings)) {
	f.t.Helper()
	_, err := f.rooms.Update(f.t.Context(), f.room, 0, func(s room.Settings) (room.Settings, error) {
		change(&s)
		return s, nil
	}, operator)
	require.NoError(f.t, err)
	f.life = f.written()
	require.NoError(f.t, f.line.Update(f.t.Context(), f.life))
}

// written is the room as Postgres has it.
func (f *fixture) written() queue.Life {
	f.t.Helper()
	lives, err := f.rooms.Lives(f.t.Context())
	require.NoError(f.t, err)
	for _, life := range lives {
		if life.Room == f.room {
			return life
		}
	}
	f.t.Fatalf("room %s is not in Postgres", f.room)
	return queue.Life{}
}

func (f *fixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock
}

func (f *fixture) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = f.clock.Add(d)
}

func (f *fixture) options() api.Options {
	return api.Options{
		Line: f.line, Returns: f.line, Snapshots: f.line, Hearer: f.line, Health: f.line, Books: f.rooms, KeptOut: f.rooms, Draws: f.rooms,
		Reach: f.line, Codes: f.rooms,
		Orders: order.New(f.line, f.orders, order.Options{}), OrderBook: f.orders, Ring: f.ring,
		Ready: func() []string { return nil },
	}
}

// serve starts a process that serves the room. One that has just started knows
// nothing of before, so it shows the room as it is.
func (f *fixture) serve(changes ...func(*api.Options)) *site {
	f.t.Helper()
	o := f.options()
	for _, change := range changes {
		change(&o)
	}
	a := api.New(o)
	server := httptest.NewServer(a.Handler())
	f.t.Cleanup(server.Close)
	document.once.Do(func() { document.Contract = contract.Load(f.t) })
	client := server.Client()
	client.Transport = document.Transport(f.t, client.Transport)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &site{t: f.t, api: a, url: server.URL, client: client, entries: "/v1/rooms/" + f.room + "/entries"}
}

// reserve takes whoever may go next out of the line.
func (f *fixture) reserve() []queue.Candidate {
	f.t.Helper()
	f.step.Seq++
	take := queue.Take{Keep: f.step.Seq, Effective: f.life.Rules.Batch, Max: 500}
	r, err := f.line.Reserve(f.t.Context(), f.room, f.step, take)
	require.NoError(f.t, err)
	return r.Taken
}

func (f *fixture) issue(taken []queue.Candidate) {
	f.t.Helper()
	var decisions []queue.Decision
	floor := int64(0)
	for _, c := range taken {
		decisions = append(decisions, queue.Decision{Member: c.Member, Grant: credential.NewGrantID()})
		floor = max(floor, c.Place.Score)
	}
	progress := []queue.Progress{{Room: f.room, Sale: f.life.Sale, Floors: []int64{floor}, LastScore: floor}}
	require.NoError(f.t, f.rooms.Advance(f.t.Context(), progress))
	_, err := f.line.Issue(f.t.Context(), f.room, f.step, decisions)
	require.NoError(f.t, err)
}

// tick lets through whoever may go next, and returns how many.
func (f *fixture) tick() int {
	f.t.Helper()
	taken := f.reserve()
	if len(taken) > 0 {
		f.issue(taken)
	}
	return len(taken)
}

// lose makes Redis lose the room.
func (f *fixture) lose() {
	f.t.Helper()
	require.NoError(f.t, f.rdb.Del(f.t.Context(), f.keys()...).Err())
}

func (f *fixture) keys() []string {
	f.t.Helper()
	keys, err := f.rdb.Keys(f.t.Context(), f.prefix+":*").Result()
	require.NoError(f.t, err)
	return keys
}

func (f *fixture) key(part string) string { return f.prefix + ":{" + f.room + "}:" + part }

// dump is all that Redis holds of the room.
func (f *fixture) dump() map[string]any {
	f.t.Helper()
	return harness.Contents(f.t, f.rdb, f.prefix+":*")
}

// crowd puts n members in line before everybody who enters.
func (f *fixture) crowd(n int) {
	f.t.Helper()
	entries := make([]redis.Z, n)
	for i := range entries {
		entries[i] = redis.Z{Score: float64(start.UnixMicro() - int64(n) + int64(i)), Member: "crowd-" + uuid.NewString()}
	}
	if n == 0 {
		return
	}
	require.NoError(f.t, f.rdb.ZAdd(f.t.Context(), f.key("lane0"), entries...).Err())
}

// ready enters, is let through and picks up.
func (f *fixture) ready() (ticket, token string) {
	f.t.Helper()
	ticket = f.enter()
	require.Positive(f.t, f.tick())
	p := f.poll(ticket)
	require.Equal(f.t, queue.Ready, p.Status)
	return ticket, *p.EntryToken
}
