package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// lossy stands between a process and Redis. It has every script executed, and
// of some it drops the reply and the connection with it: the process can't know
// what has happened.
type lossy struct {
	addr, redis string

	mu      sync.Mutex
	calls   map[string]int // by the hash of the script
	dropped map[string]int
	open    map[net.Conn]bool
}

func newLossy(t *testing.T, redis string) *lossy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &lossy{addr: l.Addr().String(), redis: redis, calls: map[string]int{}, dropped: map[string]int{}, open: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.closeAll()
		wg.Wait()
	})
	return p
}

func (p *lossy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *lossy) hold(c net.Conn, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if is {
		p.open[c] = true
	} else {
		delete(p.open, c)
	}
}

// serve passes one request at a time on and its reply back.
func (p *lossy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.redis)
	if err != nil {
		return
	}
	defer server.Close()
	p.hold(client, true)
	defer p.hold(client, false)
	requests, replies := bufio.NewReader(client), bufio.NewReader(server)
	for {
		args, raw, err := readRequest(requests)
		if err != nil {
			return
		}
		if _, err := server.Write(raw); err != nil {
			return
		}
		var reply bytes.Buffer
		shared := requests.Buffered() > 0 // more of a pipeline is to come
		if err := copyReply(&reply, replies); err != nil || !shared && p.drops(args) {
			return
		}
		if _, err := client.Write(reply.Bytes()); err != nil {
			return
		}
	}
}

// drops decides about the reply to a script: of each script every fourth and
// fifth of five is lost, so that a retry is sometimes lost too; of those that share a
// pipeline the last alone: of four some would always be lost. The scripts of
// the lock have one key and are left alone: losing the lead only takes time.
func (p *lossy) drops(args []string) bool {
	if len(args) < 3 || args[2] == "1" {
		return false
	}
	var script string
	switch strings.ToLower(args[0]) {
	case "evalsha":
		script = args[1]
	case "eval":
		sum := sha1.Sum([]byte(args[1])) // how Redis names scripts
		script = hex.EncodeToString(sum[:])
	default:
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[script]++
	drop := p.calls[script]%5 >= 3
	if drop {
		p.dropped[script]++
	}
	return drop
}

// readRequest reads one command: an array of bulk strings.
func readRequest(r *bufio.Reader) (args []string, raw []byte, err error) {
	var all bytes.Buffer
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, nil, err
	}
	all.WriteString(line)
	n, err := strconv.Atoi(strings.Trim(line, "*\r\n"))
	if err != nil || line[0] != '*' {
		return nil, nil, errors.New("not a command")
	}
	for range n {
		from := all.Len()
		if err := copyReply(&all, r); err != nil {
			return nil, nil, err
		}
		_, text, _ := bytes.Cut(all.Bytes()[from:], []byte("\r\n"))
		args = append(args, string(bytes.TrimSuffix(text, []byte("\r\n"))))
	}
	return args, all.Bytes(), nil
}

// copyReply copies one value of the protocol, whatever is in it.
func copyReply(w *bytes.Buffer, r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	w.WriteString(line)
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:])) // other kinds have no length
	switch line[0] {
	case '$', '=', '!': // so many bytes
		if n < 0 {
			return nil
		}
		_, err = io.CopyN(w, r, int64(n)+2)
		return err
	case '%': // so many pairs
		n *= 2
	case '*', '~', '>': // so many values
	default:
		return nil
	}
	for range n {
		if err := copyReply(w, r); err != nil {
			return err
		}
	}
	return nil
}
