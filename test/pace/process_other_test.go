//go:build unix && !linux

package pace

import "syscall"

// attributes put a process in a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
