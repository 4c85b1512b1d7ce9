package devstack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Throw-away directories carry the pid of the process that made them, so that a
// later one can tell which have lost theirs.
const prefix = "linekeeper-run-"

// newDir makes the directory of a throw-away server.
func newDir() (string, error) {
	Sweep()
	dir, err := os.MkdirTemp(scratch(), fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	// Postgres runs as somebody else where we are root, and must get through.
	return dir, os.Chmod(dir, 0o711)
}

// scratch is where throw-away directories are made: in memory if there is room.
func scratch() string {
	if dir := memoryDir(); dir != "" {
		return dir
	}
	cred, err := unprivileged()
	if err == nil && !reaches(cred, os.TempDir()) {
		return "/var/tmp"
	}
	return os.TempDir()
}

// Sweep removes what killed processes left: their throw-away directories and,
// where the system does not do it, the servers in them. Every start of a
// throw-away server sweeps first.
func Sweep() {
	left, _ := filepath.Glob(filepath.Join(scratch(), prefix+"*-*"))
	for _, dir := range left {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if pid, err := strconv.Atoi(owner); err == nil && !alive(pid) {
			reap(dir)
			discard(dir)
		}
	}
}

// alive also counts a process of another user, which may not be signalled.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// reap kills the server that a pid file names, if that process is still the one
// that was started on dir.
func reap(dir string) {
	b, err := os.ReadFile(pidFile(dir))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(string(b))
	if err == nil && strings.Contains(command(pid), dir) {
		for _, child := range children(pid) {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// discard removes a throw-away directory. Another user's stays: its owner's next
// start removes it.
func discard(dir string) {
	freeShared(dir)
	_ = os.RemoveAll(dir)
}

// claimDir makes dir if need be and locks it for this process. A server still
// running in it has lost its parent, and is ended.
func claimDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s is in use by another process", dir)
	}
	reap(dir)
	return f, nil
}

// Reachable returns the directory to use for a kept Postgres that is wanted in
// dir, and makes it. Postgres refuses to run as root and is started as another
// user; where that user can't get to dir (below /root, for instance) it is a
// directory in /var/tmp, always the same for the same dir, and moved is true. A
// file named origin in it says what was wanted.
func Reachable(dir string) (used string, moved bool, err error) {
	cred, err := unprivileged()
	if err != nil {
		return "", false, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", false, err
	}
	if reaches(cred, dir) {
		// Asked again once it is there: a strict umask closes what we make.
		if err := os.MkdirAll(dir, 0o755); err != nil || reaches(cred, dir) {
			return dir, false, err
		}
	}
	sum := sha256.Sum256([]byte(dir))
	used = fmt.Sprintf("/var/tmp/linekeeper-%x", sum[:6])
	if err := ours(used); err != nil {
		return "", false, err
	}
	return used, true, os.WriteFile(filepath.Join(used, "origin"), []byte(dir+"\n"), 0o644)
}

// ours makes a directory in a place where anybody may make one, and refuses one
// that somebody else made first.
func ours(dir string) error {
	if err := os.Mkdir(dir, 0o755); err == nil {
		return os.Chmod(dir, 0o755) // whatever the umask says
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || !ok || int(sys.Uid) != os.Getuid() || st.Mode()&0o022 != 0 {
		return fmt.Errorf("%s exists and is not a directory that only we can write", dir)
	}
	return nil
}

// unprivileged is the user that Postgres runs as: nil, the present one, unless
// that is root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("there is no user postgres or nobody to run postgres as")
}

// reaches says whether a user can get to dir: may pass through each directory
// on the way that exists, and through those that a link on the way leads to.
func reaches(cred *syscall.Credential, dir string) bool {
	if cred == nil {
		return true
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil && real != dir && !reaches(cred, real) {
		return false
	}
	up := filepath.Dir(dir)
	return (err != nil || passes(cred, dir)) && (up == dir || reaches(cred, up))
}

// passes says whether a user may pass through one directory.
func passes(cred *syscall.Credential, dir string) bool {
	st, err := os.Stat(dir)
	if err != nil {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	bit := os.FileMode(0o001)
	switch {
	case !ok:
		return false
	case sys.Uid == cred.Uid:
		bit = 0o100
	case sys.Gid == cred.Gid:
		bit = 0o010
	}
	return st.Mode()&bit != 0
}
