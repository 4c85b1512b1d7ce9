//go:build unix && !linux

package docs

import "syscall"

// attributes put a process in a group of its own, which can be signalled as
// Ctrl-C does.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
