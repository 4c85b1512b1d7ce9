package load

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is the server, and what is the same in all calls.
type target struct {
	host, address string // for the header Host; to dial
	secure        bool
	prefix        string // of all paths
	room, order   string // path of the room's entries; body of an order
}

func newTarget(p Plan) (target, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return target{}, err
	}
	t := target{
		host: u.Host, address: u.Host, secure: u.Scheme == "https", prefix: strings.TrimRight(u.EscapedPath(), "/"),
		order: fmt.Sprintf(`{"items":[{"sku":%q,"quantity":1}]}`, p.SKU),
	}
	t.room = t.prefix + "/v1/rooms/" + url.PathEscape(p.Room)
	if u.Port() == "" {
		port := "80"
		if t.secure {
			port = "443"
		}
		t.address = net.JoinHostPort(u.Hostname(), port)
	}
	return t, nil
}

// call is one request.
type call struct {
	kind          kind
	method, path  string
	header, value string // the credential; none if empty
	body          string
	address       string // for X-Forwarded-For; none if empty
}

// answer is what came back. Its body is good until the next call on the line.
type answer struct {
	status     int    // 0: none
	fault      string // why there was none
	retryAfter time.Duration
	replayed   bool
	body       []byte
}

// line is one connection, kept alive, for one worker. net/http's client would
// need two goroutines and four hand-overs for each call, which on a machine that
// also runs the server are a part of what one wants to measure.
type line struct {
	target
	conn    net.Conn
	reader  *bufio.Reader
	request []byte
	body    []byte
}

const (
	// callTimeout is above what the product allows itself for one call.
	callTimeout = 20 * time.Second
	maxBody     = 64 << 10
)

// ask sends a call and reads its answer. A connection that the server has closed
// meanwhile is replaced once: that is no fault of either side.
func (l *line) ask(c call) answer {
	kept := l.conn != nil
	a, started := l.try(c)
	if a.status == 0 && kept && !started {
		a, _ = l.try(c)
	}
	return a
}

// try is one attempt; started tells whether any of an answer had come.
func (l *line) try(c call) (a answer, started bool) {
	if err := l.open(); err != nil {
		return answer{fault: fault(err)}, true
	}
	_ = l.conn.SetDeadline(time.Now().Add(callTimeout))
	_, err := l.conn.Write(l.written(c))
	if err == nil {
		_, err = l.reader.Peek(1)
	}
	if err != nil {
		l.close()
		return answer{fault: fault(err)}, errors.Is(err, os.ErrDeadlineExceeded)
	}
	a, err = l.read()
	if err != nil {
		l.close()
		return answer{fault: fault(err)}, true
	}
	return a, true
}

func (l *line) open() error {
	if l.conn != nil {
		return nil
	}
	dialer := net.Dialer{Timeout: callTimeout}
	var err error
	if l.secure {
		l.conn, err = tls.DialWithDialer(&dialer, "tcp", l.address, &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	} else {
		l.conn, err = dialer.Dial("tcp", l.address)
	}
	if err != nil {
		l.conn = nil
		return err
	}
	l.reader = bufio.NewReader(l.conn)
	return nil
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// written is the request as it goes over the line.
func (l *line) written(c call) []byte {
	b := append(l.request[:0], c.method...)
	b = append(append(append(b, ' '), c.path...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, l.host...), "\r\nUser-Agent: linekeeper-load\r\n"...)
	field := func(name, value string) {
		b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
	}
	if c.address != "" {
		field("X-Forwarded-For", c.address)
	}
	if c.header != "" {
		field(c.header, c.value)
	}
	if c.body != "" {
		field("Content-Type", "application/json")
	}
	if c.method != http.MethodGet {
		field("Content-Length", strconv.Itoa(len(c.body)))
	}
	l.request = append(append(b, "\r\n"...), c.body...)
	return l.request
}

func (l *line) read() (answer, error) {
	resp, err := http.ReadResponse(l.reader, nil)
	if err != nil {
		return answer{}, err
	}
	l.body = l.body[:0]
	for {
		if len(l.body) == cap(l.body) {
			l.body = append(l.body, 0)[:len(l.body)]
		}
		n, err := resp.Body.Read(l.body[len(l.body):cap(l.body)])
		l.body = l.body[:len(l.body)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return answer{}, err
		}
		if len(l.body) > maxBody {
			return answer{}, errors.New("too long an answer")
		}
	}
	if resp.Close {
		l.close()
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return answer{
		status: resp.StatusCode, body: l.body, retryAfter: time.Duration(seconds) * time.Second,
		replayed: resp.Header.Get("Idempotency-Replayed") == "true",
	}, nil
}

// fault says in a word why there was no answer.
func fault(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "closed"
	default:
		return "broken"
	}
}
