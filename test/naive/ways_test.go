package naive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/naive"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// naiveWay is a line, a schedule and a shop of package naive.
type naiveWay struct {
	t      testing.TB
	prefix string
	clock  *clock
	skew   []time.Duration // of the clocks of its processes
	rdb    *redis.Client
	db     *pgxpool.Pool
}

func newNaive(t testing.TB) *naiveWay {
	t.Helper()
	w := &naiveWay{t: t, prefix: "naive-" + uuid.NewString(), clock: newClock(), rdb: client(t)}
	// Two, the first of them fast.
	w.skew = []time.Duration{10 * time.Minute, 0}
	return w
}

// newNaiveShop is newNaive with something to sell.
func newNaiveShop(t testing.TB) *naiveWay {
	t.Helper()
	w := newNaive(t)
	w.db = harness.Database(t)
	stock(t, w.db)
	require.NoError(t, naive.NewShop(nil, w.db).Prepare(t.Context()))
	return w
}

// line is the line as a process with this clock and these interruptions has it.
func (w *naiveWay) line(now func() time.Time, hooks ...redis.Hook) *naive.Line {
	return naive.New(client(w.t, hooks...), w.prefix, now)
}

func (w *naiveWay) Enter(ctx context.Context, member string, hooks ...redis.Hook) error {
	w.clock.Pass(time.Millisecond)
	return w.line(w.clock.Now, hooks...).Enter(ctx, member)
}

// EnterThrough enters by the process i, whose clock goes wrong by skew[i].
func (w *naiveWay) EnterThrough(ctx context.Context, i int, member string) error {
	return w.line(func() time.Time { return w.clock.Now().Add(w.skew[i]) }).Enter(ctx, member)
}

func (w *naiveWay) Place(ctx context.Context, member string) (int64, error) {
	score, err := w.rdb.ZScore(ctx, w.prefix+":waiting", member).Result()
	return int64(score), err
}

func (w *naiveWay) Tick(ctx context.Context, hooks ...redis.Hook) ([]string, error) {
	return w.line(w.clock.Now, hooks...).Tick(ctx)
}

func (w *naiveWay) Pass(d time.Duration) { w.clock.Pass(d) }

func (w *naiveWay) EstimatedWait(ctx context.Context, member string) (time.Duration, error) {
	p, err := w.line(w.clock.Now).Position(ctx, member)
	return p.EstimatedWait, err
}

func (w *naiveWay) Token(ctx context.Context, member string) (string, error) {
	p, err := w.line(w.clock.Now).Position(ctx, member)
	return p.Token, err
}

func (w *naiveWay) Order(ctx context.Context, member, token, sku string, hooks ...redis.Hook) error {
	return naive.NewShop(w.line(w.clock.Now, hooks...), w.db).Order(ctx, member, token, sku)
}

func (w *naiveWay) Orders(ctx context.Context) (int, error) {
	return naive.NewShop(w.line(w.clock.Now), w.db).Orders(ctx)
}

// stock puts on sale what the scenarios order.
func stock(t testing.TB, db *pgxpool.Pool) {
	t.Helper()
	_, err := db.Exec(t.Context(), `INSERT INTO products (sku, stock, price_cents, currency)
		VALUES ('plenty', 100, 100, 'EUR'), ('none', 0, 100, 'EUR') ON CONFLICT DO NOTHING`)
	require.NoError(t, err)
}

// keeperWay is a room of Linekeeper.
type keeperWay struct {
	t      testing.TB
	prefix string
	room   string
	clock  *clock
	clocks []redisstore.Option // of its Redis: none is the real one
	line   *redisstore.Store
	db     *pgxpool.Pool
	books  *roomstore.Store
	life   queue.Life
	ring   *credential.Ring
	server *httptest.Server
}

// newKeeper begins a room with the same rate and times as the naive line.
// Redis shows the clock of the test.
func newKeeper(t testing.TB, clocks ...func() []redisstore.Option) *keeperWay {
	t.Helper()
	w := &keeperWay{t: t, prefix: "keeper-" + uuid.NewString(), room: "sale-" + uuid.NewString()[:8], clock: newClock()}
	w.clocks = []redisstore.Option{redisstore.WithClock(w.clock.Now)}
	for _, c := range clocks {
		w.clocks = c()
	}
	w.line = w.store()
	w.db = harness.Database(t)
	stock(t, w.db)
	w.books = roomstore.New(w.db)
	settings := room.Defaults()
	settings.BatchSize, settings.IntervalMs, settings.EntryTokenTTLSeconds = naive.Batch, 1000, int(naive.TokenTTL.Seconds())
	_, err := w.books.Create(t.Context(), w.room, settings, room.Actor{Name: "test", Role: "admin", Remote: "127.0.0.1"})
	require.NoError(t, err)
	w.life, err = w.books.Begin(t.Context(), w.room, 0)
	require.NoError(t, err)
	require.NoError(t, w.line.Create(t.Context(), w.life))
	w.ring, err = credential.ParseRing(credential.GenerateKey())
	require.NoError(t, err)
	return w
}

func (w *keeperWay) store(hooks ...redis.Hook) *redisstore.Store {
	return redisstore.New(client(w.t, hooks...), w.prefix, w.clocks...)
}

