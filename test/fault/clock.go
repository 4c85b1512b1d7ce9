package fault

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

//go:embed preload/clock.c
var clockSource []byte

// ErrNoPreload means that this machine can't step a server's clock: it is not
// Linux, or has no C compiler.
var ErrNoPreload = errors.New("fault: a C compiler on Linux is needed to step a server's clock")

// Clock is the wall clock of server processes that are started with Env. A step
// takes effect at once, also while they run. It moves what a process asks of the
// C library; programs written in Go do not ask there.
type Clock struct {
	library string
	file    *os.File

	mu    sync.Mutex
	ahead time.Duration
}

// NewClock builds the library that moves clocks into dir, and keeps the shift
// there. Servers of another user must be able to get to dir. The error wraps
// ErrNoPreload where that is the reason. The caller closes it.
func NewClock(dir string) (*Clock, error) {
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		compiler, err = exec.LookPath("cc")
	}
	if err != nil || runtime.GOOS != "linux" {
		return nil, ErrNoPreload
	}
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o644); err != nil {
		return nil, err
	}
	out, err := exec.Command(compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %w\n%s", ErrNoPreload, err, out)
	}
	f, err := os.OpenFile(filepath.Join(dir, "ahead"), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	c := &Clock{library: library, file: f}
	return c, c.Set(0)
}

// Env is what a server needs in its environment.
func (c *Clock) Env() []string {
	return []string{"LD_PRELOAD=" + c.library, "LINEKEEPER_CLOCK_FILE=" + c.file.Name()}
}

// Set puts the clock so far ahead of the machine's, or behind it.
func (c *Clock) Set(ahead time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set(ahead)
}

// Step moves the clock from where it is.
func (c *Clock) Step(by time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set(c.ahead + by)
}

func (c *Clock) set(ahead time.Duration) error {
	b := binary.NativeEndian.AppendUint64(nil, uint64(ahead.Microseconds()))
	if _, err := c.file.WriteAt(b, 0); err != nil {
		return fmt.Errorf("step the clock: %w", err)
	}
	c.ahead = ahead
	return nil
}

// Ahead is how far the clock is from the machine's.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// Close frees the shift's file. Servers keep the shift that they have.
func (c *Clock) Close() { _ = c.file.Close() }
