package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/linekeeper/linekeeper/internal/child"
)

const (
	startWithin = 60 * time.Second // a kept server may have a long log to replay
	stopWithin  = 10 * time.Second
	pollEvery   = 3 * time.Millisecond
)

var errDied = errors.New("the process ended")

// Proc is one server process. Its methods may be called from any goroutine, but
// one test should not start and kill it at the same moment.
type Proc struct {
	Addr string // 127.0.0.1:port, the same through all restarts
	Port int
	Dir  string // data and log

	part   Part
	path   string
	args   []string
	env    []string // besides ours
	log    string
	cred   *syscall.Credential // nil: the user we run as
	bye    syscall.Signal      // asks for an orderly end
	quit   syscall.Signal      // asks for an immediate end, without care for data
	ready  func(ctx context.Context, pid int) error
	remove bool     // Close removes Dir
	lock   *os.File // held while Dir is ours; nil for a throw-away server

	mu   sync.Mutex
	cmd  *exec.Cmd
	done <-chan struct{}
	from int64 // where the present run begins in the log
}

// Start starts the server again after Kill or Stop, with the same arguments and
// address, and returns when it is ready. It does nothing while the server runs.
func (p *Proc) Start() error { return p.start(context.Background()) }

// start tries again while the cause passes by itself: what is left of a killed
// server needs a moment to let go of its memory and its port.
func (p *Proc) start(ctx context.Context) error {
	if p.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for until := time.Now().Add(stopWithin); ; {
		err := p.startOnce(ctx)
		if err == nil || !p.saidSo("still in use") && !p.portTaken() || time.Now().After(until) {
			return err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

func (p *Proc) startOnce(ctx context.Context) error {
	err := p.spawn()
	if err == nil {
		if err = p.awaitReady(ctx); err == nil {
			return nil
		}
		p.Kill()
	}
	return fmt.Errorf("start %s on %s: %w\n%s", p.part, p.Addr, err, p.thisRun())
}

func (p *Proc) spawn() error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, out, out
	cmd.SysProcAttr, cmd.Env = &syscall.SysProcAttr{Credential: p.cred}, append(cmd.Environ(), p.env...)
	st, err := out.Stat()
	if err != nil {
		return err
	}
	done, err := child.Start(cmd)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.cmd, p.done, p.from = cmd, done, st.Size()
	p.mu.Unlock()
	return os.WriteFile(pidFile(p.Dir), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}

func (p *Proc) awaitReady(ctx context.Context) error {
	done, pid := p.Done(), p.Pid()
	for {
		err := p.ready(ctx, pid)
		if err == nil {
			return nil
		}
		select {
		case <-done:
			return errDied
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(pollEvery):
		}
	}
}

// Done is closed when the present run of the server has ended, for whatever
// reason. Start makes a new one.
func (p *Proc) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Pid is the process id of the present, or last, run.
func (p *Proc) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

func (p *Proc) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal does nothing once the process has ended, so it can't hit another one.
func (p *Proc) signal(s syscall.Signal) {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Signal(s)
	}
}

// family sends s to the server's children: Postgres has one for each connection.
func (p *Proc) family(s syscall.Signal) {
	if p.running() {
		for _, pid := range children(p.Pid()) {
			_ = syscall.Kill(pid, s)
		}
	}
}

// Kill ends the server and its children with SIGKILL, as a crash would, and
// waits until it is gone.
func (p *Proc) Kill() {
	if !p.running() {
		return
	}
	p.signal(syscall.SIGSTOP) // no new child while they are counted
	p.family(syscall.SIGKILL)
	p.signal(syscall.SIGKILL)
	<-p.Done()
}

// Pause stops the server and its children without ending them, as if the host
// hung: connections stay open, nothing answers. Resume takes it back.
func (p *Proc) Pause() {
	p.signal(syscall.SIGSTOP)
	p.family(syscall.SIGSTOP)
}

// Resume ends a Pause.
func (p *Proc) Resume() {
	p.family(syscall.SIGCONT)
	p.signal(syscall.SIGCONT)
}

// Stop asks the server to end in order, waits for it, and kills it if that takes
// longer than ten seconds. Start may follow.
func (p *Proc) Stop() { p.end(p.bye) }

func (p *Proc) end(s syscall.Signal) {
	if !p.running() {
		return
	}
	p.Resume()
	p.signal(s)
	select {
	case <-p.Done():
	case <-time.After(stopWithin):
		p.Kill()
	}
}

// Close ends the server for good: in order if it is kept, at once and with all
// its data if it is throw-away.
func (p *Proc) Close() {
	if p.remove {
		p.end(p.quit)
		discard(p.Dir)
		return
	}
	p.Stop()
	_ = os.Remove(pidFile(p.Dir))
	if p.lock != nil {
		_ = p.lock.Close()
	}
}

// Log is everything the server has said since its directory was made.
func (p *Proc) Log() string {
	b, _ := os.ReadFile(p.log) // none yet: nothing was said
	return string(bytes.TrimSpace(b))
}

// thisRun is what the server has said since it was last started.
func (p *Proc) thisRun() string {
	b, _ := os.ReadFile(p.log)
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(bytes.TrimSpace(b[min(p.from, int64(len(b))):]))
}

func (p *Proc) saidSo(what string) bool {
	return strings.Contains(strings.ToLower(p.thisRun()), what)
}

func (p *Proc) portTaken() bool { return p.saidSo("address already in use") }

func pidFile(dir string) string { return filepath.Join(dir, "pid") }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
