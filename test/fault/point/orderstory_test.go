//go:build faults

package point_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/fault/point"
)

// till is where orders are placed in a story: on Postgres alone.
type till struct {
	context.Context
	*pgstore.Store
	pool *pgxpool.Pool
	told string
}

// orderStory is a story in which one mutant in Go shows.
type orderStory struct {
	mutant       string
	tell         func(s *till)
	sound, wrong string
}

func newTill(ctx context.Context, dsn string) *till {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		panic(err)
	}
	pgstore.Configure(c)
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		return abortingConn{conn}, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		panic(err)
	}
	s := &till{Context: ctx, pool: pool, Store: pgstore.New(pool, pgstore.Options{})}
	s.exec(`INSERT INTO products (sku, stock, price_cents, currency) VALUES ('demo', 100, 5, 'EUR') ON CONFLICT DO NOTHING`)
	return s
}

func (s *till) say(v ...any) { s.told += fmt.Sprint(v...) }

func (s *till) exec(sql string, args ...any) {
	if _, err := s.pool.Exec(s, sql, args...); err != nil {
		panic(err)
	}
}

func (s *till) count(sql string) (n int) {
	if err := s.pool.QueryRow(s, "SELECT count(*) FROM "+sql).Scan(&n); err != nil {
		panic(err)
	}
	return n
}

// draft is an order for a grant, under a new name.
func (s *till) draft(grant string) order.Order {
	return order.Order{ID: uuid.NewString(), Grant: grant, Room: "r", Sale: 1, Generation: 1, Member: "ann",
		Items: []order.Item{{SKU: "demo", Quantity: 1}}}
}

// abortCommits has abortingConn turn COMMIT into ROLLBACK.
var abortCommits bool

// abortingConn makes the server end a transaction as it ends one that has met an
// error which nobody has read: it answers COMMIT with ROLLBACK.
type abortingConn struct{ net.Conn }

// Write implements net.Conn.
func (c abortingConn) Write(p []byte) (int, error) {
	if !abortCommits {
		return c.Conn.Write(p)
	}
	out := bytes.Replace(p, query("commit"), query("rollback"), 1)
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// query is a Query message of the protocol.
func query(sql string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(len(sql)+5)), sql+"\x00"...)
}

// ledger stands in for both sides of an order: Claim and Create end as they are
// told to.
type ledger struct {
	claim, create error
	released      bool
	voided        bool
}

func (l *ledger) Claim(context.Context, queue.Grant, string, time.Duration) error { return l.claim }

func (l *ledger) Release(context.Context, queue.Grant, string) error {
	l.released = true
	return nil
}

func (l *ledger) Create(context.Context, order.Order) (order.Order, error) {
	return order.Order{}, l.create
}

func (l *ledger) ByGrant(context.Context, string) (order.Order, error) {
	return order.Order{}, order.ErrNotFound
}

func (l *ledger) Void(context.Context, queue.Grant) (order.Order, error) {
	l.voided = true
	return order.Order{}, order.ErrTokenInvalid
}

func (l *ledger) place(ctx context.Context) error {
	_, err := order.New(l, l, order.Options{}).Place(ctx, order.Request{
		Grant: queue.Grant{ID: "g", Room: "r", Member: "ann"}, Items: []order.Item{{SKU: "demo", Quantity: 1}}, Lease: time.Minute})
	return err
}

// heard is a sink that keeps the orders whose events it gets.
type heard chan string

func (h heard) Deliver(_ context.Context, _ string, events []outbox.Event) error {
	for _, e := range events {
		h <- e.OrderID
	}
	return nil
}

var orderStories = []orderStory{
	{"no-unique-grant", func(s *till) {
		grant := uuid.NewString()
		for range 2 {
			if _, err := s.Create(s, s.draft(grant)); err != nil {
				panic(err)
			}
		}
		_, err := s.Void(s, queue.Grant{ID: uuid.NewString(), Room: "r", Member: "ann"})
		s.say(s.count("orders WHERE NOT void"), " orders, void: ", err)
	}, "1 orders, void: " + order.ErrTokenInvalid.Error(), "2 orders, void: " + order.ErrTokenInvalid.Error()},

	{"commit-tag-ignored", func(s *till) {
		abortCommits = true
		_, err := s.Create(s, s.draft(uuid.NewString()))
		s.say("placed: ", err == nil, ", kept: ", s.count("orders"))
	}, "placed: false, kept: 0", "placed: true, kept: 0"},

	{"event-after-commit", func(s *till) {
		point.SetHandler(func(_ context.Context, name string) {
			if name == "O7-committed" {
				s.say(s.count("orders"), " order, ", s.count("outbox"), " event")
			}
		})
		if _, err := s.Create(s, s.draft(uuid.NewString())); err != nil {
			panic(err)
		}
		s.say(", then ", s.count("outbox"))
	}, "1 order, 1 event, then 1", "1 order, 0 event, then 1"},

	{"group-answers-first", func(s *till) {
		held, free := make(chan struct{}, 100), make(chan struct{})
		point.SetHandler(func(_ context.Context, name string) {
			if name == "O4-begun" {
				held <- struct{}{}
				<-free
			}
		})
		for range 2 { // they have both slots
			go func() { _, _ = s.Create(s, s.draft(uuid.NewString())) }()
			<-held
		}
		answers := make([]chan error, 2)
		for i, sku := range []string{"demo", "nothing"} {
			o := s.draft(uuid.NewString())
			o.Items[0].SKU, answers[i] = sku, make(chan error, 1)
			go func() {
				_, err := s.Create(s, o)
				answers[i] <- err
			}()
			time.Sleep(100 * time.Millisecond) // until it is in line
		}
		close(free)
		s.say("placed: ", <-answers[0] == nil, ", placed: ", <-answers[1] == nil)
	}, "placed: true, placed: false", "placed: true, placed: true"},

	{"id-cursor-outbox", func(s *till) {
		var ids []string
		for range 3 {
			o, err := s.Create(s, s.draft(uuid.NewString()))
			if err != nil {
				panic(err)
			}
			ids = append(ids, o.ID)
		}
		// As after the commits of the second and the first, in this order.
		s.exec(`UPDATE outbox SET status = 'done', done_at = now() WHERE order_id = $1`, ids[1])
		ctx, stop := context.WithCancel(s)
		defer stop()
		got := make(heard, 10)
		go func() { _ = outbox.NewRelay(s.pool, got, outbox.Options{}).Run(ctx) }()
		for id := range got {
			if id == ids[0] {
				s.say("the first, ")
			}
			if id == ids[2] {
				s.say("the third")
				return
			}
		}
	}, "the first, the third", "the third"},

	{"release-on-unknown", func(s *till) {
		l := &ledger{create: order.ErrOutcomeUnknown}
		s.say(l.place(s) != nil, ", released: ", l.released)
	}, "true, released: false", "true, released: true"},

	{"gone-without-void", func(s *till) {
		l := &ledger{claim: queue.ErrGone}
		s.say(l.place(s) != nil, ", voided: ", l.voided)
	}, "true, voided: true", "true, voided: false"},
}
