//go:build unix && !linux

package child

import "syscall"

func tie(a *syscall.SysProcAttr) { a.Setpgid = true }
