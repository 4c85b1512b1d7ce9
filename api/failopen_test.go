package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

// open makes a room fail open after a second.
func open(s *room.Settings) { s.Fail, s.FailOpenAfterSeconds = "open", 1 }

// cutOff is the view of a process that has lost its own way to Redis.
type cutOff struct{ back atomic.Bool }

func (c *cutOff) Unreachable(_ context.Context, rooms []string) map[string]bool {
	away := map[string]bool{}
	for _, name := range rooms {
		away[name] = !c.back.Load()
	}
	return away
}

// away is the site of a process that is cut off, once its room has failed open; the
// fixture itself goes on to see Redis. Its clocks are true, because Postgres has no
// other.
func away(t *testing.T, changes ...func(*room.Settings)) (*fixture, *site, *cutOff) {
	t.Helper()
	f := setUp(t, settings(func(s *room.Settings) {
		open(s)
		for _, change := range changes {
			change(s)
		}
	}))
	f.pass(time.Since(f.now()))
	s, c := f.cut()
	f.eventually("the room fails open", func() bool { st, _ := s.status(f.room); return st.RoomState == queue.FailedOpen })
	return f, s, c
}

// cut starts a process that is cut off.
func (f *fixture) cut(changes ...func(*api.Options)) (*site, *cutOff) {
	f.t.Helper()
	c := &cutOff{}
	s := f.serve(append(changes, func(o *api.Options) { o.Reach = c })...)
	s.run()
	return s, c
}

func (f *fixture) placed() (n int) {
	f.t.Helper()
	require.NoError(f.t, f.db.QueryRow(f.t.Context(), "SELECT count(*) FROM orders WHERE NOT void").Scan(&n))
	return n
}

// TestARoomThatFailsOpenPassesPeopleWhileRedisIsAway is on a Redis that is killed,
// and keeps what it has.
func TestARoomThatFailsOpenPassesPeopleWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
	f := onRedis(t, server.Addr)
	f.pass(time.Since(f.now()))
	f.change(open)
	ready := []string{"redis"}
	a := f.serve(func(o *api.Options) { o.Ready = func() []string { return ready } })
	a.run()
	b := f.serve()
	b.run()
	_, inside := f.ready()
	bob := f.enter()
	before := f.poll(bob)
	f.eventually("the processes know that the room fails open", func() bool { return a.call("GET", "/v1/rooms/"+f.room).status == 200 })

	server.Kill()
	require.NoError(t, a.unavailable(withoutRedis, "POST", a.entries), "not before the time is over")
	a.call("GET", "/readyz").is(http.StatusServiceUnavailable)
	for _, s := range []*site{a, b} {
		f.eventually("the room fails open", func() bool { return s.post().status == http.StatusOK })
	}
	a.call("GET", "/readyz").is(http.StatusOK)
	eve := a.post().is(http.StatusOK).position()
	require.Equal(t, queue.Ready, eve.Status)
	require.Equal(t, queue.FailedOpen, eve.RoomState)
	require.LessOrEqual(t, time.Until(*eve.EntryTokenExpiresAt), 300*time.Second)
	require.Greater(t, time.Until(*eve.EntryTokenExpiresAt), 140*time.Second)
	again := b.get(ticket(bob)).is(http.StatusOK).position()
	require.Equal(t, *again.EntryToken, *a.get(ticket(bob)).is(http.StatusOK).position().EntryToken, "who asks twice has one token")
	require.Equal(t, *again.EntryToken, *a.post(ticket(bob)).is(http.StatusOK).position().EntryToken)
	require.Nil(t, again.QueueTicket, "the place that bob has stays")

	made := a.order(oneA, token(*eve.EntryToken)).is(http.StatusCreated).order()
	require.Equal(t, made.ID, b.order(oneA, token(*eve.EntryToken)).is(http.StatusOK).order().ID)
	a.order(`[{"sku":"b","quantity":1}]`, token(*eve.EntryToken)).refused(http.StatusConflict, "entry-token-consumed")
	b.order(oneA, token(inside)).is(http.StatusCreated) // ann was inside already

	late := *a.post().is(http.StatusOK).position().EntryToken
	require.NoError(t, server.Start())
	f.eventually("the line decides again", func() bool {
		st := a.call("GET", "/v1/rooms/"+f.room)
		return string(st.body) != "" && st.status == 200 && !isOpen(st)
	})
	f.eventually("on every process", func() bool { return !isOpen(b.call("GET", "/v1/rooms/"+f.room)) })
	require.Equal(t, *before.Score, *a.poll(bob).Score, "bob's place is the same")
	a.order(oneA, token(late)).is(http.StatusCreated)
	a.order(oneA, token(*again.EntryToken)).is(http.StatusCreated)
	b.order(oneA, token(inside)).is(http.StatusOK)
	require.Equal(t, 4, f.placed())
	words, err := f.line.Consume(t.Context(), f.room, []queue.Spent{{Member: made.Member, Grant: grantOf(t, f, *eve.EntryToken), Order: made.ID}})
	require.NoError(t, err)
	require.EqualValues(t, "NONE", words[0], "the line knows nothing of that grant, and that is all right")
}

