//go:build unix && !linux

package devstack

import (
	"os/exec"
	"strconv"
	"strings"
)

// children are the processes whose parent is pid.
func children(pid int) []int {
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	var found []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(fields[0])
			found = append(found, child)
		}
	}
	return found
}

// command is the command line of a process, "" if it has ended.
func command(pid int) string {
	out, _ := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return string(out)
}

// memoryDir is "": there is no file system in memory to rely on.
func memoryDir() string { return "" }

// freeShared does nothing: what is left is 56 bytes until the next boot, and the
// owner of a segment can't be told from here.
func freeShared(string) {}
