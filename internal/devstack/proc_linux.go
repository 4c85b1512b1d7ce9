package devstack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// children are the processes whose parent is pid. /proc is read by hand: a bare
// system has no ps.
func children(pid int) []int {
	var found []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// pid (name) state ppid ...; the name may hold anything, brackets too.
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, child)
		}
	}
	return found
}

// command is the command line of a process, "" if it has ended.
func command(pid int) string {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return string(bytes.ReplaceAll(b, []byte{0}, []byte{' '}))
}

// memoryDir is a directory in memory, or "" where there is none or less than
// 1 GiB free in it: a container's has 64 MiB unless told otherwise.
func memoryDir() string {
	var fs syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < 1<<30 {
		return ""
	}
	return "/dev/shm"
}

// freeShared removes the shared memory of a killed postgres whose data directory
// will never be started again. The id alone could be somebody else's by now, so
// the key must match too.
func freeShared(dir string) {
	b, _ := os.ReadFile(filepath.Join(dataDir(dir), "postmaster.pid"))
	lines := strings.Split(string(b), "\n")
	if len(lines) < 7 {
		return
	}
	var key int64
	var id int
	if _, err := fmt.Sscan(lines[6], &key, &id); err != nil {
		return
	}
	var seg unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &seg); err == nil && uint32(seg.Perm.Key) == uint32(key) {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}
