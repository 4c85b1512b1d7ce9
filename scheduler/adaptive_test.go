package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// shop is a house whose room follows its orders, with people who order at once
// by way of several processes. A round takes half a second there instead of five.
type shop struct {
	*house
	ring *credential.Ring
	apis []*api.API
	ends context.CancelFunc
	all  sync.WaitGroup
	sent atomic.Int64
}

const (
	shortRound = 500 * time.Millisecond
	shopBatch  = 20 // per 200 ms; a room begins with half of it
)

func openShop(t *testing.T, rdb *redis.Client, db *pgxpool.Pool, processes int) *shop {
	t.Helper()
	s := &shop{house: on(t, rdb, db, rate(shopBatch, 200*time.Millisecond), func(s *room.Settings) {
		s.Adaptive, s.MaxWaiting = true, 100_000
	})}
	_, err := db.Exec(t.Context(), `INSERT INTO products (sku, stock, price_cents, currency) VALUES ('a', 1000000, 100, 'EUR')`)
	require.NoError(t, err)
	s.ring, err = credential.ParseRing(credential.GenerateKey())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s.ends = stop
	// What is slow here is each order by itself, so groups would gain nothing.
	orders := orderstore.New(db, orderstore.Options{Group: 1})
	for range processes {
		a := api.New(api.Options{
			Line: s.Store, Returns: s.Store, Snapshots: s.Store, Hearer: s.Store, Health: s.Store, Books: s.books,
			Orders: order.New(s.Store, orders, order.Options{}), OrderBook: orders, Ring: s.ring,
			MemberHeader: true, Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		})
		s.apis = append(s.apis, a)
		s.all.Go(func() { _ = a.Run(ctx) })
	}
	s.all.Go(func() { s.sell(ctx) })
	t.Cleanup(s.close)
	return s
}

func (s *shop) close() {
	s.ends()
	s.all.Wait()
}

// sell keeps people in line, and has each who is let through order at once.
func (s *shop) sell(ctx context.Context) {
	known, n := map[string]bool{}, 0
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		snap, err := s.Snapshot(ctx, theRoom)
		if err != nil {
			continue
		}
		for i := snap.Waiting(); i < 200; i++ {
			n++
			_, _ = s.Enter(ctx, theRoom, fmt.Sprintf("p%06d", n), 0)
		}
		ready, _ := s.rdb.ZRange(ctx, s.prefix+":{"+theRoom+"}:ready", 0, -1).Result()
		for _, member := range ready {
			if !known[member] {
				known[member] = true
				s.all.Go(func() { s.buy(ctx, member) })
			}
		}
	}
}

func (s *shop) buy(ctx context.Context, member string) {
	st, err := s.Standing(ctx, theRoom, member)
	if err != nil || st.Status != queue.Ready {
		return
	}
	g, err := s.PickUp(ctx, st.Grant, s.ring.SigningKeyID())
	if err != nil {
		return
	}
	token, err := s.ring.SignGrant(g)
	if err != nil {
		return
	}
	r := httptest.NewRequest("POST", "/v1/orders", strings.NewReader(`{"items":[{"sku":"a","quantity":1}]}`))
	r = r.WithContext(context.WithoutCancel(ctx)) // nobody hangs up: of an order cut off at COMMIT nobody knows
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Member-Id", member)
	r.Header.Set("X-Entry-Token", token.Reveal())
	s.apis[int(s.sent.Add(1))%len(s.apis)].Handler().ServeHTTP(httptest.NewRecorder(), r)
}

