// Package devstack runs private redis-server and postgres processes on
// 127.0.0.1, without containers and without the services of the system, for
// `linekeeper dev`, for tests and for benchmarks.
//
// It promises that a server is ready when its start returns, that it is the
// server that was started and no stranger on the same port, and that it ends
// with the process that started it: at once on Linux, however that process
// died; elsewhere by Close, or by the next start, which also removes what a
// killed process left on disk.
//
// There are two kinds of server:
//
//	throw-away (Options.Dir == "")          kept (Options.Dir != "")
//	a new directory, removed by Close       the caller's directory, used again
//	in memory where there is room           on disk
//	Redis keeps nothing, unless Args say    Redis: append-only file, no eviction
//	Postgres: fsync off                     Postgres: fsync on
//
// In both, synchronous_commit stays on: the product refuses a Postgres that
// acknowledges what it may lose, and with fsync off it costs nothing.
//
// A SentinelGroup and a Cluster are several throw-away servers of Redis, for what
// one can't show: failovers, and rooms on different servers.
//
// Whoever can connect to 127.0.0.1 can use these servers without a password.
// They are not meant for production, nor for a machine shared with strangers.
package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Part is a program that the stack is made of.
type Part string

// The parts. A valkey-server serves where there is no redis-server.
const (
	RedisServer    Part = "redis-server"
	PostgresServer Part = "postgres"
)

// ErrMissing means that a part is not installed. Install may help.
var ErrMissing = errors.New("devstack: not installed")

// Options say where a server lives and how long.
type Options struct {
	// Dir is where a kept server has its data and its log. Two processes can't
	// use it at once. "" makes a throw-away server.
	Dir string
	// Port is used if it is free, else another one: read it from the result.
	Port int
	// Args are more arguments for the program. They come last and so win over
	// the stack's own.
	Args []string
	// Env are more variables for the program, NAME=value.
	Env []string
}

// places are where parts are found that are not on PATH. Several versions of
// Postgres can be installed side by side.
var places = map[Part][]string{
	RedisServer: {
		"/usr/bin/redis-server", "/usr/local/bin/redis-server", "/opt/homebrew/bin/redis-server",
		"/usr/bin/valkey-server", "/usr/local/bin/valkey-server", "/opt/homebrew/bin/valkey-server",
	},
	PostgresServer: {
		"/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres",
		"/usr/local/pgsql/bin/postgres", "/usr/local/bin/postgres",
		"/opt/homebrew/opt/postgresql*/bin/postgres", "/usr/local/opt/postgresql*/bin/postgres",
		"/Applications/Postgres.app/Contents/Versions/*/bin/postgres",
	},
}

// Find returns the path of a part: from PATH, else the newest of the usual
// places. The error wraps ErrMissing.
func Find(part Part) (string, error) {
	found := candidates(part)
	if len(found) == 0 {
		return "", fmt.Errorf("%s: %w", part, ErrMissing)
	}
	return found[0], nil
}

// candidates are the programs that can serve as part, the best first.
func candidates(part Part) []string {
	var found []string
	for _, name := range names(part) {
		if path, err := exec.LookPath(name); err == nil && complete(part, path) {
			found = append(found, path)
		}
	}
	var rest []string
	for _, pattern := range places[part] {
		paths, _ := filepath.Glob(pattern) // the patterns are well formed
		for _, path := range paths {
			if executable(path) && complete(part, path) {
				rest = append(rest, path)
			}
		}
	}
	// Stable: within one version the order of places stands.
	slices.SortStableFunc(rest, func(a, b string) int { return major(b) - major(a) })
	return append(found, rest...)
}

func names(part Part) []string {
	if part == RedisServer {
		return []string{"redis-server", "valkey-server"}
	}
	return []string{string(part)}
}

// complete says whether what belongs beside a program is there: a client-only
// package can bring postgres tools without initdb.
func complete(part Part, path string) bool {
	return part != PostgresServer || executable(beside(path, "initdb"))
}

func beside(path, name string) string { return filepath.Join(filepath.Dir(path), name) }

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// major is the version in a path such as /usr/lib/postgresql/15/bin/postgres or
// /opt/homebrew/opt/postgresql@17/bin/postgres, 0 if there is none.
func major(path string) int {
	for dir := range strings.SplitSeq(path, "/") {
		digits := strings.TrimLeft(dir, "abcdefghijklmnopqrstuvwxyz@-")
		if n, err := strconv.Atoi(digits); err == nil {
			return n
		}
	}
	return 0
}