func isOpen(a answer) bool {
	var st struct{ RoomState queue.RoomState }
	return json.Unmarshal(a.body, &st) == nil && st.RoomState == queue.FailedOpen
}

func grantOf(t *testing.T, f *fixture, text string) string {
	t.Helper()
	g, err := f.ring.Grant(text)
	require.NoError(t, err)
	require.True(t, g.Open)
	return g.ID
}

// rounds counts how often it was looked, and how often to no avail.
type rounds struct {
	api.Reach
	looked, refused atomic.Int64
}

func (r *rounds) Unreachable(ctx context.Context, rooms []string) map[string]bool {
	away := r.Reach.Unreachable(ctx, rooms)
	if len(rooms) > 0 {
		r.looked.Add(1)
	}
	for _, is := range away {
		if is {
			r.refused.Add(1)
		}
	}
	return away
}

// TestNoRoomOpensBecauseRedisIs is S26: who can fill a Redis, or slow it, gains
// nothing. Each state lasts for some times the grace.
func TestNoRoomOpensBecauseRedisIs(t *testing.T) {
	t.Parallel()
	set := func(c *redis.Client, args ...any) { require.NoError(t, c.Do(t.Context(), args...).Err()) }
	for name, make := range map[string]func(p *devstack.Proc, c *redis.Client){
		"full":      func(_ *devstack.Proc, c *redis.Client) { set(c, "CONFIG", "SET", "maxmemory", "1") },
		"read-only": func(_ *devstack.Proc, c *redis.Client) { set(c, "REPLICAOF", "127.0.0.1", "1") },
		"paused":    func(_ *devstack.Proc, c *redis.Client) { set(c, "CLIENT", "PAUSE", "60000", "ALL") },
		"hanging":   func(p *devstack.Proc, _ *redis.Client) { p.Pause() },
		"busy": func(_ *devstack.Proc, c *redis.Client) {
			set(c, "CONFIG", "SET", "busy-reply-threshold", "10")
			go c.Eval(context.WithoutCancel(t.Context()), "while true do end", nil)
		},
		"out of connections": func(_ *devstack.Proc, c *redis.Client) { set(c, "CONFIG", "SET", "maxclients", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := harness.RedisServer(t)
			f := onRedis(t, server.Addr)
			f.pass(time.Since(f.now()))
			f.change(open)
			r := &rounds{Reach: f.line}
			var opened atomic.Bool
			s := f.serve(func(o *api.Options) {
				o.Reach = r
				o.Observer.FailedOpen = func(string, bool) { opened.Store(true) }
			})
			s.run()
			f.eventually("it is watched", func() bool { return r.looked.Load() > 0 })
			direct := redis.NewClient(&redis.Options{Addr: server.Addr})
			t.Cleanup(func() { _ = direct.Close() })
			make(server, direct)
			seen := r.looked.Load()
			f.eventually("four times the grace are over", func() bool {
				if a := s.post(); a.status == http.StatusOK {
					t.Error("somebody has passed")
				}
				return r.looked.Load() >= seen+5
			})
			require.Zero(t, r.refused.Load())
			require.False(t, opened.Load())
			server.Resume()
			server.Kill()
		})
	}
}

