package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// orders are requests to be sent once each, or, where they are anybody's, by turns.
type orders struct {
	requests [][]byte
	again    bool
	at       atomic.Int64
	placed   atomic.Int64
}

// next implements traffic.
func (o *orders) next(int) ([]byte, int) {
	i := int(o.at.Add(1) - 1)
	if o.again {
		i %= len(o.requests)
	}
	if i >= len(o.requests) {
		return nil, 0
	}
	return o.requests[i], i
}

var oneOf = []byte(`"quantity":1`)

// check implements traffic.
func (o *orders) check(id, status int, body []byte) error {
	if status != http.StatusCreated {
		return wrongStatus(status, http.StatusCreated, body)
	}
	o.placed.Add(1)
	if looksInto(id) && !bytes.Contains(body, oneOf) {
		return fmt.Errorf("no order in the answer: %.300s", body)
	}
	return nil
}

func (o *orders) left() int { return max(len(o.requests)-int(o.at.Load()), 0) }

func post(headers, sku string) []byte {
	body := `{"items":[{"sku":"` + sku + `","quantity":1}]}`
	return fmt.Appendf(nil, "POST /v1/orders HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\n"+
		"Content-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", headers, len(body), body)
}

const shopRoom = "shop"

// shop hands out the right to order.
type shop struct {
	*world
}

func (w *world) openShop(ctx context.Context) (*shop, error) {
	if _, err := w.openRoom(ctx, shopRoom, func(s *room.Settings) { s.BatchSize, s.IntervalMs = 10_000, 100 }); err != nil {
		return nil, err
	}
	for _, db := range []*pgxpool.Pool{w.db, w.bareDB} {
		_, err := db.Exec(ctx, `INSERT INTO products (sku, stock, price_cents, currency)
			SELECT 'p' || i, 1000000000, 100, 'EUR' FROM generate_series(0, 99) i UNION ALL SELECT 'hot', 1000000000, 100, 'EUR'`)
		if err != nil {
			return nil, err
		}
	}
	return &shop{w}, nil
}

// tokens lets n members through by the product's own scheduler, and picks their
// grants up.
func (s *shop) tokens(ctx context.Context, n int) ([]string, error) {
	members, err := fill(ctx, s.rdb, shopRoom, n)
	if err != nil {
		return nil, err
	}
	ids := make([]string, n)
	for i, m := range members {
		ids[i] = m.id
	}
	out := make([]string, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for from := 0; from < n; from += 500 {
		to := min(from+500, n)
		g.Go(func() error { return s.pickUp(ctx, ids[from:to], out[from:to]) })
	}
	return out, g.Wait()
}

func (s *shop) pickUp(ctx context.Context, members, tokens []string) error {
	var records []any
	err := eventually(ctx, "grants are issued", func() (bool, error) {
		var err error
		records, err = s.rdb.HMGet(ctx, key(shopRoom, "grants"), members...).Result()
		for _, r := range records {
			if r == nil {
				return false, err
			}
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	for i, r := range records {
		id, _, _ := strings.Cut(fmt.Sprint(r), " ")
		g, err := s.line.PickUp(ctx, queue.Grant{ID: id, Room: shopRoom, Member: members[i]}, s.ring.SigningKeyID())
		if err != nil {
			return err
		}
		token, err := s.ring.SignGrant(g)
		if err != nil {
			return err
		}
		tokens[i] = token.Reveal()
	}
	return nil
}

// refill makes sure that there are orders for a turn: half as many again as the
// fastest turn yet has needed.
func (s *shop) refill(o *orders, sku func(i int) string) func(context.Context) error {
	most, before := 5_000, int64(0)
	return func(ctx context.Context) error {
		most = max(most, int(o.placed.Load()-before)*3/2)
		before = o.placed.Load()
		if missing := most - o.left(); missing > 0 {
			tokens, err := s.tokens(ctx, missing)
			if err != nil {
				return err
			}
			for i, t := range tokens {
				o.requests = append(o.requests, post(address(i)+"X-Entry-Token: "+t+"\r\n", sku(i)))
			}
		}
		return nil
	}
}

// delivered waits until the relay has nothing left to do: what it does is a part
// of an order, and not to be done in the turn of somebody else.
func (s *shop) delivered(ctx context.Context) error {
	return eventually(ctx, "the outbox is empty", func() (bool, error) {
		var n int
		err := s.db.QueryRow(ctx, "SELECT count(*) FROM outbox WHERE status = 'pending'").Scan(&n)
		return n == 0, err
	})
}

// orderContest is product and bare, with orders of one piece each.
func (s *shop) orderContest(ctx context.Context, name string, sku func(i int) string) (Contest, error) {
	product, bare := &orders{}, &orders{again: true}
	for i := range 100 {
		bare.requests = append(bare.requests, post(address(i)+memberHeader+": "+credential.NewMember()+"\r\n", sku(i)))
	}
	was, bareWas, err := s.sold(ctx)
	if err != nil {
		return Contest{}, err
	}
	c, err := s.contest(ctx, name, 64,
		side{name: "product", servers: only(s.product), load: product,
			before: s.refill(product, sku), after: s.delivered},
		side{name: "bare", servers: only(s.others["bare"]), load: bare},
	)
	if err != nil {
		return c, err
	}
	is, bareIs, err := s.sold(ctx)
	if err == nil && (is-was != product.placed.Load() || bareIs-bareWas != bare.placed.Load()) {
		err = fmt.Errorf("%d orders and %d of bare for %d and %d answers", is-was, bareIs-bareWas, product.placed.Load(), bare.placed.Load())
	}
	return c, err
}

// sold is how many orders there are, in each database; an error, if the stock that
// is gone says otherwise.
func (s *shop) sold(ctx context.Context) (product, bare int64, err error) {
	counts := [2]int64{}
	for i, db := range []*pgxpool.Pool{s.db, s.bareDB} {
		var pieces int64
		err := db.QueryRow(ctx, `SELECT (SELECT count(*) FROM orders WHERE NOT void), (SELECT coalesce(sum(1000000000 - stock), 0) FROM products)`).
			Scan(&counts[i], &pieces)
		if err != nil {
			return 0, 0, err
		}
		if pieces != counts[i] {
			return 0, 0, fmt.Errorf("%d orders, and %d pieces sold", counts[i], pieces)
		}
	}
	return counts[0], counts[1], nil
}

func hundred(i int) string { return fmt.Sprint("p", i%100) }

func hot(int) string { return "hot" }
