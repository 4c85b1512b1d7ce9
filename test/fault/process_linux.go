package fault

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes put a process in a group of its own, so that Ctrl-C reaches the
// tests first, and end it with them however they end.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Halted tells whether the process stands still: by Stop, or because it has
// stopped itself at a failpoint.
func (p *Process) Halted() bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "stat"))
	if err != nil || p.Ended() {
		return false
	}
	// pid (name) state ...; the name may hold anything, brackets too.
	_, state, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	return strings.HasPrefix(state, "T")
}
