package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// superuser owns the server; nobody else is known to it.
const superuser = "linekeeper"

// Postgres is a server with the means to make databases on it.
type Postgres struct {
	*Proc
	*Databases
}

// StartPostgres makes a cluster if there is none, starts it and returns when it
// accepts connections: half a second for a new one. The error wraps ErrMissing
// if there is no Postgres. As root it runs as user postgres or nobody; a kept
// server's Dir must come from Reachable. Args are for instance
// "-c", "log_statement=all".
func StartPostgres(ctx context.Context, o Options) (*Postgres, error) {
	cred, err := unprivileged()
	if err != nil {
		return nil, err
	}
	path, err := postgresFor(o.Dir)
	if err != nil {
		return nil, err
	}
	p, err := newProc(PostgresServer, path, o)
	if err != nil {
		return nil, err
	}
	// Not SIGTERM, which waits for clients to go, nor SIGKILL, after which shared
	// memory stays behind.
	p.cred, p.bye, p.quit = cred, syscall.SIGINT, syscall.SIGQUIT
	p.ready = func(_ context.Context, pid int) error { return accepts(dataDir(p.Dir), pid) }
	if err := initialize(ctx, p); err != nil {
		p.Close()
		return nil, err
	}
	if err := p.launch(ctx, o.Port, func(port int) []string { return postgresArgs(p, port, o.Args) }); err != nil {
		return nil, err
	}
	dbs, err := OpenDatabases(fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", superuser, p.Addr))
	return &Postgres{p, dbs}, err
}

func dataDir(dir string) string { return filepath.Join(dir, "data") }

// postgresFor prefers the version that made the data in dir: no other can read
// it. Without one the newest tries, and says in its log what is wrong.
func postgresFor(dir string) (string, error) {
	made, _ := os.ReadFile(filepath.Join(dataDir(dir), "PG_VERSION"))
	version, _ := strconv.Atoi(strings.TrimSpace(string(made)))
	for _, path := range candidates(PostgresServer) {
		if version != 0 && major(path) == version {
			return path, nil
		}
	}
	return Find(PostgresServer)
}

// initialize makes the cluster's files, unless they are there. They get their
// name when they are complete: half a cluster, left by a kill, is made anew.
func initialize(ctx context.Context, p *Proc) error {
	if !reaches(p.cred, p.Dir) {
		return fmt.Errorf("the user that postgres runs as can't get to %s", p.Dir)
	}
	data := dataDir(p.Dir)
	if _, err := os.Stat(data); err == nil {
		return nil
	}
	half := data + ".new"
	if err := errors.Join(os.RemoveAll(half), os.Mkdir(half, 0o700)); err != nil {
		return err
	}
	if p.cred != nil {
		if err := os.Chown(half, int(p.cred.Uid), int(p.cred.Gid)); err != nil {
			return err
		}
	}
	if err := initdb(ctx, p, half); err != nil {
		return err
	}
	return os.Rename(half, data)
}

func initdb(ctx context.Context, p *Proc, data string) error {
	args := []string{"-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions"}
	if p.remove {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, beside(p.path, "initdb"), args...)
	cmd.Dir, cmd.SysProcAttr = p.Dir, &syscall.SysProcAttr{Credential: p.cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", data, err, out)
	}
	return nil
}

func postgresArgs(p *Proc, port int, more []string) []string {
	set := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port),
		// TCP only: the path of a socket has a limit that a deep Dir exceeds.
		"unix_socket_directories=",
		"max_connections=200", "jit=off",
		// The default lives in /dev/shm, where a killed server would leave it.
		"dynamic_shared_memory_type=mmap",
	}
	if p.remove {
		set = append(set, "fsync=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0",
			"max_wal_size=1GB", "autovacuum=off")
	}
	args := []string{"-D", dataDir(p.Dir)}
	for _, s := range set {
		args = append(args, "-c", s)
	}
	return append(args, more...)
}

// accepts looks where pg_ctl looks: the server's own file says who it is and
// when it is ready. Nothing need connect, and no stranger can answer.
func accepts(data string, pid int) error {
	b, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 8 || lines[0] != strconv.Itoa(pid) || strings.TrimSpace(lines[7]) != "ready" {
		return errors.New("starting up")
	}
	return nil
}
