//go:build faults

package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/history"
)

// customer is one client of a shop, who keeps what it is given as a browser
// would. Everything it asks and is told is recorded.
type customer struct {
	s    *shop
	name string

	ticket, token, grant, member string
	score                        int64
}

// heard is what a customer was answered.
type heard struct {
	s      *shop
	status int // 0: nothing
	code   string
	header http.Header
	body   []byte
	err    error

	position spec.Position
	order    spec.Order
}

func (s *shop) customer() *customer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visitors++
	return &customer{s: s, name: fmt.Sprint("c", s.visitors)}
}

// twin is the same customer in another window: to the checker a client of its own.
func (c *customer) twin() *customer {
	other := *c
	other.name = c.s.customer().name
	return &other
}

// is fails the test unless the answer has this status and, if one is given, this
// problem code.
func (a heard) is(status int, code ...string) heard {
	a.s.t.Helper()
	require.NoError(a.s.t, a.err)
	require.Equal(a.s.t, status, a.status, "%s", a.body)
	if len(code) > 0 {
		require.Equal(a.s.t, code[0], a.code, "%s", a.body)
	}
	return a
}

// away tells an answer of a deployment of which a part is away for a moment:
// come back later, and how much.
func (a heard) away() bool {
	return a.status == http.StatusServiceUnavailable && (a.code == "unavailable" || a.code == "order-outcome-unknown") && a.header.Get("Retry-After") != ""
}

// send makes a request and reads the answer.
func (s *shop) send(p *fault.Process, method, path string, h http.Header, body string) heard {
	return s.sendTo(p.Public, method, path, h, body)
}

func (s *shop) sendTo(base, method, path string, h http.Header, body string) heard {
	a := heard{s: s}
	req, err := http.NewRequestWithContext(s.t.Context(), method, base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		a.err = err
		return a
	}
	if h != nil {
		req.Header = h.Clone()
	}
	resp, err := s.client.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer resp.Body.Close()
	if a.body, a.err = io.ReadAll(resp.Body); a.err != nil {
		return a
	}
	a.status, a.header = resp.StatusCode, resp.Header
	if a.status >= 400 {
		var problem struct{ Code string }
		_ = json.Unmarshal(a.body, &problem) // no code: the answer is none of ours
		a.code = problem.Code
	}
	return a
}

// call makes a request that is recorded.
func (c *customer) call(base string, e history.Event, method, path string, h http.Header, body string) heard {
	if h == nil {
		h = http.Header{}
	}
	if c.ticket != "" && e.F != history.Order {
		h.Set("X-Queue-Ticket", c.ticket)
	}
	e.Client, e.Node, e.Room, e.Member = c.name, base, shopRoom, c.member
	op := c.s.events.Invoke(e)
	a := c.s.sendTo(base, method, path, h, body)
	e.Code = a.code
	if e.Code == "" {
		e.Code = fmt.Sprint(a.status)
	}
	err := a.err
	if err == nil && a.status < 400 {
		err = c.understand(&a, &e)
	}
	e.Type = history.ClassOf(e.F, a.status, a.code, err)
	c.s.events.End(op, e)
	return a
}

// understand reads a good answer, for us and for the record, and keeps its
// credentials.
func (c *customer) understand(a *heard, e *history.Event) error {
	switch e.F {
	case history.Leave:
		return nil
	case history.Order:
		err := json.Unmarshal(a.body, &a.order)
		e.OrderID, e.Replayed = a.order.ID, a.header.Get("Idempotency-Replayed") == "true"
		return err
	}
	if err := json.Unmarshal(a.body, &a.position); err != nil {
		return err
	}
	p := a.position
	note(e, p)
	if p.QueueTicket != nil {
		c.ticket = *p.QueueTicket
		if t, err := c.s.ring.Ticket(c.ticket); err == nil {
			c.member = t.Member
		}
	}
	e.Member = c.member
	if p.Score != nil {
		c.score = *p.Score
	}
	if p.EntryToken != nil {
		c.token = *p.EntryToken
		if g, err := c.s.ring.Grant(c.token); err == nil {
			c.grant = g.ID
		}
		e.Grant, e.Expires = c.grant, p.EntryTokenExpiresAt.UnixMicro()
	}
	return nil
}

const entriesPath = "/v1/rooms/" + shopRoom + "/entries"

func (c *customer) enter(p *fault.Process) heard { return c.enterAt(p.Public) }
func (c *customer) poll(p *fault.Process) heard  { return c.pollAt(p.Public, "") }

// pollWith polls and shows a token as well, as a client does that still has one.
func (c *customer) pollWith(p *fault.Process, token string) heard { return c.pollAt(p.Public, token) }

func (c *customer) enterAt(base string) heard {
	return c.call(base, history.Event{F: history.Enter}, http.MethodPost, entriesPath, nil, "")
}

func (c *customer) pollAt(base, token string) heard {
	h := http.Header{}
	if token != "" {
		h.Set("X-Entry-Token", token)
	}
	return c.call(base, history.Event{F: history.Poll}, http.MethodGet, entriesPath+"/me", h, "")
}

func (c *customer) leave(p *fault.Process) heard {
	return c.call(p.Public, history.Event{F: history.Leave}, http.MethodDelete, entriesPath+"/me", nil, "")
}

func (c *customer) buy(p *fault.Process) heard { return c.buyAt(p.Public) }

// buyAt orders one of the product with the token last seen.
func (c *customer) buyAt(base string) heard {
	h := http.Header{"X-Entry-Token": {c.token}, "Content-Type": {"application/json"}}
	e := history.Event{F: history.Order, Grant: c.grant, Content: history.Content([]history.Item{{SKU: "demo", Quantity: 1}})}
	return c.call(base, e, http.MethodPost, "/v1/orders", h, `{"items":[{"sku":"demo","quantity":1}]}`)
}

// until polls until the status is the one that is waited for.
func (c *customer) until(p *fault.Process, status queue.Status) (at spec.Position) {
	c.s.t.Helper()
	eventually(c.s.t, longEnough, "the status is "+string(status), func() bool {
		a := c.poll(p)
		at = a.position
		return a.status == http.StatusOK && at.Status == status
	})
	return at
}

// admitted enters and waits for the token.
func (c *customer) admitted(p *fault.Process) *customer {
	c.s.t.Helper()
	c.enter(p).is(http.StatusCreated)
	c.until(p, queue.Ready)
	return c
}

// line lets n customers enter, several at a time, on these processes. They are
// returned in the order of their places.
func (s *shop) line(n int, at ...*fault.Process) []*customer {
	s.t.Helper()
	all := make([]*customer, n)
	for i := range all {
		all[i] = s.customer()
	}
	inParallel(16, n, func(i int) {
		if a := all[i].enter(at[i%len(at)]); a.status != http.StatusCreated {
			s.t.Errorf("enter: %d %v %s", a.status, a.err, a.body)
		}
	})
	require.False(s.t, s.t.Failed(), "not everybody could enter")
	slices.SortFunc(all, func(a, b *customer) int { return int(a.score - b.score) })
	return all
}

// inParallel does f for 0 to n-1, so many at a time.
func inParallel(hands, n int, f func(i int)) {
	var wg sync.WaitGroup
	for hand := range min(hands, n) {
		wg.Go(func() {
			for i := hand; i < n; i += hands {
				f(i)
			}
		})
	}
	wg.Wait()
}

// told is the moment of an answer, by the clock of Redis.
func (a heard) told() time.Time { return a.position.ServerTime }