func TestAClosedRoomStaysClosedBesideOneThatFailsOpen(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	f := onRedis(t, server.Addr)
	f.pass(time.Since(f.now()))
	f.change(open)
	_, err := f.rooms.Create(t.Context(), "strict", room.Defaults(), operator)
	require.NoError(t, err)
	life, err := f.rooms.Begin(t.Context(), "strict", 0)
	require.NoError(t, err)
	require.NoError(t, f.line.Create(t.Context(), life))
	s := f.serve()
	s.run()
	server.Kill()
	f.eventually("the other room fails open", func() bool { return s.post().status == http.StatusOK })
	require.NoError(t, s.unavailable(withoutRedis, "POST", "/v1/rooms/strict/entries"))
	require.NoError(t, s.unavailable(withoutRedis, "GET", "/v1/rooms/strict"))
}

// TestATokenOfTheLineOrdersOnceBesideAProcessThatIsCutOff: the one claims, the
// other can't, and Postgres decides.
func TestATokenOfTheLineOrdersOnceBesideAProcessThatIsCutOff(t *testing.T) {
	t.Parallel()
	f, cut, _ := away(t, func(s *room.Settings) { s.BatchSize = 1000 })
	tokens := make([]string, 12)
	for i := range tokens {
		_, tokens[i] = f.ready()
	}
	var both sync.WaitGroup
	for _, text := range tokens {
		for _, s := range []*site{f.site, cut, f.site, cut} {
			both.Go(func() {
				a, err := s.try(t.Context(), "POST", "/v1/orders", body(`{"items":`+oneA+`}`), token(text))
				if err != nil || a.status != 200 && a.status != 201 && a.status != 409 {
					t.Errorf("%d %v %s", a.status, err, a.body)
				}
			})
		}
	}
	both.Wait()
	require.Equal(t, len(tokens), f.placed())
	for _, text := range tokens {
		require.Equal(t, f.order(oneA, token(text)).is(http.StatusOK).order().ID, cut.order(oneA, token(text)).is(http.StatusOK).order().ID)
	}
}

// TestWhatEndsAGrantEndsItWithoutAClaimToo: what a claim would have seen to, the
// transaction does, and the answer is the same for ever.
func TestWhatEndsAGrantEndsItWithoutAClaimToo(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fixture, g queue.Grant){
		"void": func(f *fixture, g queue.Grant) { _, err := f.orders.Void(f.t.Context(), g); require.Error(f.t, err) },
		"evicted": func(f *fixture, g queue.Grant) {
			require.NoError(f.t, f.rooms.Evict(f.t.Context(), f.room, room.Subject{Member: g.Member}, operator))
		},
		"flushed": func(f *fixture, _ queue.Grant) {
			_, err := f.rooms.Flush(f.t.Context(), f.room, operator)
			require.NoError(f.t, err)
		},
		"lost": func(f *fixture, _ queue.Grant) {
			_, err := f.rooms.Begin(f.t.Context(), f.room, f.life.Generation)
			require.NoError(f.t, err)
		},
		"over": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t, settings(open))
			f.pass(time.Since(f.now()))
			if name == "over" {
				f.pass(-time.Hour) // so the token has ended by the clock of Postgres
			}
			_, text := f.ready()
			g, err := f.ring.Grant(text)
			require.NoError(t, err)
			cut, _ := f.cut()
			f.eventually("the room fails open", func() bool { return isOpen(cut.call("GET", "/v1/rooms/"+f.room)) })
			if end != nil {
				end(f, g)
			}
			for range 2 {
				cut.order(oneA, token(text)).refused(http.StatusUnauthorized, "entry-token-invalid")
			}
			require.Zero(t, f.placed())
			_, err = f.orders.ByGrant(t.Context(), g.ID)
			require.ErrorIs(t, err, order.ErrTokenInvalid, "a transaction that is still on its way would meet a void row")
		})
	}
}
