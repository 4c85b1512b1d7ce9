package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// shopper is a client that keeps what it is given, as a browser would.
type shopper struct {
	w             *world
	t             testing.TB
	room          string
	ticket, token string
	member        string // sent as X-Member-Id, as a trusted proxy would
	key           string // sent as Idempotency-Key
}

func (w *world) shopper() *shopper { return &shopper{w: w, t: w.t, room: room} }

// member is a shopper behind a proxy that says who they are.
func (w *world) member(id string) *shopper { return &shopper{w: w, t: w.t, room: room, member: id} }

func (s *shopper) headers() http.Header {
	h := http.Header{}
	if s.ticket != "" {
		h.Set("X-Queue-Ticket", s.ticket)
	}
	if s.member != "" {
		h.Set("X-Member-Id", s.member)
	}
	return h
}

func (s *shopper) entries(p *process) string { return p.public + "/v1/rooms/" + s.room + "/entries" }

func (s *shopper) enter(p *process) answer {
	return s.keep(s.w.ask("POST", s.entries(p), s.headers(), ""))
}

func (s *shopper) poll(p *process) answer {
	return s.keep(s.w.ask("GET", s.entries(p)+"/me", s.headers(), ""))
}

func (s *shopper) leave(p *process) answer {
	return s.w.ask("DELETE", s.entries(p)+"/me", s.headers(), "")
}

// order places an order for n of a product with the token last seen.
func (s *shopper) order(p *process, sku string, n int) answer {
	h := s.headers()
	h.Del("X-Queue-Ticket") // the token is enough
	if s.token != "" {
		h.Set("X-Entry-Token", s.token)
	}
	if s.key != "" {
		h.Set("Idempotency-Key", s.key)
	}
	return s.w.ask("POST", p.public+"/v1/orders", h, orderOf(sku, n))
}

func orderOf(sku string, n int) string {
	return fmt.Sprintf(`{"items":[{"sku":%q,"quantity":%d}]}`, sku, n)
}

// orderByID asks for an order as its owner would, with the ticket.
func (s *shopper) orderByID(p *process, id string) answer {
	return s.w.ask("GET", p.public+"/v1/orders/"+id, s.headers(), "")
}

// keep remembers the credentials of a position.
func (s *shopper) keep(a answer) answer {
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		return a
	}
	p := a.position()
	if p.QueueTicket != nil {
		s.ticket = *p.QueueTicket
	}
	if p.EntryToken != nil {
		s.token = *p.EntryToken
	}
	return a
}

// until polls until the status is the one that is waited for.
func (s *shopper) until(p *process, status queue.Status) (at spec.Position) {
	s.t.Helper()
	harness.Eventually(s.t, patience, "the status is "+string(status), func() bool {
		a := s.poll(p)
		if a.status == http.StatusOK {
			at = a.position()
		}
		return a.status == http.StatusOK && at.Status == status
	})
	return at
}

// admitted enters and waits for the token.
func (s *shopper) admitted(p *process) spec.Position {
	s.t.Helper()
	s.enter(p).is(201)
	return s.until(p, queue.Ready)
}

// line lets n shoppers enter, several at a time, on these processes.
func (w *world) line(n int, at ...*process) []*shopper {
	w.t.Helper()
	const hands = 16
	all := make([]*shopper, n)
	together(hands, func(hand int) {
		for i := hand; i < n; i += hands {
			all[i] = w.shopper()
			if got := all[i].enter(at[i%len(at)]); got.status != http.StatusCreated {
				w.t.Errorf("enter: %d %v %s", got.status, got.err, got.body)
			}
		}
	})
	require.False(w.t, w.t.Failed(), "not everybody could enter")
	return all
}
