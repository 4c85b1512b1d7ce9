package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// breakerOpen is how long requests are refused after Redis is back.
const breakerOpen = 3 * time.Second

// redIn is when a process without a part wants no more requests.
const redIn = 5 * time.Second

func TestRedisKilledAndBackLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	r := harness.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
	w := onRedis(t, r)
	a, b := w.pair()
	require.Empty(t, a.logged(noAppendOnlyFile), "this Redis has an append-only file")
	w.open(settings{"claimLeaseSeconds": 11})
	w.openRoom("still", settings{"paused": true})
	var still, late []*shopper
	for range 5 {
		s := w.shopper()
		s.admitted(a)
		late = append(late, s)
		s = &shopper{w: w, t: t, room: "still"}
		s.enter(b).is(201)
		still = append(still, s)
	}
	c := (&crowd{w: w, at: turns(a, b), ordering: true, mayFail: unavailable}).come(6)
	c.goesOn(12)

	r.Kill()
	killed, failed := time.Now(), c.failures()
	for i, p := range []*process{a, b} {
		for _, got := range []answer{w.shopper().enter(p), late[i].poll(p), late[i].order(p, "demo", 1), late[i+2].order(p, "demo", 1)} {
			got.is(503, "unavailable")
			require.NotEmpty(t, got.header.Get("Retry-After"))
		}
		w.ask("GET", p.public+"/livez", nil, "").is(200)
	}
	w.untilHealth(redIn+slack, 503, a, b)
	require.Greater(t, time.Since(killed), redIn/2, "a short interruption must not make a process red")
	require.Greater(t, c.failures(), failed, "the crowd has not noticed the outage")

	back := time.Now()
	require.NoError(t, r.Start())
	harness.Eventually(t, 5*time.Second+slack, "the scheduler ticks again", func() bool {
		got := w.operate("GET", roomPath("snapshot"), nil)
		return got.status == 200 && decoded[snapshot](got).TickedAt.After(back)
	})
	w.untilHealth(redIn, 200, a, b)
	harness.Eventually(t, breakerOpen+slack, "the breakers let requests through", func() bool {
		return still[0].poll(a).status == 200 && still[0].poll(b).status == 200
	})
	for i, s := range late {
		s.order([]*process{b, a}[i%2], "demo", 1).is(201) // and not 200: there was none before
	}
	for rank, s := range still {
		require.EqualValues(t, rank, *s.poll(a).is(200).position().Rank)
	}
	c.goesOn(12)
	c.verify(b)
	orders := c.ordered() + len(late)
	require.Equal(t, orders, w.placed(), "an order without an acknowledgement, or the other way round")
	// An order without a claim would have no grant to consume.
	w.conserved(w.untilSnapshot("every order has consumed a grant", func(s snapshot) bool {
		return s.Counters["consumed"] == int64(orders)
	}))
}

