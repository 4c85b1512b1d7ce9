package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
)

// enters are newcomers, each from an address of their own. A request is one
// template with a number written over it.
type enters struct {
	bufs  [][]byte // per connection
	at    int      // where the digits are
	write func(digits []byte, n uint64)
	want  []byte // in every body
	count *atomic.Uint64
	done  atomic.Uint64
}

var waiting = []byte(`"status":"WAITING"`)

// maxConns is more than any contest has.
const maxConns = 256

// newEnters makes the traffic of a template that holds mark, where the number goes.
func newEnters(template, mark string, count *atomic.Uint64, want []byte) *enters {
	e := &enters{at: bytes.Index([]byte(template), []byte(mark)), count: count, want: want}
	for range maxConns {
		e.bufs = append(e.bufs, []byte(template))
	}
	return e
}

// next implements traffic.
func (e *enters) next(conn int) ([]byte, int) {
	n := e.count.Add(1)
	e.write(e.bufs[conn][e.at:], n)
	return e.bufs[conn], int(n)
}

// check implements traffic.
func (e *enters) check(id, status int, body []byte) error {
	if status != http.StatusCreated {
		return wrongStatus(status, http.StatusCreated, body)
	}
	e.done.Add(1)
	if looksInto(id) && !bytes.Contains(body, e.want) {
		return fmt.Errorf("no %s in the answer: %.300s", e.want, body)
	}
	return nil
}

// addressDigits writes n over 100.100.100.100, so that every part stays between
// 100 and 199: a hundred million addresses.
func addressDigits(b []byte, n uint64) {
	for part := 3; part >= 0; part-- {
		two := n % 100
		b[part*4+1], b[part*4+2] = '0'+byte(two/10), '0'+byte(two%10)
		n /= 100
	}
}

// memberDigits writes n over the last digits of a member's id.
func memberDigits(b []byte, n uint64) {
	for i := 9; i >= 0; i-- {
		b[i] = '0' + byte(n%10)
		n /= 10
	}
}

// enterRoom is the traffic of strangers to a room of the product, or of plain.
func enterRoom(room string, count *atomic.Uint64) *enters {
	e := newEnters("POST /v1/rooms/"+room+"/entries HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\n"+
		"X-Forwarded-For: 100.100.100.100\r\nContent-Length: 0\r\n\r\n", "100.100.100.100", count, waiting)
	e.write = addressDigits
	return e
}

// enterNaive is the same for the naive line, which is told who enters.
func enterNaive(room string, count *atomic.Uint64) *enters {
	e := newEnters("POST /v1/rooms/"+room+"/entries HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\n"+
		"X-Forwarded-For: 100.100.100.100\r\n"+memberHeader+": newcomer-xx-0123456789\r\nContent-Length: 0\r\n\r\n", "0123456789", count, waiting)
	e.write = memberDigits
	return e
}

const doorRoom = "door"

// enterContest is product, plain and naive, with newcomers to a room that was
// empty. Afterwards the lines must be as long as there were answers.
func (w *world) enterContest(ctx context.Context) (Contest, error) {
	const name = doorRoom
	if _, err := w.openRoom(ctx, name, slow); err != nil {
		return Contest{}, err
	}
	product, naive := enterRoom(name, &w.newcomers), enterNaive(name, new(atomic.Uint64))
	c, err := w.contest(ctx, "enter_64", 64,
		side{name: "product", servers: only(w.product), load: product},
		side{name: "plain", servers: only(w.others["plain"]), load: enterRoom(name, new(atomic.Uint64))},
		side{name: "naive", servers: only(w.others["naive"]), load: naive},
	)
	if err != nil {
		return c, err
	}
	snap, err := w.line.Snapshot(ctx, name)
	if err != nil {
		return c, err
	}
	if got, want := snap.Counters["entered"], int64(product.done.Load()); got != want {
		return c, fmt.Errorf("%d have entered, and %d were told so", got, want)
	}
	n, err := w.rdb.ZCard(ctx, naivePrefix(name)+":waiting").Result()
	if want := int64(naive.done.Load()); err == nil && n != want {
		err = fmt.Errorf("naive: %d have entered, and %d were told so", n, want)
	}
	return c, err
}
