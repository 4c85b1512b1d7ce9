package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/linekeeper/linekeeper/internal/child"
)

// Process is one run of the product's binary, to be stopped, continued and
// killed. It ends with the process that started it, on Linux.
type Process struct {
	// Public and Admin are where it serves, once AwaitServing has returned.
	Public, Admin string

	cmd  *exec.Cmd
	out  child.Output
	done <-chan struct{}
}

// StartProcess runs binary with these settings, NAME=value, and no other
// LINEKEEPER_ ones.
func StartProcess(binary string, settings []string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(binary, args...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.WaitDelay = 5 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LINEKEEPER_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(p.cmd.Env, settings...)
	var err error
	if p.done, err = child.Start(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return p, nil
}

// AwaitServing returns when the process has said where it serves. It is an error
// if it ends, or ctx does, before.
func (p *Process) AwaitServing(ctx context.Context) error {
	for {
		for _, line := range p.Logged("serving") {
			p.Public, p.Admin = fmt.Sprint("http://", line["public"]), fmt.Sprint("http://", line["admin"])
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the process has ended instead of serving:\n%s", p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("the process does not serve: %w\n%s", ctx.Err(), p.Tail())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended tells whether it has.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Stop halts the process with SIGSTOP, as a suspended machine would: its
// monotonic clock stands still for it as well, its connections stay open.
func (p *Process) Stop() error { return p.signal(syscall.SIGSTOP) }

// Continue ends Stop.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

// Kill ends the process as a crash would, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.done
}

// Terminate asks the process to end in order, waits, and kills it when ctx ends
// before.
func (p *Process) Terminate(ctx context.Context) error {
	_ = p.signal(syscall.SIGCONT) // a halted process hears nothing
	_ = p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("the process does not end on SIGTERM: %w", ctx.Err())
	}
}

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%v: %w", s, err)
	}
	return nil
}

// ExitCode is that of a process that has ended: -1 if a signal ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Said is all that the process has written.
func (p *Process) Said() string { return p.out.String() }

// Tail is the end of it, for messages.
func (p *Process) Tail() string {
	said := p.Said()
	return said[max(0, len(said)-4000):]
}

// Logged returns the lines of its log with this message.
func (p *Process) Logged(msg string) []map[string]any {
	var found []map[string]any
	for line := range strings.Lines(p.Said()) {
		var fields map[string]any
		if strings.Contains(line, msg) && json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == msg {
			found = append(found, fields)
		}
	}
	return found
}

// Pid is the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }
