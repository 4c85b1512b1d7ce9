package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// raw serves each connection with a function that is given its number, and
// returns a line to it.
func raw(t *testing.T, serve func(n int64, c net.Conn)) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for n := int64(1); ; n++ {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(n, c)
			}()
		}
	}()
	made, err := newTarget(Plan{URL: "http://" + listener.Addr().String() + "/shop", Room: "sale", SKU: "demo"})
	require.NoError(t, err)
	l := &line{target: made}
	t.Cleanup(l.close)
	return l
}

// requests answers each request of a connection with a text.
func requests(c net.Conn, answer func(*http.Request) string) {
	for in := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if _, err := io.WriteString(c, answer(r)); err != nil {
			return
		}
	}
}

func TestACallIsWrittenAndItsAnswerRead(t *testing.T) {
	t.Parallel()
	var connections, calls atomic.Int64
	l := raw(t, func(_ int64, c net.Conn) {
		connections.Add(1)
		requests(c, func(r *http.Request) string {
			calls.Add(1)
			body, _ := io.ReadAll(r.Body)
			said := fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("X-Forwarded-For"), " ", r.Header.Get("X-Entry-Token"), " ", r.Header.Get("Content-Type"), " ", string(body))
			return fmt.Sprintf("HTTP/1.1 201 Created\r\nRetry-After: 7\r\nIdempotency-Replayed: true\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(said), said)
		})
	})
	who := &person{n: 5, token: "secret"}
	for range 3 {
		a := l.ask(who.call(l.target, order, true))
		require.Equal(t, 201, a.status)
		require.Equal(t, `POST /shop/v1/orders 198.18.0.5 secret application/json {"items":[{"sku":"demo","quantity":1}]}`, string(a.body))
		require.Equal(t, 7.0, a.retryAfter.Seconds())
		require.True(t, a.replayed)
	}
	require.EqualValues(t, 1, connections.Load(), "the connection is kept")
	a := l.ask((&person{}).call(l.target, enter, false))
	require.Equal(t, "POST /shop/v1/rooms/sale/entries    ", string(a.body), "no address, no credential, no body")
}

func TestAConnectionThatTheServerHasClosedIsReplacedOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	l := raw(t, func(_ int64, c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_ = r.Body.Close()
		calls.Add(1)
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n") // and closes, without a word
	})
	for range 3 {
		require.Equal(t, 204, l.ask((&person{ticket: "t"}).call(l.target, leave, false)).status)
	}
	require.EqualValues(t, 3, calls.Load())
}

func TestWhatIsNoAnswerIsAFault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":           "closed",
		"hello\r\n":  "broken",
		"HTTP/1.1 2": "broken",
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc":                              "closed",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + strings.Repeat("x", 99999): "broken",
	} {
		l := raw(t, func(_ int64, c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, text)
			}
		})
		a := l.ask((&person{}).call(l.target, enter, false))
		require.Zero(t, a.status, "%.30q", text)
		require.Equal(t, want, a.fault, "%.30q", text)
	}
	gone := raw(t, func(int64, net.Conn) {})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone.address = listener.Addr().String()
	require.NoError(t, listener.Close())
	require.Equal(t, "refused", gone.ask(call{method: "GET", path: "/"}).fault)
}

func TestACredentialOfTheServerCanNotPutAnythingIntoARequest(t *testing.T) {
	t.Parallel()
	good, bad := "a.b-c_d", "a\r\nX-Member-Id: me"
	require.Equal(t, good, kept(&good))
	require.Empty(t, kept(&bad))
	require.Empty(t, kept(nil))
}
