package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// StartRedis starts a redis-server (or valkey-server) and returns when it
// answers. The error wraps ErrMissing if there is none. Args are Redis settings,
// for instance "--appendonly", "yes".
func StartRedis(ctx context.Context, o Options) (*Proc, error) {
	p, err := newRedis(o)
	if err != nil {
		return nil, err
	}
	if err := p.launch(ctx, o.Port, func(port int) []string { return redisArgs(p, port, o.Args) }); err != nil {
		return nil, err
	}
	return p, nil
}

// newRedis prepares a redis-server, or what is started with its program.
func newRedis(o Options) (*Proc, error) {
	path, err := Find(RedisServer)
	if err != nil {
		return nil, err
	}
	p, err := newProc(RedisServer, path, o)
	if err != nil {
		return nil, err
	}
	p.bye, p.quit = syscall.SIGTERM, syscall.SIGKILL
	p.ready = func(ctx context.Context, pid int) error { return answers(ctx, p.Addr, pid) }
	return p, nil
}

func redisArgs(p *Proc, port int, more []string) []string {
	args := []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", p.Dir, "--daemonize", "no",
		"--maxmemory-policy", "noeviction", "--save", "",
		// The command line names Dir: that is how reap knows the process.
		"--set-proc-title", "no",
	}
	if p.remove {
		args = append(args, "--appendonly", "no")
	} else {
		args = append(args, "--appendonly", "yes", "--appendfsync", "everysec")
	}
	return append(args, more...)
}

// newProc prepares a server: its directory, made or claimed, and its log.
func newProc(part Part, path string, o Options) (*Proc, error) {
	p := &Proc{part: part, path: path, env: o.Env, remove: o.Dir == ""}
	var err error
	if p.remove {
		p.Dir, err = newDir()
	} else if p.Dir, err = filepath.Abs(o.Dir); err == nil {
		p.lock, err = claimDir(p.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", part, err)
	}
	p.log = filepath.Join(p.Dir, string(part)+".log")
	return p, nil
}

// launch gives the server a port and starts it. A port can be taken between the
// look and the bind, by another test binary that looked too: then the server
// says so and ends, and the next port is tried. On an error nothing is left.
func (p *Proc) launch(ctx context.Context, want int, args func(port int) []string) (err error) {
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	for range 20 {
		if p.Port, err = freePort(want); err != nil {
			return err
		}
		p.Addr, p.args, want = address(p.Port), args(p.Port), 0
		ctx, cancel := context.WithTimeout(ctx, startWithin)
		err = p.startOnce(ctx)
		cancel()
		if err == nil || !p.portTaken() {
			return err
		}
	}
	return err
}

// Ping returns nil if a Redis at addr answers and has loaded its data. It speaks
// the protocol by hand: a client library would log every refused connection.
func Ping(ctx context.Context, addr string) error {
	_, err := ask(ctx, addr, "PING")
	return err
}

// answers is Ping, but only for the server that runs as pid: a stranger on the
// same port answers too.
func answers(ctx context.Context, addr string, pid int) error {
	if err := Ping(ctx, addr); err != nil {
		return err
	}
	info, err := ask(ctx, addr, "INFO server")
	if err == nil && !bytes.Contains(info, fmt.Appendf(nil, "process_id:%d\r\n", pid)) {
		err = errors.New("another redis has the port")
	}
	return err
}

// ask sends one inline command and returns the reply.
func ask(ctx context.Context, addr, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, command+"\r\n"); err != nil {
		return nil, err
	}
	// Whoever says no more is hung up on, after the reply: that ends it. (QUIT
	// would do the same, but a Sentinel does not know it.)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return nil, err
	}
	reply, err := io.ReadAll(c)
	switch {
	case err != nil:
		return nil, err
	case len(reply) == 0:
		return nil, io.ErrUnexpectedEOF
	case reply[0] == '-':
		line, _, _ := bytes.Cut(reply[1:], []byte("\r\n"))
		return nil, errors.New(string(line))
	}
	return reply, nil
}
