//go:build unix && !linux

package fault

import "syscall"

// attributes put a process in a group of its own, so that Ctrl-C reaches the
// tests first.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Halted tells whether the process stands still. Nobody can tell here.
func (p *Process) Halted() bool { return false }
