package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// grants stands in for Redis: one claim at a time, no clock. A test ends a lease
// when it wants it ended.
type grants struct {
	mu       sync.Mutex
	open     bool // claims are given to everybody, as by a Redis that forgets
	held     map[string]string
	gone     map[string]bool
	released []string // grants
}

func (g *grants) Claim(_ context.Context, q queue.Grant, claim string, _ time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch holder := g.held[q.ID]; {
	case g.gone[q.ID]:
		return queue.ErrGone
	case g.open || holder == "" || holder == claim:
		g.held[q.ID] = claim
		return nil
	}
	return queue.BusyError{Left: time.Second}
}

func (g *grants) Release(_ context.Context, q queue.Grant, claim string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[q.ID] == claim {
		delete(g.held, q.ID)
		g.released = append(g.released, q.ID)
	}
	return nil
}

// lapse ends the lease of whoever holds q.
func (g *grants) lapse(q queue.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, q.ID)
}

func (g *grants) end(q queue.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone[q.ID] = true
}

func (g *grants) releases() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.released...)
}

type fixture struct {
	t      testing.TB
	db     *pgxpool.Pool // the test's own eyes and hands
	grants *grants
	store  *pgstore.Store
	orders *order.Service
	poked  chan struct{}
}

// newFixture has products a, b, c and euro, 1,000 of each.
func newFixture(t testing.TB, configure ...func(*pgxpool.Config)) *fixture {
	t.Helper()
	f := &fixture{
		t:      t,
		db:     harness.Database(t),
		grants: &grants{held: map[string]string{}, gone: map[string]bool{}},
		poked:  make(chan struct{}, 1000),
	}
	f.store = pgstore.New(f.pool(configure...), pgstore.Options{
		Committed:      func() { f.poked <- struct{}{} },
		AcquireTimeout: time.Minute, Patience: time.Minute, // a busy test machine is no finding
	})
	f.orders = order.New(f.grants, f.store, order.Options{})
	f.exec(`INSERT INTO products (sku, stock, price_cents, currency)
		VALUES ('a', 1000, 100, 'USD'), ('b', 1000, 20, 'USD'), ('c', 1000, 3, 'USD'), ('euro', 1000, 5, 'EUR')`)
	return f
}

// pool is a pool as the product opens it, changed as the test needs it.
func (f *fixture) pool(configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	f.t.Helper()
	c, err := pgxpool.ParseConfig(harness.DSN(f.t))
	require.NoError(f.t, err)
	pgstore.Configure(c)
	for _, set := range configure {
		set(c)
	}
	pool, err := pgxpool.NewWithConfig(f.t.Context(), c)
	require.NoError(f.t, err)
	f.t.Cleanup(pool.Close)
	return pool
}

func setting(name, value string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[name] = value }
}

func size(n int32) func(*pgxpool.Config) { return func(c *pgxpool.Config) { c.MaxConns = n } }

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	_, err := f.db.Exec(context.WithoutCancel(f.t.Context()), sql, args...)
	require.NoError(f.t, err)
}

func (f *fixture) count(sql string, args ...any) int {
	f.t.Helper()
	var n int
	require.NoError(f.t, f.db.QueryRow(f.t.Context(), sql, args...).Scan(&n))
	return n
}

func (f *fixture) stock(sku string) int {
	f.t.Helper()
	return f.count(`SELECT stock FROM products WHERE sku = $1`, sku)
}

func (f *fixture) orderCount() int {
	f.t.Helper()
	return f.count(`SELECT count(*) FROM orders WHERE NOT void`)
}

// waiting waits for n connections of this database to wait for a lock.
func (f *fixture) waiting(n int) {
	f.t.Helper()
	harness.Eventually(f.t, 10*time.Second, "attempts wait for a lock", func() bool {
		return f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == n
	})
}

func grantOf(member string) queue.Grant {
	return queue.Grant{ID: uuid.NewString(), Room: "r", Member: member, Sale: 3, Generation: 7}
}

// of is a request for one of each sku.
func of(g queue.Grant, skus ...string) order.Request {
	r := order.Request{Grant: g, Lease: 15 * time.Second}
	for _, sku := range skus {
		r.Items = append(r.Items, order.Item{SKU: sku, Quantity: 1})
	}
	return r
}

// answered is what one call of Place has returned.
type answered struct {
	order.Placed
	err error
}

// errPanic is what a call that panics has returned.
var errPanic = errors.New("panic")

// place begins an order in the background.
func (f *fixture) place(r order.Request) <-chan answered { return f.placeUntil(f.t.Context(), r) }

func (f *fixture) placeUntil(ctx context.Context, r order.Request) <-chan answered {
	c := make(chan answered, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				c <- answered{err: fmt.Errorf("%w: %v", errPanic, p)}
			}
		}()
		placed, err := f.orders.Place(ctx, r)
		c <- answered{placed, err}
	}()
	return c
}

// all places many orders, 50 at a time: more than any pool here has
// connections, and few enough for none to meet its deadline.
func (f *fixture) all(requests []order.Request) []answered {
	f.t.Helper()
	got := make([]answered, len(requests))
	var g errgroup.Group
	g.SetLimit(50)
	for i, r := range requests {
		g.Go(func() error {
			got[i] = <-f.place(r)
			return nil
		})
	}
	_ = g.Wait()
	return got
}

func (f *fixture) must(r order.Request) order.Placed {
	f.t.Helper()
	placed, err := f.orders.Place(f.t.Context(), r)
	require.NoError(f.t, err)
	return placed
}

// tally counts answers by error: "" for none.
func tally(answers []answered, sorts ...error) map[error]int {
	n := map[error]int{}
	for _, a := range answers {
		sort := a.err
		for _, s := range sorts {
			if errors.Is(a.err, s) {
				sort = s
			}
		}
		n[sort]++
	}
	return n
}

// quick is a store that waits for no lock longer than a moment.
func (f *fixture) quick() *pgstore.Store {
	f.t.Helper()
	return pgstore.New(f.pool(setting("lock_timeout", "100")), pgstore.Options{})
}

func newStore(pool *pgxpool.Pool) *pgstore.Store { return pgstore.New(pool, pgstore.Options{}) }
