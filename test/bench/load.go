package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// traffic is what one side is asked. Many connections ask at once.
type traffic interface {
	// next returns the bytes of connection conn's next request and a number by which
	// check knows it, or nil when there is nothing more to ask. The bytes are good
	// until conn asks again.
	next(conn int) (request []byte, id int)
	// check returns what is wrong with an answer.
	check(id int, status int, body []byte) error
}

// tally is what a load came to.
type tally struct {
	requests int
	seconds  float64
}

// drive asks addr over conns connections for d, each the next request as soon as
// the last is answered. It ends with the first wrong answer.
func drive(ctx context.Context, addr string, conns int, d time.Duration, t traffic) (tally, error) {
	clients := make([]*client, conns)
	for i := range clients {
		c, err := dial(ctx, addr)
		if err != nil {
			return tally{}, err
		}
		defer c.conn.Close()
		c.number, clients[i] = i, c
	}
	var over atomic.Bool
	var done sync.WaitGroup
	errs := make([]error, conns)
	start := time.Now()
	for i, c := range clients {
		done.Go(func() {
			if errs[i] = c.ask(t, &over); errs[i] != nil {
				over.Store(true)
			}
		})
	}
	timer := time.AfterFunc(d, func() { over.Store(true) })
	done.Wait()
	timer.Stop()
	out := tally{seconds: time.Since(start).Seconds()}
	for i, c := range clients {
		out.requests += c.answered
		if errs[i] != nil {
			return tally{}, errs[i]
		}
	}
	return out, ctx.Err()
}

// client is one connection.
type client struct {
	conn     net.Conn
	number   int
	buf      []byte
	answered int
}

// patience is how long an answer may take; longer is a wrong answer.
const patience = 20 * time.Second

func dial(ctx context.Context, addr string) (*client, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: c, buf: make([]byte, 16<<10)}, nil
}

func (c *client) ask(t traffic, over *atomic.Bool) error {
	if err := c.conn.SetDeadline(time.Now().Add(patience + time.Minute)); err != nil {
		return err
	}
	for !over.Load() {
		request, id := t.next(c.number)
		if request == nil {
			return nil
		}
		status, body, err := c.exchange(request)
		if err == nil {
			err = t.check(id, status, body)
		}
		if err != nil {
			return fmt.Errorf("%.60q: %w", request, err)
		}
		c.answered++
	}
	return nil
}

// exchange sends a request and reads its answer; the body is good until the next.
func (c *client) exchange(request []byte) (status int, body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, err
	}
	for n := 0; ; {
		k, err := c.conn.Read(c.buf[n:])
		if err != nil {
			return 0, nil, err
		}
		n += k
		a, err := parse(c.buf[:n])
		if err != nil {
			return 0, nil, fmt.Errorf("%w: %.200s", err, c.buf[:n])
		}
		if a.size > 0 {
			return a.status, c.buf[a.body:a.size], nil
		}
		if n == len(c.buf) {
			return 0, nil, errNotHTTP
		}
	}
}
