//go:build faults

package verify

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// counter is a shop without processes: its parts are wired in this one, and the
// clock of Redis is moved by the test, so that leases and tokens end at once.
// Redis and Postgres are real.
type counter struct {
	*shop
	line *redisstore.Store
	life queue.Life
	step queue.Step

	mu    sync.Mutex
	clock time.Time
}

// openCounter begins the room. Transactions wait for locks as long as it takes.
func openCounter(t *testing.T, change func(*room.Settings)) *counter {
	t.Helper()
	_, url := ownRedis(t)
	c := &counter{shop: openShop(t, url, harness.DSN(t), change), clock: time.Now().Truncate(time.Second)}
	c.line = redisstore.New(c.rdb, c.prefix, redisstore.WithClock(c.now))
	var err error
	c.life, err = c.rooms.Begin(t.Context(), shopRoom, 0)
	require.NoError(t, err)
	require.NoError(t, c.line.Create(t.Context(), c.life))
	c.step = queue.Step{Generation: c.life.Generation, Term: 1, Leader: "test"}
	return c
}

func (c *counter) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock
}

// pass moves the clock, and does what a scheduler does each second.
func (c *counter) pass(d time.Duration) {
	c.t.Helper()
	c.mu.Lock()
	c.clock = c.clock.Add(d)
	c.mu.Unlock()
	_, err := c.line.Reap(c.t.Context(), shopRoom)
	require.NoError(c.t, err)
}

// tick lets through whoever may go next.
func (c *counter) tick() {
	c.t.Helper()
	ctx := c.t.Context()
	c.step.Seq++
	r, err := c.line.Reserve(ctx, shopRoom, c.step, queue.Take{Keep: c.step.Seq, Effective: c.life.Rules.Batch, Max: 500})
	require.NoError(c.t, err)
	progress := queue.Progress{Room: shopRoom, Sale: 1, LastScore: r.LastScore, Floors: r.Watermarks}
	decisions := make([]queue.Decision, len(r.Taken))
	for i, taken := range r.Taken {
		decisions[i] = queue.Decision{Member: taken.Member, Grant: uuid.NewString()}
		progress.Floors[0] = max(progress.Floors[0], taken.Place.Score)
	}
	require.NoError(c.t, c.rooms.Advance(ctx, []queue.Progress{progress}))
	_, err = c.line.Issue(ctx, shopRoom, c.step, decisions)
	require.NoError(c.t, err)
}

// grant lets a member in and through, and picks up the grant.
func (c *counter) grant(member string) queue.Grant {
	c.t.Helper()
	_, err := c.line.Enter(c.t.Context(), shopRoom, member, 0)
	require.NoError(c.t, err)
	c.tick()
	g, err := c.line.PickUp(c.t.Context(), c.standing(member).Grant, "k1")
	require.NoError(c.t, err)
	return g
}

func (c *counter) standing(member string) queue.Standing {
	c.t.Helper()
	st, err := c.line.Standing(c.t.Context(), shopRoom, member)
	require.NoError(c.t, err)
	return st
}

// till is a process that takes orders, up to a change of its store.
func (c *counter) till(change func(order.Store) order.Store) *order.Service {
	c.t.Helper()
	conf, err := pgxpool.ParseConfig(c.dsn)
	require.NoError(c.t, err)
	orderstore.Configure(conf)
	conf.ConnConfig.RuntimeParams["lock_timeout"] = "60000"
	conf.ConnConfig.RuntimeParams["statement_timeout"] = "60000"
	pool, err := pgxpool.NewWithConfig(c.t.Context(), conf)
	require.NoError(c.t, err)
	c.t.Cleanup(pool.Close)
	var store order.Store = orderstore.New(pool, orderstore.Options{})
	if change != nil {
		store = change(store)
	}
	return order.New(c.line, store, order.Options{})
}

// request is an order of one piece.
func (c *counter) request(g queue.Grant) order.Request {
	return order.Request{Grant: g, Items: []order.Item{{SKU: "demo", Quantity: 1}}, Lease: c.life.Rules.ClaimLease}
}

// placed is what an attempt came to.
type placed struct {
	order.Placed
	err error
}

// place orders in the background, as a client of its own.
func (c *counter) place(s *order.Service, r order.Request) <-chan placed {
	done := make(chan placed, 1)
	ctx := c.t.Context()
	e := history.Event{F: history.Order, Client: c.customer().name, Room: shopRoom, Member: r.Grant.Member, Grant: r.Grant.ID,
		Content: history.Content([]history.Item{{SKU: "demo", Quantity: 1}})}
	op := c.events.Invoke(e)
	go func() {
		p, err := s.Place(ctx, r)
		e.Type, e.Code, e.OrderID, e.Replayed = history.Fail, "unavailable", p.ID, p.Replayed
		switch {
		case err == nil:
			e.Type, e.Code = history.OK, "200"
		case errors.Is(err, order.ErrOutcomeUnknown):
			e.Type, e.Code = history.Unknown, "order-outcome-unknown"
		case errors.Is(err, order.ErrTokenInvalid):
			e.Code = "entry-token-invalid"
		}
		c.events.End(op, e)
		done <- placed{p, err}
	}()
	return done
}

// relay delivers what is due, and returns when nothing is.
func (c *counter) relay() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- outbox.NewRelay(c.pool, sink{c.line}, outbox.Options{Poll: 10 * time.Millisecond}).Run(ctx)
	}()
	c.delivered()
	cancel()
	require.NoError(c.t, <-done)
}
