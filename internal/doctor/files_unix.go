//go:build unix

package doctor

import "syscall"

// maxOpenFiles is the limit that a serving process has too: the Go runtime
// raises the soft limit to the hard one at every start.
func maxOpenFiles() (uint64, error) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err
}
