//go:build faults

package verify

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/draw/closing"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/scheduler"
)

// node is one process of the product, wired as serve wires it, in this one.
type node struct {
	w       *world
	name    string
	skew    time.Duration // of its own clock
	dead    atomic.Bool
	leaving atomic.Bool // takes no new requests
	stop    context.CancelFunc
	running sync.WaitGroup
	serving sync.WaitGroup

	rdb          *redis.Client
	money, books *pgxpool.Pool
	line         *redisstore.Store
	rooms        *roomstore.Store
	orders       *orderstore.Store
	api          http.Handler

	mu    sync.Mutex
	conns []net.Conn
}

// nodeKey finds, in a context, the node on whose behalf something is done.
type nodeKey struct{}

// startNode starts a process. Nothing of the one that had the name before is
// known to it.
func (w *world) startNode(name string) *node {
	n := &node{w: w, name: name, skew: time.Duration(w.rnd.IntN(1200)-600) * time.Second}
	o := *w.redis
	n.rdb = redis.NewClient(&o)
	n.rdb.AddHook(redisHook{n, w})
	var err error
	if n.money, err = w.pool(n, orderstore.Configure, 8); err != nil {
		w.t.Fatal(err)
	}
	if n.books, err = w.pool(n, orderstore.Configure, 6); err != nil {
		w.t.Fatal(err)
	}
	n.line = redisstore.New(n.rdb, w.prefix, redisstore.WithClock(w.redisTime))
	n.rooms = roomstore.New(n.books)
	relay := outbox.NewRelay(n.books, sink{n.line}, outbox.Options{Poll: time.Second})
	n.orders = orderstore.New(n.money, orderstore.Options{Committed: relay.Poke, Group: n.w.plan.group})
	a := n.publicAPI()
	n.api = a.Handler()

	ctx, stop := context.WithCancel(context.WithValue(context.Background(), nodeKey{}, n))
	n.stop = stop
	for _, run := range []func(context.Context) error{a.Run, relay.Run, n.scheduler().Run} {
		n.running.Go(func() { _ = run(ctx) })
	}
	return n
}

func (n *node) publicAPI() *api.API {
	return api.New(api.Options{
		Line: n.line, Returns: n.line, Snapshots: n.line, Hearer: n.line, Health: n.line, Books: n.rooms, Draws: n.rooms,
		Orders: order.New(n.line, n.orders, order.Options{}), OrderBook: n.orders, Ring: n.w.ring,
		MemberHeader: true, Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
}

func (n *node) scheduler() *scheduler.Scheduler {
	var lock scheduler.Lock
	ttl := lockTTL
	if n.w.plan.locked {
		lock = n.w.lock.of(n)
	} else {
		ttl = 0
	}
	return scheduler.New(scheduler.Config{
		Line: n.line, Batches: n.line, Rooms: n.line, Books: n.rooms, Admissions: n.rooms, Terms: n.line.Terms(),
		Draws: closing.Closer{Line: n.line, Books: n.rooms},
		Lock:  lock, TTL: ttl, Leader: n.name + "-" + credential.NewMember(), NewGrant: credential.NewGrantID,
		Log: slog.New(slog.DiscardHandler),
	})
}

// sink ends the grants of orders, as serve does.
type sink struct{ line *redisstore.Store }

func (s sink) Deliver(ctx context.Context, room string, events []outbox.Event) error {
	spent := make([]queue.Spent, len(events))
	for i, e := range events {
		c, err := e.Consume()
		if err != nil {
			return err
		}
		spent[i] = queue.Spent{Member: c.Member, Grant: c.Grant, Order: e.OrderID}
	}
	_, err := s.line.Consume(ctx, room, spent)
	return err
}

func (n *node) crashed() bool { return n.dead.Load() }

// keep notes a connection, to be cut in a crash.
func (n *node) keep(c net.Conn) net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, c)
	return c
}

// crash ends a node as SIGKILL does: what it has sent may still be carried out,
// and nothing else of it ever reaches anybody.
func (n *node) crash() {
	n.dead.Store(true)
	n.w.gate.dismiss(n)
	n.cutPostgres()
	n.stop()
}

// cutPostgres ends the connections that the node has, as a server that goes
// away does.
func (n *node) cutPostgres() {
	n.mu.Lock()
	conns := slices.Clone(n.conns)
	n.conns = nil
	n.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// wait returns when nothing of the node runs any more. It comes after crash, or
// after stop and the end of all requests.
func (n *node) wait() {
	n.running.Wait()
	_ = n.rdb.Close()
	n.money.Close()
	n.books.Close()
}
