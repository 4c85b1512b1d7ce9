package fault

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