// orderTrigger has each order first do what is said.
func (s *shop) orderTrigger(does string) {
	s.Helper()
	_, err := s.db.Exec(s.Context(), `CREATE OR REPLACE FUNCTION hinder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+does+`; RETURN NEW; END $$;
		CREATE OR REPLACE TRIGGER hinder BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION hinder()`)
	require.NoError(s, err)
}

func (s *shop) heal() {
	s.Helper()
	_, err := s.db.Exec(s.Context(), `DROP TRIGGER hinder ON orders`)
	require.NoError(s, err)
}

func (s *shop) inForce() int { return s.snapshot().InForce() }

func shortRounds(c *scheduler.Config) { c.Round = shortRound }

func TestASlowDatabaseBringsTheBatchDownAndAQuickOneUpAgain(t *testing.T) {
	t.Parallel()
	s := openShop(t, harness.Redis(t), harness.Database(t), 1)
	s.run("only", shortRounds)
	s.eventually(10*time.Second, "the room begins with half", func() bool { return s.inForceOr(0) == shopBatch/2 })
	s.orderTrigger(`PERFORM pg_sleep(1.1)`)
	s.eventually(30*time.Second, "slow orders bring it down", func() bool { return s.inForce() <= shopBatch/4 })
	require.NotContains(t, []string{"quiet", "fair"}, s.snapshot().Tuning.Verdict)
	s.heal()
	s.eventually(60*time.Second, "and quick ones up again", func() bool { return s.inForce() >= shopBatch/2 })
	require.LessOrEqual(t, s.inForce(), shopBatch)
}

// inForceOr is inForce, or what is given before the room has begun.
func (s *shop) inForceOr(n int) int {
	if snap, err := s.Snapshot(s.Context(), theRoom); err == nil {
		return snap.InForce()
	}
	return n
}

func TestADatabaseThatRefusesOrdersBringsTheBatchToOne(t *testing.T) {
	t.Parallel()
	s := openShop(t, harness.Redis(t), harness.Database(t), 1)
	s.run("only", shortRounds)
	s.eventually(10*time.Second, "orders go well", func() bool { return s.healthOr().Orders() > 20 })
	s.orderTrigger(`RAISE EXCEPTION 'no' USING ERRCODE = '53200'`)
	s.eventually(20*time.Second, "only one is let through per interval", func() bool { return s.inForce() == 1 })
	require.Positive(t, s.snapshot().Health.Failed)
	s.heal()
	s.eventually(60*time.Second, "more are", func() bool { return s.inForce() > 2 })
}

func (s *shop) healthOr() queue.Health {
	snap, _ := s.Snapshot(s.Context(), theRoom)
	return snap.Health
}

func TestOrdersOfAllProcessesAreCountedOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t, harness.Redis(t), harness.Database(t), 3)
	stop := s.run("only", shortRounds)
	s.eventually(20*time.Second, "some are placed", func() bool { return s.healthOr().Orders() > 50 })
	stop()
	s.close() // each process reports for the last time
	var placed int64
	require.NoError(t, s.db.QueryRow(t.Context(), `SELECT count(*) FROM orders WHERE NOT void`).Scan(&placed))
	health := s.snapshot().Health
	require.Equal(t, placed, health.Orders())
	mean := health.Delay / time.Duration(health.Attempts())
	require.Less(t, mean, 2*time.Second, "people here do not think, and tokens tell whole seconds")
}

func TestTheSuccessorOfAKilledLeaderGoesOnWithItsState(t *testing.T) {
	t.Parallel()
	s := openShop(t, harness.Redis(t), harness.Database(t), 1)
	const ttl = time.Second
	s.orderTrigger(`PERFORM pg_sleep(1.1)`)
	kill := s.run("dead", s.withTTL(ttl), shortRounds, func(c *scheduler.Config) { c.Lock = immortal{c.Lock} })
	s.eventually(30*time.Second, "the batch has come down", func() bool {
		n := s.inForceOr(0)
		return n > 0 && n <= shopBatch/3
	})
	s.run("next", s.withTTL(ttl), shortRounds)
	kill()
	was := s.snapshot().Tuning
	s.tickedBy("next", ttl+5*time.Second)
	require.Equal(t, fmt.Sprint(was.Batch), s.eff(), "its first tick works with the same batch")
	s.eventually(5*time.Second, "its rounds go on from there", func() bool { return s.snapshot().Tuning.Round > was.Round })
	require.LessOrEqual(t, s.inForce(), was.Batch, "slow orders do not raise it")
	var kept struct {
		State struct {
			Slow  bool
			Batch float64
		}
	}
	require.NoError(t, json.Unmarshal(s.snapshot().Tuning.Memory, &kept))
	// Where orders fail, too, on a busy machine, the batch has been brought to one.
	require.True(t, kept.State.Slow || kept.State.Batch == 1, "what has been learnt is not forgotten: %+v", kept)
}

// eff is the batch of the last reserve, as Redis has it.
func (s *shop) eff() string {
	s.Helper()
	text, err := s.rdb.HGet(s.Context(), s.prefix+":{"+theRoom+"}:state", "eff").Result()
	require.NoError(s, err)
	return text
}

func TestAfterAnOutageOfRedisTheRoomComesBackFromOne(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s := openShop(t, client(t, server.Addr), harness.Database(t), 1)
	s.run("only", s.withTTL(time.Second), shortRounds)
	s.eventually(10*time.Second, "orders go well", func() bool { return s.healthOr().Orders() > 20 && s.inForce() >= shopBatch/2 })
	before := s.snapshot().Tuning
	server.Kill()
	time.Sleep(4 * time.Second) // longer than a leader may take to be replaced
	require.NoError(t, server.Start())
	s.eventually(15*time.Second, "the room is let on from one", func() bool {
		snap, err := s.Snapshot(t.Context(), theRoom)
		return err == nil && snap.Tuning.Round > before.Round && snap.Tuning.Batch <= 2
	})
	s.eventually(60*time.Second, "and comes back", func() bool { return s.inForce() >= shopBatch/4 })
}
