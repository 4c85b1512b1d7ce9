//go:build faults

package verify

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// wire is a connection to Postgres that can lose an answer, and can deliver what
// was written long after its owner has given up.
type wire struct {
	net.Conn
	deaf atomic.Bool // the next answer never arrives

	mu      sync.Mutex
	delay   time.Duration // of the next write; 0: none
	held    bool          // a write is on its way
	over    chan struct{} // closed when the owner can wait no more
	ended   bool          // over is closed
	overErr error
	late    *sync.WaitGroup
}

// holdBack makes the next write arrive after d. The owner gets no answer to it.
func (c *wire) holdBack(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay, c.over = d, make(chan struct{})
}

// Write lets go of what is held back, once.
func (c *wire) Write(p []byte) (int, error) {
	c.mu.Lock()
	d := c.delay
	if d > 0 {
		c.delay, c.held = 0, true
	}
	c.mu.Unlock()
	if d == 0 {
		return c.Conn.Write(p)
	}
	message := append([]byte(nil), p...)
	c.late.Go(func() {
		time.Sleep(d)
		if _, err := c.Conn.Write(message); err == nil {
			_, _ = c.Conn.Read(make([]byte, 1024)) // then the server has done it
		}
		_ = c.Conn.Close()
	})
	return len(p), nil
}

// Read waits for the answer also when nobody is to have it: then the server has
// certainly done what it was told.
func (c *wire) Read(p []byte) (int, error) {
	c.mu.Lock()
	held, over := c.held, c.over
	c.mu.Unlock()
	if held {
		<-over
		return 0, c.overErr
	}
	n, err := c.Conn.Read(p)
	if err == nil && c.deaf.Load() {
		_ = c.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}

// end lets the owner stop waiting for a write that is held back; false if there
// is none.
func (c *wire) end(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil && !c.ended {
		c.ended, c.overErr = true, err
		close(c.over)
	}
	return c.held
}

// Close keeps the connection to the server for what is still on its way there.
func (c *wire) Close() error {
	if c.end(net.ErrClosed) {
		return nil
	}
	return c.Conn.Close()
}

// SetDeadline is how pgx gives up: with a time in the past.
func (c *wire) SetDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) && c.end(os.ErrDeadlineExceeded) {
		return nil
	}
	return c.Conn.SetDeadline(t)
}
