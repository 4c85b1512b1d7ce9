//go:build faults

package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/history"
)

// buyer is one client of a fleet, over HTTP: enters, polls at the pace that is
// told, and orders. What exactly, its own dice decide.
type buyer struct {
	f    *fleet
	name string
	dice *fault.Dice
	http *http.Client

	ticket, token, grant string
	member               string
	last                 string // a token of before, to be shown when it is worth nothing
}

// answerWithin is how long a buyer waits for an answer.
const answerWithin = 8 * time.Second

// buyerClient makes a connection for each request: what happens to a request is
// then not decided by the one before, and nothing is repeated behind our back.
func buyerClient() *http.Client {
	return &http.Client{Timeout: answerWithin, Transport: &http.Transport{DisableKeepAlives: true}}
}

// crowd has so many buyers in the room at a time until ctx ends, and returns
// when each has come to an end.
func (f *fleet) crowd(ctx context.Context) {
	var all sync.WaitGroup
	client := buyerClient()
	for i := range f.plan.buyers {
		all.Go(func() {
			seat := f.dice.Of(fmt.Sprint("seat ", i))
			pause(ctx, seat.Between(0, 4*time.Second))
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("b%03d-%d", i, n)
				b := &buyer{f: f, name: name, dice: f.dice.Of(name), http: client}
				if f.plan.header {
					b.member = name
				}
				b.visit(ctx)
				pause(ctx, seat.Between(0, time.Second))
			}
		})
	}
	all.Wait()
}

// visit is all that a buyer does: once or twice through the room.
func (b *buyer) visit(ctx context.Context) {
	for range 1 + b.dice.Below(2) {
		if !b.enter(ctx) {
			return
		}
		b.last, b.token, b.grant = b.token, "", ""
		switch b.stand(ctx) {
		case queue.Ready, queue.Claimed:
			b.buy(ctx)
		default:
			return // gone, or the time is over
		}
	}
}

// twin is the same buyer in a second window: to the checker a client of its own.
func (b *buyer) twin() *buyer {
	other := *b
	other.name += "+"
	return &other
}

// enter asks until there is a place; false if there is none.
func (b *buyer) enter(ctx context.Context) bool {
	for ctx.Err() == nil {
		var twin sync.WaitGroup
		if b.dice.Chance(0.1) { // a double click
			other := b.twin()
			twin.Go(func() { other.place(history.Enter, http.MethodPost, "", "") })
		}
		a := b.place(history.Enter, http.MethodPost, "", "")
		twin.Wait()
		b.keep(a)
		switch {
		case a.position != nil:
			return true
		case a.class == history.Fail && a.code == "already-ordered":
			return false
		}
		pause(ctx, b.dice.Between(200*time.Millisecond, 2*time.Second))
	}
	return false
}

// stand polls until the buyer may order, leaves, vanishes, or is told to have no
// place.
func (b *buyer) stand(ctx context.Context) queue.Status {
	end := -1 // after how many polls this one goes
	leaves := b.dice.Chance(0.5)
	if b.dice.Chance(0.15) {
		end = b.dice.Below(6)
	}
	for polls := 0; ctx.Err() == nil; polls++ {
		if polls == end {
			if leaves {
				b.place(history.Leave, http.MethodDelete, "/me", "")
			}
			return ""
		}
		token := ""
		if b.dice.Chance(0.3) {
			token = b.last
		}
		a := b.place(history.Poll, http.MethodGet, "/me", token)
		b.keep(a)
		switch pos := a.position; {
		case pos == nil && a.class == history.Fail && a.code == "ticket-invalid":
			return ""
		case pos == nil:
			pause(ctx, b.dice.Between(300*time.Millisecond, 2*time.Second))
		case pos.Status == queue.Ready, pos.Status == queue.Claimed:
			return pos.Status
		case pos.Status == queue.Waiting:
			pause(ctx, time.Duration(pos.NextPollAfterMs)*time.Millisecond)
		default:
			return ""
		}
	}
	return ""
}

// knownWithin is how long a buyer asks about an order: longer than a claim whose
// end nobody has seen keeps everybody out, and than what is left of the faults.
const knownWithin = 90 * time.Second

// buy orders, and asks again with the same token until it knows what came of it,
// also when the time is over.
func (b *buyer) buy(ctx context.Context) {
	pause(ctx, b.dice.Between(0, 3*time.Second))
	if b.dice.Chance(0.1) {
		return // lets the token expire
	}
	cart, key := b.cart(), ""
	if b.dice.Chance(0.4) {
		key = fmt.Sprintf("%s-%d", b.name, b.dice.Below(3))
	}
	if b.dice.Chance(0.05) {
		b.order("", forge(b.token), cart)
	}
	for until := time.Now().Add(knownWithin); time.Now().Before(until); {
		var twin sync.WaitGroup
		if b.dice.Chance(0.2) { // twice at once, and not always the same
			second, other := cart, b.twin()
			if b.dice.Chance(0.2) {
				second = b.cart()
			}
			twin.Go(func() { other.order(key, other.token, second) })
		}
		a := b.order(key, b.token, cart)
		twin.Wait()
		again := a.class == history.Unknown || a.code == "order-in-progress" || a.code == "unavailable" || a.code == "order-limit" ||
			a.code == "order-outcome-unknown" || a.code == "refused"
		if !again && !b.dice.Chance(0.15) { // some press the button once more
			return
		}
		time.Sleep(b.dice.Between(200*time.Millisecond, 3*time.Second))
	}
	b.f.note("%s: never learned what came of the order with %s", b.name, b.grant)
}

