//go:build faults

package verify

import "syscall"

// childAttributes put a process in a group of its own, and end it with the test
// binary however that dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
