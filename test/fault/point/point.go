//go:build faults

// Package point is what the copies of product files that test/fault/overlay
// makes are edited to call: failpoints, mutants, and the journal of what scripts
// do. The product itself knows nothing of it; without the build tag faults the
// package is empty, and without the overlay nobody imports it.
//
// A failpoint is a place where the program can be made to die, stop or lag. It
// is set off by the environment of a process (EnvPoints), or by a handler where
// several nodes share one process. With neither it costs one atomic read.
//
// A mutant is a way in which the product could be wrong. One can be alive per
// process, from its start to its end (EnvMutant). With none, a program with the
// overlay does what the product does, and keeps a journal of it.
//
// Package catalog lists them all.
package point

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/linekeeper/linekeeper/test/fault/catalog"
)

// Handler is called at each failpoint passed. It may block, for as long as the
// node that passes is to be held up.
type Handler func(ctx context.Context, name string)

var (
	handler atomic.Pointer[Handler]
	skew    atomic.Pointer[func(context.Context) time.Duration]
)

// SetHandler has h called at each failpoint, instead of what the environment
// says; nil takes it away again.
func SetHandler(h Handler) {
	if h == nil {
		handler.Store(nil)
		return
	}
	handler.Store(&h)
}

// At is a failpoint.
func At(ctx context.Context, name string) {
	if h := handler.Load(); h != nil {
		(*h)(ctx, name)
		return
	}
	a := env.armed[name]
	if a == nil || !a.hit() {
		return
	}
	// The one who has started this process counts these lines.
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", name, a.action)
	switch a.action {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // whatever the signal takes, nothing more is done here
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		// Any thread may get the signal, and this one would run on until all stand
		// still: long enough to send a COMMIT. After SIGCONT this time has passed.
		time.Sleep(200 * time.Millisecond)
	case "sleep":
		time.Sleep(a.pause) // whatever ctx says: a machine that stalls asks nobody
	}
}

// Skew is how far the clock of the node that ctx belongs to is off.
func Skew(ctx context.Context) time.Duration {
	if f := skew.Load(); f != nil {
		return (*f)(ctx)
	}
	return env.skew
}

// SetSkew gives each node of one process a clock of its own; nil takes it away.
func SetSkew(f func(ctx context.Context) time.Duration) {
	if f == nil {
		skew.Store(nil)
		return
	}
	skew.Store(&f)
}

// Names lists all failpoints.
func Names() []string {
	names := make([]string, len(catalog.Points))
	for i, p := range catalog.Points {
		names[i] = p.Name
	}
	return names
}

// Mutants lists all mutants.
func Mutants() []catalog.Mutant { return catalog.Mutants }
