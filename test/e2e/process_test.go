package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/child"
	"github.com/linekeeper/linekeeper/test/harness"
)

// process is one run of the binary.
type process struct {
	t        testing.TB
	cmd      *exec.Cmd
	out, err *child.Output
	done     <-chan struct{} // closed when it has ended and all output is here

	// The base URLs, once it serves.
	public, admin string
	// faulty allows errors in its log: for tests that take its parts away.
	faulty bool
	killed bool
}

// launch starts the binary in dir ("" for here) with these settings and no
// others. It is stopped, and looked over, at the end of the test.
func launch(t testing.TB, dir string, settings []string, args ...string) *process {
	t.Helper()
	noteSources()
	p := &process{t: t, cmd: exec.Command(binary, args...), out: &child.Output{}, err: &child.Output{}}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.out, p.err
	p.cmd.WaitDelay = 5 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LINEKEEPER_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(p.cmd.Env, settings...)
	var err error
	p.done, err = child.Start(p.cmd)
	require.NoError(t, err)
	t.Cleanup(p.finish)
	return p
}

// tool runs the binary to its end and returns its exit code and what it said.
func tool(t testing.TB, settings []string, args ...string) (code int, out, err string) {
	t.Helper()
	p := launch(t, "", settings, args...)
	p.killed = true // its end is the caller's to judge
	p.awaitEnd(patience)
	return p.exitCode(), p.out.String(), p.err.String()
}

func (p *process) exitCode() int { return p.cmd.ProcessState.ExitCode() }

func (p *process) awaitEnd(within time.Duration) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		p.t.Fatalf("the process has not ended within %v:\n%s", within, p.tail())
	}
}

// said is all that the process has written.
func (p *process) said() string { return p.out.String() + p.err.String() }

// tail is the end of it, for messages.
func (p *process) tail() string {
	said := p.said()
	return said[max(0, len(said)-6000):]
}

// logged returns the lines of the log with this message.
func (p *process) logged(msg string) []map[string]any {
	var found []map[string]any
	for line := range strings.Lines(p.err.String()) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == msg {
			found = append(found, fields)
		}
	}
	return found
}

// awaitServing returns once the process has told where it listens.
func (p *process) awaitServing() *process {
	p.t.Helper()
	harness.Eventually(p.t, patience, "the process serves", func() bool {
		if p.ended() {
			p.t.Fatalf("the process has ended instead of serving:\n%s", p.tail())
		}
		for _, line := range p.logged("serving") {
			p.public, p.admin = fmt.Sprint("http://", line["public"]), fmt.Sprint("http://", line["admin"])
		}
		return p.public != ""
	})
	return p
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// serves tells whether the process has the public API.
func (p *process) serves() bool {
	for _, line := range p.logged("serving") {
		return strings.Contains(fmt.Sprint(line["roles"]), "api")
	}
	return false
}

// leads tells whether the process was the leader when it last said anything
// about it.
func (p *process) leads() bool { return len(p.logged("leading")) > len(p.logged("no longer leading")) }

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(p.t, err)
	}
}

// kill ends the process as a crash would, and waits until it is gone.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
	<-p.done
}

// finish stops the process in order and complains about what it has said.
func (p *process) finish() {
	if !p.ended() {
		p.signal(syscall.SIGTERM)
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Errorf("the process does not end on SIGTERM")
		p.kill()
	}
	if !p.killed && p.exitCode() != 0 {
		p.t.Errorf("the process ended with code %d", p.exitCode())
	}
	for _, bad := range []string{"DATA RACE", "panic", `"level":"ERROR"`} {
		if at := strings.Index(p.said(), bad); at >= 0 && !(p.faulty && strings.Contains(bad, "ERROR")) {
			p.t.Errorf("the process has said: %.3000s", p.said()[max(0, at-200):])
		}
	}
	if p.t.Failed() {
		p.t.Logf("%s has said:\n%s", strings.Join(p.cmd.Args[1:], " "), p.tail())
	}
}
