//go:build faults

package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/history"
)

// patience is how long people wait for an answer.
const patience = 10 * time.Second

// person is one member: enters, polls as told, and orders. What exactly, their
// own seed decides.
type person struct {
	w      *world
	name   string
	number int
	tab    string // tells the person's browsers apart: each has one call open
	rnd    *rand.Rand
	ticket string
	token  string
	grant  string // id in the token
	forges bool   // shows a token that is not quite the one received
}

func (w *world) invite(i int) {
	p := &person{w: w, name: fmt.Sprintf("m%02d", i), number: i, rnd: rand.New(rand.NewPCG(w.seed, uint64(i)+1))}
	w.people.Go(func() {
		time.Sleep(w.plan.arrival(i, p.rnd))
		p.visit()
	})
}

// twin is the same person in another tab.
func (p *person) twin() *person {
	t := *p
	t.tab = p.tab + "'"
	t.rnd = rand.New(rand.NewPCG(p.rnd.Uint64(), 1))
	return &t
}

// chance is true with a probability of n in a hundred.
func (p *person) chance(n int) bool { return p.rnd.IntN(100) < n }

// visit is all that a person does, until the world ends.
func (p *person) visit() {
	for round := 0; !p.w.ending.Load() && round < 10; round++ {
		if !p.enter() {
			return
		}
		switch status := p.wait(); {
		case status == queue.Ready, status == queue.Claimed:
			p.shop()
		case status == left && p.w.plan.restless:
			p.sleep(time.Duration(p.rnd.IntN(2)*p.rnd.IntN(30)) * time.Second)
			continue
		default:
			return // gone, or the world has ended
		}
		// Some come again, at once or after a while.
		if round >= 2 || p.chance(60) {
			return
		}
		p.sleep(time.Duration(p.rnd.IntN(20)) * time.Second)
	}
}

// sleep returns early when the world ends.
func (p *person) sleep(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !p.w.ending.Load(); {
		time.Sleep(min(time.Until(end), time.Second))
	}
}

// enter asks until there is a definite answer; false if there is no place.
func (p *person) enter() bool {
	for !p.w.ending.Load() {
		if p.chance(10) { // a double click
			var twin sync.WaitGroup
			twin.Go(func() { p.twin().call(history.Enter, "POST", "") })
			a := p.call(history.Enter, "POST", "")
			twin.Wait()
			p.keep(a)
		} else {
			p.keep(p.call(history.Enter, "POST", ""))
		}
		if p.ticket != "" {
			return true
		}
		p.sleep(time.Duration(1+p.rnd.IntN(3)) * time.Second)
	}
	return false
}

// left is what wait returns for who has given up the place.
const left = queue.Status("LEFT")

// wait polls at the pace that is told, until the person may order, has gone, or
// is no longer in the room.
func (p *person) wait() queue.Status {
	vanishes, leaves := p.chance(10), p.chance(10)
	for polls := 0; !p.w.ending.Load(); polls++ {
		if vanishes && polls == 3 {
			return ""
		}
		if leaves && polls == 5 || p.w.plan.restless && p.chance(25) {
			p.call(history.Leave, "DELETE", "/me")
			return left
		}
		if p.w.plan.restless && p.chance(40) {
			other := p.twin()
			p.w.people.Go(func() { other.call(history.Poll, "GET", "/me") })
		}
		a := p.call(history.Poll, "GET", "/me")
		p.keep(a)
		switch pos := a.position; {
		case pos == nil:
			p.sleep(time.Second)
		case pos.Status == queue.Ready, pos.Status == queue.Claimed:
			return pos.Status
		case pos.Status == queue.Waiting:
			p.sleep(time.Duration(pos.NextPollAfterMs) * time.Millisecond)
		default:
			return ""
		}
	}
	return ""
}

// shop orders, sometimes twice at once, and repeats while nobody knows.
func (p *person) shop() {
	p.sleep(time.Duration(p.rnd.IntN(6)) * time.Second)
	if p.chance(15) {
		return // lets the token expire
	}
	if p.chance(10) {
		thief := p.twin()
		thief.forges = true
		thief.order("", 1)
	}
	key := ""
	if p.chance(50) {
		key = fmt.Sprintf("%s-%d", p.name, p.rnd.IntN(3))
	}
	n := 1 + p.rnd.IntN(2)
	if p.w.plan.singles {
		n = 1
	}
	for range 12 {
		if p.w.ending.Load() {
			return
		}
		var twin sync.WaitGroup
		if p.chance(20) {
			other := n
			if p.chance(20) && !p.w.plan.singles {
				other = 3 - n
			}
			twin.Go(func() { p.twin().order(key, other) })
		}
		a := p.order(key, n)
		twin.Wait()
		again := a.class == history.Unknown || a.code == "order-in-progress" || a.code == "unavailable" || p.w.plan.stubborn && a.code == "sold-out"
		if !again && !p.chance(15) { // some press the button once more
			return
		}
		p.sleep(time.Duration(1+p.rnd.IntN(3)) * time.Second)
	}
}

// answer is what a person learns from a call.
type answer struct {
	class    history.Type
	code     string
	position *spec.Position
}

func (p *person) keep(a answer) {
	if a.position == nil {
		return
	}
	if t := a.position.QueueTicket; t != nil {
		p.ticket = *t
	}
	if t := a.token(); t != "" {
		p.token = t
		if g, err := p.w.ring.Grant(p.token); err == nil {
			p.grant = g.ID
		}
	}
}

// call is one call about the person's place.
func (p *person) call(f history.F, method, path string) answer {
	r := httptest.NewRequest(method, "/v1/rooms/"+p.w.room+"/entries"+path, nil)
	if p.w.plan.tickets && p.ticket != "" {
		r.Header.Set("X-Queue-Ticket", p.ticket)
		if f == history.Poll && p.token != "" {
			r.Header.Set("X-Entry-Token", p.token)
		}
	}
	if lane := p.laneFor(); lane != "" {
		r.Header.Set("X-Member-Lane", lane)
	}
	return p.ask(r, history.Event{F: f})
}

func (p *person) order(key string, n int) answer {
	body := fmt.Sprintf(`{"items":[{"sku":%q,"quantity":%d}]}`, p.w.sku(), n)
	r := httptest.NewRequest("POST", "/v1/orders", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	token := p.token
	if p.forges {
		token = forged(token)
	}
	r.Header.Set("X-Entry-Token", token)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	content := history.Content([]history.Item{{SKU: p.w.sku(), Quantity: int64(n)}})
	return p.ask(r, history.Event{F: history.Order, Key: key, Content: content, Grant: p.grant, Forged: p.forges})
}

// forged is a token with one character of its signature changed.
func forged(token string) string {
	i := len(token) - 10
	with := "A"
	if token[i] == 'A' {
		with = "B"
	}
	return token[:i] + with + token[i+1:]
}

// ask sends a request to some node and writes down what came of it.
func (p *person) ask(r *http.Request, e history.Event) answer {
	n := p.w.anyNode(p.rnd)
	e.Client, e.Room, e.Member = p.name+p.tab, p.w.room, p.name
	if n != nil {
		e.Node = n.name
	}
	op := p.w.events.Invoke(e)
	a := answer{class: history.Fail, code: "refused"}
	if n != nil {
		a = p.w.send(n, r, p.name, &e)
	}
	e.Type, e.Code = a.class, a.code
	p.w.events.End(op, e)
	return a
}

// send has a node handle a request, and gives up on it after a while: then the
// node learns that the client has gone, and nobody knows the outcome.
func (w *world) send(n *node, r *http.Request, member string, e *history.Event) answer {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), nodeKey{}, n), patience)
	r = r.WithContext(ctx)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Member-Id", member)
	rec, done := httptest.NewRecorder(), make(chan struct{})
	n.serving.Add(1)
	w.requests.Go(func() {
		defer n.serving.Done()
		defer cancel()
		defer close(done)
		n.api.ServeHTTP(rec, r)
	})
	select {
	case <-done:
	case <-ctx.Done():
		return answer{class: history.Unknown, code: "timeout"}
	}
	if n.crashed() {
		return answer{class: history.Unknown, code: "EOF"}
	}
	a := read(rec.Result(), e)
	if t := a.token(); t != "" {
		if g, err := w.ring.Grant(t); err == nil {
			e.Grant, e.Expires = g.ID, g.Expiry.UnixMicro()
		}
	}
	return a
}

// token is the entry token of an answer; empty if it has none.
func (a answer) token() string {
	if a.position == nil {
		return ""
	}
	return deref(a.position.EntryToken)
}

// read makes an event of an answer.
func read(resp *http.Response, e *history.Event) answer {
	body, _ := io.ReadAll(resp.Body)
	a := answer{code: fmt.Sprint(resp.StatusCode)}
	switch {
	case resp.StatusCode >= 400:
		var p struct{ Code string }
		_ = json.Unmarshal(body, &p)
		a.code = p.Code
		a.class = history.ClassOf(e.F, resp.StatusCode, p.Code, nil)
		return a
	case e.F == history.Order:
		var o spec.Order
		a.class = decode(body, &o)
		e.OrderID, e.Replayed = o.ID, resp.Header.Get("Idempotency-Replayed") == "true"
	case e.F != history.Leave:
		var pos spec.Position
		a.class = decode(body, &pos)
		a.position = &pos
		note(e, pos)
	default:
		a.class = history.OK
	}
	return a
}

func decode(body []byte, v any) history.Type {
	if err := json.Unmarshal(body, v); err != nil {
		return history.Class(0, "", errors.Join(io.ErrUnexpectedEOF, err))
	}
	return history.OK
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// note copies into an event what a position says.
func note(e *history.Event, p spec.Position) {
	e.Status, e.Lane = string(p.Status), deref(p.Lane)
	e.Score, e.Rank, e.Total = deref(p.Score), -1, -1
	if p.Rank != nil {
		e.Rank, e.Total = *p.Rank, deref(p.CurrentTotalWaitingCount)
	}
	e.OrderID = deref(p.OrderID)
	e.Outcome = string(deref(p.LastOutcome))
	e.Redis = p.ServerTime.UnixMicro()
}
