package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// clockTick is the unit of times in /proc, which Linux fixes at 100 a second.
const clockTick = 0.01

// cpuSeconds is what a process and its children have used, user and system; the
// children that have ended too. It is 0 where there is no /proc.
func cpuSeconds(pid int) float64 {
	total := own(pid)
	for _, child := range childrenOf(pid) {
		total += own(child)
	}
	return total
}

// own reads fields 14 to 17 of /proc/pid/stat: user, system, and both of children
// that were waited for.
func own(pid int) float64 {
	fields := stat(pid)
	total := 0.0
	for i := 11; i < 15 && i < len(fields); i++ {
		n, _ := strconv.ParseFloat(fields[i], 64)
		total += n
	}
	return total * clockTick
}

// stat is what follows the name, which may hold anything, in /proc/pid/stat.
func stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

func childrenOf(pid int) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var found []int
	for _, d := range dirs {
		child, err := strconv.Atoi(filepath.Base(d))
		if fields := stat(child); err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found
}
