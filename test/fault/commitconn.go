package fault

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"time"
)

// answerWithin bounds the wait for a server that has been sent COMMIT.
const answerWithin = 10 * time.Second

// commitConn is one connection to Postgres. A client may read while it writes,
// as a Proxy does; a fault first gets the reader out of the way, then does its
// work, then says what the client reads last.
type commitConn struct {
	net.Conn
	wire   *Postgres
	finder commitFinder

	reading sync.Mutex // held by whoever reads from the server

	mu     sync.Mutex
	taken  bool          // the fault has the connection, and closes it
	last   *bytes.Reader // what the client still reads
	ending chan struct{} // closed when last is there
}

func newCommitConn(c net.Conn, w *Postgres) *commitConn {
	return &commitConn{Conn: c, wire: w, ending: make(chan struct{})}
}

var errBrokenPipe = errors.New("broken pipe")

// Write implements net.Conn.
func (c *commitConn) Write(p []byte) (int, error) {
	if c.isTaken() {
		return 0, errBrokenPipe
	}
	if !c.finder.sees(p) {
		return c.Conn.Write(p)
	}
	switch f := c.wire.choose(); f {
	case "":
		return c.Conn.Write(p)
	case RefuseCommit:
		c.take()
		c.end(nil)
		_ = c.Conn.Close()
		return 0, errBrokenPipe
	case LateCommit:
		c.take()
		c.deliverLater(bytes.Clone(p)) // before the client knows, so that Settle waits for it
		c.end(nil)
	default:
		c.take()
		if f == CutAfter || f == FatalAfter {
			c.deliver(p)
		}
		_ = c.Conn.Close()
		c.end(f.answer())
	}
	return len(p), nil
}

// answer is what the client reads in place of the server's words.
func (f CommitFault) answer() []byte {
	if f == FatalBefore || f == FatalAfter {
		return terminated
	}
	return nil
}

// terminated is the ErrorResponse of a session that an operator has ended.
var terminated = errorResponse("SFATAL", "VFATAL", "C57P01", "Mterminating connection due to administrator command")

func errorResponse(fields ...string) []byte {
	body := strings.Join(fields, "\x00") + "\x00\x00"
	msg := binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(body)+4))
	return append(msg, body...)
}

// deliver has the server run COMMIT, and waits until it has answered.
func (c *commitConn) deliver(p []byte) {
	if _, err := c.Conn.Write(p); err != nil {
		return // the server was gone already: then it has rolled back
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(answerWithin))
	_, _ = c.Conn.Read(make([]byte, 4096))
}

func (c *commitConn) deliverLater(p []byte) {
	wait := c.wire.dice.Between(0, c.wire.late)
	c.wire.underWay(1)
	go func() {
		defer c.wire.underWay(-1)
		time.Sleep(wait)
		c.deliver(p)
		_ = c.Conn.Close()
	}()
}

// take gets the client out of the connection: nothing more of what the server
// says reaches it.
func (c *commitConn) take() {
	c.mu.Lock()
	c.taken = true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	c.mu.Unlock()
	c.reading.Lock() // until the reader has left
	defer c.reading.Unlock()
}

// end lets the client read answer, and then the end of the connection.
func (c *commitConn) end(answer []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = bytes.NewReader(answer)
	close(c.ending)
}

func (c *commitConn) isTaken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// Read implements net.Conn.
func (c *commitConn) Read(p []byte) (int, error) {
	taken, n, err := c.readServer(p)
	if !taken {
		return n, err
	}
	<-c.ending
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.Read(p) // io.EOF at its end
}

// readServer reads from the server, unless a fault has the connection.
func (c *commitConn) readServer(p []byte) (taken bool, n int, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.isTaken() {
		return true, 0, nil
	}
	n, err = c.Conn.Read(p)
	return n == 0 && c.isTaken(), n, err
}

// Close implements net.Conn. What a fault has taken, the fault closes: a COMMIT
// may still have to be delivered.
func (c *commitConn) Close() error {
	if c.isTaken() {
		return nil
	}
	return c.Conn.Close()
}

// SetDeadline implements net.Conn.
func (c *commitConn) SetDeadline(t time.Time) error { return c.limit(c.Conn.SetDeadline, t) }

// SetReadDeadline implements net.Conn.
func (c *commitConn) SetReadDeadline(t time.Time) error { return c.limit(c.Conn.SetReadDeadline, t) }

// SetWriteDeadline implements net.Conn.
func (c *commitConn) SetWriteDeadline(t time.Time) error { return c.limit(c.Conn.SetWriteDeadline, t) }

func (c *commitConn) limit(set func(time.Time) error, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken {
		return nil
	}
	return set(t)
}

// commitFinder follows the messages of a client as they pass.
type commitFinder struct {
	started bool // the untyped messages at the beginning are over
	pending []byte
}

// sees tells whether a COMMIT ends in p. pgx sends it alone.
func (f *commitFinder) sees(p []byte) (found bool) {
	f.pending = append(f.pending, p...)
	for {
		msg := f.message()
		if msg == nil {
			return found
		}
		if f.started {
			found = found || isCommit(msg)
		} else {
			f.started = startsSession(msg)
		}
		f.pending = bytes.Clone(f.pending[len(msg):])
	}
}

// message is the first complete one that is pending.
func (f *commitFinder) message() []byte {
	head := 0 // the type, which the first messages lack
	if f.started {
		head = 1
	}
	if len(f.pending) < head+4 {
		return nil
	}
	size := head + int(binary.BigEndian.Uint32(f.pending[head:]))
	if size < head+4 || len(f.pending) < size {
		return nil
	}
	return f.pending[:size]
}

// isCommit tells a COMMIT in a message of the simple protocol.
func isCommit(msg []byte) bool {
	return msg[0] == 'Q' && strings.EqualFold(strings.Trim(string(msg[5:]), "\x00; "), "commit")
}

// startsSession tells the startup message from the requests for encryption that
// may stand before it.
func startsSession(msg []byte) bool {
	const ssl, gss = 80877103, 80877104
	if len(msg) < 8 {
		return true
	}
	code := binary.BigEndian.Uint32(msg[4:])
	return code != ssl && code != gss
}