// cart is what the buyer wants, in any order.
func (b *buyer) cart() []history.Item {
	all := make([]history.Item, len(goods))
	for i, at := range perm(b.dice, len(goods)) {
		all[i] = history.Item{SKU: goods[at], Quantity: int64(1 + b.dice.Below(2))}
	}
	return all[:1+b.dice.Below(len(all))]
}

// forge changes the last digit of the signature that counts.
func forge(token string) string {
	at := len(token) - 5
	other := byte('A')
	if token[at] == other {
		other = 'B'
	}
	return token[:at] + string(other) + token[at+1:]
}

// keep remembers the credentials that came with a position.
func (b *buyer) keep(a answer) {
	if a.position == nil {
		return
	}
	if t := a.position.QueueTicket; t != nil {
		b.ticket = *t
		if claims, err := b.f.ring.Ticket(*t); err == nil && b.member == "" {
			b.member = claims.Member
		}
	}
	if t := a.position.EntryToken; t != nil {
		b.token = *t
		if g, err := b.f.ring.Grant(*t); err == nil {
			b.grant = g.ID
		}
	}
}

// place is a call about the buyer's place.
func (b *buyer) place(f history.F, method, path, token string) answer {
	h := http.Header{}
	if token != "" {
		h.Set("X-Entry-Token", token)
	}
	return b.ask(request{method, "/v1/rooms/" + fleetRoom + "/entries" + path, h, nil}, history.Event{F: f})
}

func (b *buyer) order(key, token string, cart []history.Item) answer {
	h := http.Header{"Content-Type": {"application/json"}, "X-Entry-Token": {token}}
	if key != "" {
		h.Set("Idempotency-Key", key)
	}
	body, err := json.Marshal(map[string]any{"items": cart})
	if err != nil {
		b.f.t.Error(err)
	}
	return b.ask(request{http.MethodPost, "/v1/orders", h, body},
		history.Event{F: history.Order, Key: key, Content: history.Content(cart), Grant: b.grant, Forged: token != b.token})
}

type request struct {
	method, path string
	header       http.Header
	body         []byte
}

// ask sends a request to some process, and writes down what came of it. Each of
// several at once is a client of its own.
func (b *buyer) ask(r request, e history.Event) answer {
	s := b.f.stations[b.dice.Below(len(b.f.stations))]
	e.Client, e.Node, e.Room, e.Member = b.name, s.name, fleetRoom, b.member
	if b.f.plan.header {
		r.header.Set("X-Member-Id", b.member)
	}
	if b.ticket != "" && e.F != history.Order {
		r.header.Set("X-Queue-Ticket", b.ticket)
	}
	op := b.f.events.Invoke(e)
	a := answer{class: history.Fail, code: "refused"}
	if p := s.process(); p != nil {
		a = b.send(p.Public, r, &e)
	}
	e.Type, e.Code = a.class, a.code
	b.f.events.End(op, e)
	return a
}

func (b *buyer) send(base string, r request, e *history.Event) answer {
	req, err := http.NewRequestWithContext(b.f.t.Context(), r.method, base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return answer{class: history.Fail, code: err.Error()}
	}
	req.Header = r.header
	var body []byte
	resp, err := b.http.Do(req)
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(resp.Body)
	}
	if err != nil {
		return answer{class: history.ClassOf(e.F, 0, "", err), code: brief(err)}
	}
	return b.understand(resp, body, e)
}

// brief is an error without the addresses, which differ each time.
func brief(err error) string {
	text := err.Error()
	return strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:])
}

// understand makes an event of an answer.
func (b *buyer) understand(resp *http.Response, body []byte, e *history.Event) answer {
	a := answer{code: fmt.Sprint(resp.StatusCode)}
	var err error
	switch {
	case resp.StatusCode >= 400:
		var p struct{ Code string }
		_ = json.Unmarshal(body, &p) // no code: the answer is none of ours
		a.code = p.Code
	case e.F == history.Order:
		var o spec.Order
		err = json.Unmarshal(body, &o)
		e.OrderID, e.Replayed = o.ID, resp.Header.Get("Idempotency-Replayed") == "true"
	case e.F != history.Leave:
		a.position = &spec.Position{}
		if err = json.Unmarshal(body, a.position); err == nil {
			note(e, *a.position)
			b.noteToken(e, *a.position)
		}
	}
	a.class = history.ClassOf(e.F, resp.StatusCode, a.code, err)
	return a
}

// noteToken adds what the answer's credentials say.
func (b *buyer) noteToken(e *history.Event, p spec.Position) {
	if e.Member == "" {
		e.Member = memberOf(b.f.ring, p)
	}
	if p.EntryToken == nil {
		return
	}
	if g, err := b.f.ring.Grant(*p.EntryToken); err == nil {
		e.Grant = g.ID
	}
	if p.EntryTokenExpiresAt != nil {
		e.Expires = p.EntryTokenExpiresAt.UnixMicro()
	}
}

func memberOf(ring *credential.Ring, p spec.Position) string {
	if p.QueueTicket == nil {
		return ""
	}
	t, err := ring.Ticket(*p.QueueTicket)
	if err != nil {
		return ""
	}
	return t.Member
}
