package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/migrations"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

// How long a client may wait for an answer while Redis, or Postgres, is away.
const (
	withoutRedis    = 2500 * time.Millisecond
	withoutPostgres = 4 * time.Second
)

// onRedis is a fixture on a Redis of its own, reached as the product does.
func onRedis(t *testing.T, addr string) *fixture {
	t.Helper()
	o, err := config.RedisOptions(config.URL("redis://" + addr))
	require.NoError(t, err)
	client, ok := config.OpenRedis(o).(*redis.Client)
	require.True(t, ok)
	t.Cleanup(func() { _ = client.Close() })
	return setUp(t, func(p *plan) { p.rdb = client })
}

// within is call for a client with so little patience.
func (s *site) within(patience time.Duration, method, path string, more ...with) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	a, err := s.try(ctx, method, path, more...)
	require.NoError(s.t, err, "no answer to %s %s within %v", method, path, patience)
	return a
}

// unavailable tells whether each of many clients that ask at once is soon told
// to come back.
func (s *site) unavailable(patience time.Duration, method, path string, more ...with) error {
	var g errgroup.Group
	for range 12 {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(s.t.Context(), patience)
			defer cancel()
			a, err := s.try(ctx, method, path, more...)
			if err == nil && (a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "") {
				err = fmt.Errorf("want 503 with Retry-After, got %d: %s", a.status, a.body)
			}
			if err != nil {
				err = fmt.Errorf("%s %s: %w", method, path, err)
			}
			return err
		})
	}
	return g.Wait()
}

// refusesAll demands that a process without Redis says so, soon, to everybody
// at once, and lets no order through.
func (f *fixture) refusesAll(s *site, ticketText, entry string) {
	f.t.Helper()
	var g errgroup.Group
	g.Go(func() error { return s.unavailable(withoutRedis, "GET", s.entries+"/me", ticket(ticketText)) })
	g.Go(func() error { return s.unavailable(withoutRedis, "POST", s.entries) })
	g.Go(func() error { return s.unavailable(withoutRedis, "GET", "/v1/rooms/"+f.room) })
	g.Go(func() error {
		return s.unavailable(withoutRedis, "POST", "/v1/orders", body(`{"items":`+oneA+`}`), token(entry))
	})
	require.NoError(f.t, g.Wait())
	var orders int
	require.NoError(f.t, f.db.QueryRow(f.t.Context(), "SELECT count(*) FROM orders").Scan(&orders))
	require.Zero(f.t, orders, "I20: without Redis no order, and the token is not voided either")
}

func TestWithoutRedisEverybodyIsToldToComeBack(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*devstack.Proc){"gone": (*devstack.Proc).Kill, "hanging": (*devstack.Proc).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := harness.RedisServer(t)
			f := onRedis(t, server.Addr)
			ann, entry := f.ready()
			take(server)
			f.eventually("the last view is too old", func() bool {
				a, err := f.try(t.Context(), "GET", f.entries+"/me", ticket(ann))
				return err == nil && a.status == http.StatusServiceUnavailable
			})
			f.refusesAll(f.site, ann, entry)
			f.refusesAll(f.serve(), ann, entry)
			server.Resume()
			require.NoError(t, server.Start())
			if name == "gone" {
				life, err := f.rooms.Begin(t.Context(), f.room, f.life.Generation) // it has kept nothing
				require.NoError(t, err)
				f.eventually("the room is begun again", func() bool { return f.line.Create(t.Context(), life) == nil })
				f.eventually("ann is told what became of the place", func() bool {
					a, err := f.try(t.Context(), "GET", f.entries+"/me", ticket(ann), token(entry))
					return err == nil && a.status == http.StatusOK && a.position().Status == queue.Waiting
				})
				return
			}
			f.eventually("the token is as good as before", func() bool {
				a, err := f.try(t.Context(), "POST", "/v1/orders", body(`{"items":`+oneA+`}`), token(entry))
				return err == nil && a.status == http.StatusCreated
			})
		})
	}
}

// onPostgres is a fixture on a Postgres of its own, reached as the product does.
func onPostgres(t *testing.T, server *devstack.Postgres) *fixture {
	t.Helper()
	require.NoError(t, server.CreateDatabase(t.Context(), "shop"))
	_, err := migrations.Up(t.Context(), server.DSN("shop"))
	require.NoError(t, err)
	pool, err := orderstore.NewPool(t.Context(), server.DSN("shop"))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return setUp(t, func(p *plan) { p.db = pool })
}

// TestWithoutPostgresKnownRoomsGoOn is about the line: who waits must not notice.
func TestWithoutPostgresKnownRoomsGoOn(t *testing.T) {
	t.Parallel()
	server := harness.PostgresServer(t)
	f := onPostgres(t, server)
	ann, entry := f.ready()
	bob := f.enter()
	_, err := f.line.Reap(t.Context(), f.room)
	require.NoError(t, err)
	f.run()
	f.eventually("the room can hear", func() bool { return f.rdb.HExists(t.Context(), f.key("state"), "heard_at").Val() })

	for _, take := range []func(){server.Pause, func() { server.Resume(); server.Kill() }} {
		take()
		f.pass(5 * time.Second)
		require.Equal(t, queue.Ready, f.within(withoutPostgres, "GET", f.entries+"/me", ticket(ann)).is(http.StatusOK).position().Status)
		require.Equal(t, queue.Waiting, f.within(withoutPostgres, "GET", f.entries+"/me", ticket(bob)).is(http.StatusOK).position().Status)
		eve := f.within(withoutPostgres, "POST", f.entries).is(http.StatusCreated).position()
		f.within(withoutPostgres, "DELETE", f.entries+"/me", ticket(*eve.QueueTicket)).is(http.StatusNoContent)
		f.within(withoutPostgres, "GET", "/v1/rooms/"+f.room).is(http.StatusOK)
		f.eventually("bob is heard", func() bool { return f.seen(bob).Equal(f.now()) })

		// Of a room that nobody knows it can't be said that it is not there.
		require.NoError(t, f.unavailable(withoutPostgres, "GET", "/v1/rooms/unknown"))
	}
	f.order(oneA, token(entry)).refused(http.StatusServiceUnavailable, "unavailable")
	require.NoError(t, server.Start())
	f.eventually("orders go on", func() bool { return f.order(oneA, token(entry)).status == http.StatusCreated })
	_, err = f.rooms.Create(t.Context(), "new", room.Defaults(), operator)
	require.NoError(t, err)
	f.eventually("new rooms are found", func() bool { return f.call("GET", "/v1/rooms/new").status == http.StatusServiceUnavailable })
}

// TestNobodyHangsOnAPostgresThatDoesNotAnswer is about the two requests of the
// line and of orders that wait for Postgres alone.
func TestNobodyHangsOnAPostgresThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := harness.PostgresServer(t)
	f := onPostgres(t, server)
	ann := f.enter()
	_, entry := f.ready()
	path := "/v1/orders/" + f.order(oneA, token(entry)).is(http.StatusCreated).order().ID
	f.call("GET", path, token(entry)).is(http.StatusOK)
	f.relive()
	site := f.serve()
	site.status(f.room)
	server.Pause()
	var g errgroup.Group
	g.Go(func() error { return site.unavailable(withoutPostgres, "GET", path, token(entry)) })
	g.Go(func() error { return site.unavailable(withoutPostgres, "GET", site.entries+"/me", ticket(ann)) })
	require.NoError(t, g.Wait())
	server.Resume()
	f.eventually("ann is back", func() bool { return site.get(ticket(ann)).status == http.StatusOK })
}
