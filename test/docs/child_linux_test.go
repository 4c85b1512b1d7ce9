package docs

import "syscall"

// attributes put a process in a group of its own, which can be signalled as
// Ctrl-C does, and end it with the test binary however that dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