func (w *keeperWay) Enter(ctx context.Context, member string, hooks ...redis.Hook) error {
	w.clock.Pass(time.Millisecond)
	_, err := w.store(hooks...).Enter(ctx, w.room, member, 0)
	return err
}

// EnterThrough enters by a process of its own. Its clock is asked by nobody.
func (w *keeperWay) EnterThrough(ctx context.Context, _ int, member string) error {
	_, err := w.store().Enter(ctx, w.room, member, 0)
	return err
}

func (w *keeperWay) Place(ctx context.Context, member string) (int64, error) {
	st, err := w.line.Standing(ctx, w.room, member)
	return st.Place.Score, err
}

// Tick is what a scheduler without a lock does: a term of its own, then reserve,
// progress and issue until the rate is used up.
func (w *keeperWay) Tick(ctx context.Context, hooks ...redis.Hook) ([]string, error) {
	line := w.store(hooks...)
	term, err := line.Terms().Next(ctx)
	if err != nil {
		return nil, err
	}
	var through []string
	step := queue.Step{Generation: w.life.Generation, Term: term, Leader: uuid.NewString()}
	for {
		step.Seq++
		r, err := line.Reserve(ctx, w.room, step, queue.Take{Keep: step.Seq, Effective: naive.Batch, Max: 500})
		if err != nil || len(r.Taken) == 0 {
			return through, err
		}
		decisions := make([]queue.Decision, len(r.Taken))
		for i, c := range r.Taken {
			decisions[i] = queue.Decision{Member: c.Member, Grant: credential.NewGrantID()}
		}
		last := r.Taken[len(r.Taken)-1].Place.Score
		if err := w.books.Advance(ctx, []queue.Progress{{Room: w.room, Sale: 1, Floors: []int64{last}, LastScore: r.LastScore}}); err != nil {
			return through, err
		}
		if _, err := line.Issue(ctx, w.room, step, decisions); err != nil {
			return through, err
		}
		for _, c := range r.Taken {
			through = append(through, c.Member)
		}
	}
}

func (w *keeperWay) Pass(d time.Duration) { w.clock.Pass(d) }

// EstimatedWait asks as a client does, until the answer is of this moment: a
// process reads a room four times a second at most.
func (w *keeperWay) EstimatedWait(ctx context.Context, member string) (time.Duration, error) {
	var p spec.Position
	var err error
	harness.Eventually(w.t, 5*time.Second, "an answer of this moment", func() bool {
		p, err = w.poll(ctx, member)
		return err != nil || !p.ServerTime.Before(w.clock.Now())
	})
	if err != nil || p.EstimatedWaitSeconds == nil {
		return 0, err
	}
	return time.Duration(*p.EstimatedWaitSeconds) * time.Second, nil
}

func (w *keeperWay) poll(ctx context.Context, member string) (p spec.Position, err error) {
	if w.server == nil {
		w.server = httptest.NewServer(api.New(api.Options{
			Line: w.line, Returns: w.line, Snapshots: w.line, Hearer: w.line, Books: w.books, Ring: w.ring,
		}).Handler())
		w.t.Cleanup(w.server.Close)
	}
	st, err := w.line.Standing(ctx, w.room, member)
	if err != nil {
		return p, err
	}
	ticket, err := w.ring.SignTicket(credential.Ticket{Room: w.room, Sale: w.life.Sale, Generation: w.life.Generation,
		Member: member, Place: st.Place, IssuedAt: w.clock.Now()})
	if err != nil {
		return p, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+"/v1/rooms/"+w.room+"/entries/me", nil)
	if err != nil {
		return p, err
	}
	req.Header.Set("X-Queue-Ticket", ticket.Reveal())
	resp, err := w.server.Client().Do(req)
	if err != nil {
		return p, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return p, errors.New(resp.Status)
	}
	return p, json.NewDecoder(resp.Body).Decode(&p)
}

func (w *keeperWay) Token(ctx context.Context, member string) (string, error) {
	st, err := w.line.Standing(ctx, w.room, member)
	if err != nil || st.Status != queue.Ready {
		return "", err
	}
	g, err := w.line.PickUp(ctx, st.Grant, w.ring.SigningKeyID())
	if err != nil {
		return "", err
	}
	token, err := w.ring.SignGrant(g)
	return token.Reveal(), err
}

func (w *keeperWay) Order(ctx context.Context, _, token, sku string, hooks ...redis.Hook) error {
	g, err := w.ring.Grant(token)
	if err != nil {
		return err
	}
	service := order.New(w.store(hooks...), orderstore.New(w.db, orderstore.Options{}), order.Options{})
	_, err = service.Place(ctx, order.Request{Grant: g, Items: []order.Item{{SKU: sku, Quantity: 1}}, Lease: w.life.Rules.ClaimLease})
	return err
}

func (w *keeperWay) Orders(ctx context.Context) (n int, err error) {
	err = w.db.QueryRow(ctx, "SELECT count(*) FROM orders WHERE room = $1 AND NOT void", w.room).Scan(&n)
	return n, err
}

// members are n names that sort as they are numbered.
func members(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("m%04d", i)
	}
	return out
}
