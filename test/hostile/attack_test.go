//go:build faults

package hostile

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	slowConnections = 500
	// gib is what a client tries to send as one body.
	gib = 1 << 30
)

// attack is what has been tried so far.
type attack struct {
	addr              string
	open              atomic.Int64 // slow connections that are held now
	slow, endless     atomic.Int64 // those that were; bodies that were begun
	sent              atomic.Int64 // bytes of such bodies that went out
	most              atomic.Int64 // of one body
	deep, deepRefused atomic.Int64
}

// run attacks until ctx ends, and returns when every connection is closed.
func (a *attack) run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range slowConnections {
		wg.Go(func() {
			pause(ctx, time.Duration(i)*200*time.Microsecond)
			a.holdOn(ctx, i%2 == 0, 3*time.Second)
		})
	}
	for range 2 {
		wg.Go(func() { a.again(ctx, a.endlessBody) })
		wg.Go(func() { a.again(ctx, a.deepBody) })
	}
	wg.Wait()
}

// again attacks as one client would: as soon as the answer is there, at most
// some times a second. What more costs is this machine's, which is the server's
// too.
func (a *attack) again(ctx context.Context, once func(context.Context)) {
	for ctx.Err() == nil {
		once(ctx)
		pause(ctx, 100*time.Millisecond)
	}
}

func (a *attack) dial(ctx context.Context) (net.Conn, func()) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", a.addr)
	if err != nil {
		return nil, func() {}
	}
	// Little: what it costs to fill buffers would be taken for what the server costs.
	_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return c, func() {
		stop()
		_ = c.Close()
	}
}

// holdOn sends the head of a request, or its body, byte by byte, until the server
// has had enough. It returns how long that took; 0 where ctx ended first.
func (a *attack) holdOn(ctx context.Context, inHead bool, every time.Duration) time.Duration {
	c, done := a.dial(ctx)
	defer done()
	if c == nil {
		return 0
	}
	a.slow.Add(1)
	text := "POST /v1/rooms/" + roomName + "/entries HTTP/1.1\r\nHost: shop\r\nX-Slow: "
	if !inHead {
		text += "x\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n{"
	}
	a.open.Add(1)
	defer a.open.Add(-1)
	begun := time.Now()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, c) // until the server closes
		close(ended)
	}()
	for _, err := io.WriteString(c, text); err == nil; _, err = c.Write([]byte(" ")) {
		select {
		case <-ended:
			if ctx.Err() != nil {
				return 0
			}
			return time.Since(begun)
		case <-time.After(every):
		}
	}
	if <-ended; ctx.Err() != nil {
		return 0
	}
	return time.Since(begun)
}

// holdUntilCut holds a head and a body for longer than any server should bear: how
// long this one did, 0 for all the time.
func (a *attack) holdUntilCut(ctx context.Context) (h [2]time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range h {
		wg.Go(func() { h[i] = a.holdOn(ctx, i == 0, time.Second) })
	}
	wg.Wait()
	return h
}

// endlessBody sends a body in chunks until the server hangs up, or to its end.
func (a *attack) endlessBody(ctx context.Context) {
	c, done := a.dial(ctx)
	defer done()
	if c == nil {
		return
	}
	a.endless.Add(1)
	_, err := io.WriteString(c, "POST /v1/rooms/"+roomName+"/entries HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk, n := "8000\r\n"+strings.Repeat(" ", 0x8000)+"\r\n", int64(0)
	for err == nil && n < gib {
		var sent int
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
		sent, err = io.WriteString(c, chunk)
		n += int64(sent)
	}
	a.sent.Add(n)
	for most := a.most.Load(); n > most && !a.most.CompareAndSwap(most, n); {
		most = a.most.Load()
	}
}

// deepBody sends bodies nested 10,000 deep, of which one fits the limit of bytes.
func (a *attack) deepBody(ctx context.Context) {
	for _, body := range []string{strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 10_000), `{"a":` + strings.Repeat("[", 10_000) + `}`} {
		c, done := a.dial(ctx)
		if c == nil {
			return
		}
		a.deep.Add(1)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop/v1/rooms/"+roomName+"/entries", strings.NewReader(body))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
			err = req.Write(c)
		}
		resp, readErr := http.ReadResponse(bufio.NewReader(c), req)
		if errors.Join(err, readErr) == nil && resp.StatusCode >= 400 && resp.StatusCode < 500 {
			a.deepRefused.Add(1)
		}
		done()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