func TestPostgresKilledAndBackPausesAdmissionByItself(t *testing.T) {
	t.Parallel()
	pg := harness.PostgresServer(t)
	w := onPostgres(t, pg)
	a, b := w.pair()
	w.open(settings{"batchSize": 5, "pickupTtlSeconds": 120})
	var late []*shopper
	for range 4 {
		s := w.shopper()
		s.admitted(a)
		late = append(late, s)
	}
	line := w.line(150, a, b)
	w.untilSnapshot("the line moves", func(s snapshot) bool { return s.admitted() > 10 })

	pg.Kill()
	leader := w.leader()
	harness.Eventually(t, patience, "the leader notices", func() bool {
		return len(leader.logged("progress can't be written, nobody is let through")) > 0
	})
	admitted := w.snapshotAt(leader).admitted()
	newcomers := w.line(20, a, b)
	scores := map[*shopper]int64{}
	for i, s := range append(newcomers, line[130:]...) {
		scores[s] = *s.poll([]*process{a, b}[i%2]).is(200).position().Score
	}
	for i, s := range late {
		got := s.order([]*process{a, b}[i%2], "demo", 1)
		require.True(t, unavailable(got), "%d %v %s", got.status, got.err, got.body)
	}
	w.untilHealth(redIn+slack, 503, a, b)
	require.Equal(t, admitted, w.snapshotAt(leader).admitted(), "somebody is let through although Postgres can't know")
	for _, s := range newcomers {
		require.Equal(t, queue.Waiting, s.poll(a).is(200).position().Status)
	}
	w.shopper().enter(b).is(201)

	require.NoError(t, pg.Start())
	harness.Eventually(t, 5*time.Second+slack, "admission goes on", func() bool {
		return w.snapshotAt(a).admitted() > admitted
	})
	w.untilHealth(redIn, 200, a, b)
	for i, s := range late {
		var got answer
		harness.Eventually(t, patience, "the order is placed", func() bool {
			got = s.order([]*process{b, a}[i%2], "demo", 1)
			return !unavailable(got)
		})
		require.Contains(t, []int{200, 201}, got.status, "%s", got.body)
	}
	require.Equal(t, len(late), w.placed())
	w.patch(a, settings{"batchSize": 500})
	for s, score := range scores {
		require.Equal(t, score, *s.until(b, queue.Ready).Score, "a place was lost")
	}
	w.conserved(w.snapshot())
}

// Cases 40 and 55 as well: a full Redis refuses new places and nothing else.
func TestFullRedisTurnsAwayNewcomersAndServesTheRest(t *testing.T) {
	t.Parallel()
	r := harness.RedisServer(t)
	w := onRedis(t, r)
	a, b := w.pair()
	direct := redis.NewClient(&redis.Options{Addr: r.Addr})
	t.Cleanup(func() { _ = direct.Close() })
	used := func() (n int64) {
		info, err := direct.InfoMap(t.Context(), "memory").Result()
		require.NoError(t, err)
		_, err = fmt.Sscan(info["Memory"]["used_memory"], &n)
		require.NoError(t, err)
		return n
	}
	limit := func(bytes int64) {
		require.NoError(t, direct.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(bytes)).Err())
	}
	w.open(settings{"batchSize": 2, "intervalMs": 60_000})
	ann, bob, cy, dan := w.shopper(), w.shopper(), w.shopper(), w.shopper()
	for _, s := range []*shopper{ann, bob, cy, dan} {
		s.enter(a).is(201)
	}
	w.untilSnapshot("ann and bob are admitted", func(s snapshot) bool { return s.admitted() == 2 })

	w.untilSnapshot("the leader closes the door before Redis is full", func(s snapshot) bool {
		limit(used() * 106 / 100) // what scripts and connections take comes and goes
		return s.MemoryFull
	})
	w.shopper().enter(b).is(429, "room-full")
	require.NoError(t, direct.Set(t.Context(), "room", "for the rest", 0).Err(), "Redis is full already")
	limit(used() / 2)
	full := w.shopper().enter(a).is(429, "room-full")
	require.NotEmpty(t, full.header.Get("Retry-After"))
	require.Equal(t, queue.Ready, ann.poll(b).is(200).position().Status, "a token must be picked up all the same")
	ann.order(b, "demo", 1).is(201)
	ann.until(a, queue.Consumed)
	dan.leave(b).is(204)
	began := time.Now()
	harness.Eventually(t, 2*patience, "a process would be red by now", func() bool {
		for _, p := range []*process{a, b} {
			require.Equal(t, 200, w.health(p), "a full Redis is busy and not down")
			require.EqualValues(t, 0, *cy.poll(p).is(200).position().Rank)
			cy.enter(p).is(200) // who has a place keeps it
			w.shopper().enter(p).is(429, "room-full")
		}
		return time.Since(began) > redIn+time.Second
	})
	limit(0)
	harness.Eventually(t, patience, "the door is open again", func() bool { return w.shopper().enter(b).status == 201 })
	w.conserved(w.snapshot())
}
