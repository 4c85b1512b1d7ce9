package main

import (
	"context"
	"fmt"
	"net"
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

// client is one connection.
type client struct {
	conn net.Conn
	buf  []byte
}

const (
	// patience is how long an answer may take; longer is a wrong answer.
	patience = 20 * time.Second
	// mostAnswer is the longest that there can be, in bytes.
	mostAnswer = 16 << 10
)

func dial(ctx context.Context, addr string) (*client, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: c, buf: make([]byte, mostAnswer)}, nil
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
