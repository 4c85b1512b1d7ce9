package pace

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// pollers are members who poll when they are told, over a bounded number of
// connections. Who is due while all are busy waits, and that counts as the time of
// the answer: nobody's clock waits for ours.
type pollers struct {
	server *server
	began  time.Time
	wheel  [4096][]int32 // members, by the slot in which they poll; of keep alone
	told   chan told
	ready  queued

	mu      sync.Mutex
	seconds []second
	late    int // near the front, told to wait longer than they may
}

// told is when a member polls next.
type told struct {
	member int32
	at     int // slot
}

// second is what was answered in one.
type second struct {
	answers int
	took    []time.Duration
}

// due is a member whose time has come.
type due struct {
	member int32
	since  time.Time
}

// queued hands those whose time has come to connections, first come first served.
type queued struct {
	mu    sync.Mutex
	some  sync.Cond
	list  []due
	ended bool
}

func newPollers(s *server) *pollers {
	p := &pollers{server: s, began: time.Now(), told: make(chan told, 4096)}
	p.ready.some.L = &p.ready.mu
	return p
}

// run lets everybody poll, the first time within a second, until ctx ends.
func (p *pollers) run(ctx context.Context, conns int) error {
	for m := range p.server.tickets {
		p.wheel[m%slotsPerSecond] = append(p.wheel[m%slotsPerSecond], int32(m))
	}
	g, ctx := errgroup.WithContext(ctx)
	for range conns {
		g.Go(func() error { return p.connection(ctx) })
	}
	g.Go(func() error {
		p.keep(ctx)
		p.ready.end()
		return nil
	})
	return g.Wait()
}

// keep turns the wheel.
func (p *pollers) keep(ctx context.Context) {
	tick := time.NewTicker(slot)
	defer tick.Stop()
	for at := 0; ; {
		select {
		case <-ctx.Done():
			return
		case t := <-p.told:
			i := max(t.at, at) % len(p.wheel)
			p.wheel[i] = append(p.wheel[i], t.member)
		case <-tick.C:
			for now := int(time.Since(p.began) / slot); at <= now; at++ {
				p.ready.put(p.wheel[at%len(p.wheel)], p.began.Add(time.Duration(at)*slot))
				p.wheel[at%len(p.wheel)] = p.wheel[at%len(p.wheel)][:0]
			}
		}
	}
}

func (q *queued) put(members []int32, since time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range members {
		q.list = append(q.list, due{m, since})
		q.some.Signal()
	}
}

func (q *queued) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.some.Broadcast()
}

func (q *queued) take() (d due, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.ended {
		q.some.Wait()
	}
	if q.ended {
		return d, false
	}
	d, q.list = q.list[0], q.list[1:]
	return d, true
}

// connection polls for whoever is due.
func (p *pollers) connection(ctx context.Context) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(p.server.Public, "http://"))
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReaderSize(c, 4096)
	var request, body []byte
	for {
		d, ok := p.ready.take()
		if !ok {
			return nil
		}
		request = fmt.Appendf(request[:0], "GET /v1/rooms/%s/entries/me HTTP/1.1\r\nHost: x\r\nX-Queue-Ticket: %s\r\n\r\n", roomName, p.server.tickets[d.member])
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			return err
		}
		if _, err := c.Write(request); err != nil {
			return err
		}
		if body, err = answer(in, body[:0]); err != nil {
			return err
		}
		if err := p.note(ctx, d, body); err != nil {
			return err
		}
	}
}

// answer reads the body of a 200.
func answer(in *bufio.Reader, body []byte) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return nil, fmt.Errorf("answered %s", textproto.TrimBytes(line))
	}
	length := -1
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return nil, err
		}
		if line = textproto.TrimBytes(line); len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(textproto.TrimBytes(value))); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, fmt.Errorf("an answer without its length")
	}
	for len(body) < length {
		b, err := in.ReadByte()
		if err != nil {
			return nil, err
		}
		body = append(body, b)
	}
	return body, nil
}

// number finds a member of a flat JSON object.
func number(body []byte, name string) (int, error) {
	_, rest, ok := bytes.Cut(body, []byte(`"`+name+`":`))
	end := bytes.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return 0, fmt.Errorf("no %s in %s", name, body)
	}
	return strconv.Atoi(string(rest[:end]))
}

// note keeps what an answer says, and when it came.
func (p *pollers) note(ctx context.Context, d due, body []byte) error {
	next, err := number(body, "nextPollAfterMs")
	if err != nil {
		return err
	}
	rank, err := number(body, "rank")
	if err != nil {
		return err
	}
	now := time.Now()
	select {
	case p.told <- told{d.member, int((now.Sub(p.began) + time.Duration(next)*time.Millisecond) / slot)}:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if rank < 9000 && next > 10_000 { // the horizon, and a third of pickupTtl, of a room by default
		p.late++
	}
	s := int(now.Sub(p.began) / time.Second)
	for len(p.seconds) <= s {
		p.seconds = append(p.seconds, second{})
	}
	p.seconds[s].answers++
	p.seconds[s].took = append(p.seconds[s].took, now.Sub(d.since))
	return nil
}
