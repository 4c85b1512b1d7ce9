// Package child starts processes that end with the one that has started them.
package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd in a process group of its own, so that Ctrl-C in the terminal
// reaches this process first. On Linux it ends with this process, however this one
// ends; elsewhere whoever starts it has to end it. ended is closed when it has, and
// all that it wrote has been taken: how it ended cmd.ProcessState says.
func Start(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	tie(cmd.SysProcAttr)
	done, started := make(chan struct{}), make(chan error, 1)
	go func() {
		// Never unlocked: Linux ends a child with the *thread* that forked it, and
		// this one ends with the goroutine.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(done)
	}()
	return done, <-started
}
