//go:build unix && !linux

package e2e

import (
	"os/exec"
	"strconv"
	"strings"
)

// processes maps every process of the machine that has not ended to its parent.
func processes() map[int]int {
	parents := map[int]int{}
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && !strings.HasPrefix(f[2], "Z") {
			pid, _ := strconv.Atoi(f[0])
			parents[pid], _ = strconv.Atoi(f[1])
		}
	}
	return parents
}
