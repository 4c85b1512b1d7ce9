//go:build faults && !linux

package verify

import "syscall"

// childAttributes put a process in a group of its own.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
