package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// manager is a package manager: what installs a package, and what each part's
// package is called there.
type manager struct {
	program  string
	install  []string
	packages map[Part]string
	asRoot   bool // needs root; brew refuses it
	used     bool // Install runs it, else it only names the line to paste
}

// managers are looked for in this order.
var managers = []manager{
	{
		// What is merely recommended is not needed to run a server.
		"apt-get", []string{"apt-get", "install", "-y", "--no-install-recommends"},
		map[Part]string{RedisServer: "redis-server", PostgresServer: "postgresql"}, true, true,
	},
	{
		"brew", []string{"brew", "install"},
		map[Part]string{RedisServer: "redis", PostgresServer: "postgresql@17"}, false, true,
	},
	{
		"dnf", []string{"dnf", "install", "-y"},
		map[Part]string{RedisServer: "redis", PostgresServer: "postgresql-server"}, true, false,
	},
	{
		"apk", []string{"apk", "add"},
		map[Part]string{RedisServer: "redis", PostgresServer: "postgresql"}, true, false,
	},
	{
		"pacman", []string{"pacman", "-S", "--noconfirm"},
		map[Part]string{RedisServer: "valkey", PostgresServer: "postgresql"}, true, false,
	},
}

// Install installs those of parts that are missing, with apt-get (through
// `sudo -n` where we are not root) or brew. It says on out what it is about to
// run, and the package manager's output follows. Where it can do neither the
// error is one line with the command to paste, and wraps ErrMissing.
//
// A package may also start a service of the system's own; nothing here uses it.
func Install(ctx context.Context, out io.Writer, parts ...Part) error {
	missing := absent(parts)
	if len(missing) == 0 {
		return nil
	}
	m, ok := here()
	if !ok {
		return fmt.Errorf("%w: %s; install Redis 7 and Postgres 15 or newer so that they are on PATH",
			ErrMissing, strings.Join(named(missing), ", "))
	}
	before, allowed := privilege(ctx, m)
	if !m.used || !allowed {
		return fmt.Errorf("%w: %s; run: %s", ErrMissing, strings.Join(named(missing), ", "), m.line(missing))
	}
	if err := m.run(ctx, out, before, missing); err != nil {
		return fmt.Errorf("install %s: %w; by hand: %s", strings.Join(named(missing), ", "), err, m.line(missing))
	}
	if left := absent(missing); len(left) > 0 {
		return fmt.Errorf("%w after the installation: %s", ErrMissing, strings.Join(named(left), ", "))
	}
	return nil
}

func absent(parts []Part) []Part {
	var missing []Part
	for _, part := range parts {
		if _, err := Find(part); errors.Is(err, ErrMissing) {
			missing = append(missing, part)
		}
	}
	return missing
}

func named(parts []Part) []string {
	var names []string
	for _, part := range parts {
		names = append(names, string(part))
	}
	return names
}

func here() (manager, bool) {
	for _, m := range managers {
		if _, err := exec.LookPath(m.program); err == nil {
			return m, true
		}
	}
	return manager{}, false
}

// privilege is what to put before the command to have the rights it needs, and
// whether these can be had without asking anybody.
func privilege(ctx context.Context, m manager) (before []string, ok bool) {
	root := os.Getuid() == 0
	switch {
	case m.asRoot == root:
		return nil, true
	case root: // and brew refuses that
		return nil, false
	}
	return []string{"sudo", "-n"}, exec.CommandContext(ctx, "sudo", "-n", "true").Run() == nil
}

func (m manager) command(parts []Part) []string {
	words := slices.Clone(m.install)
	for _, part := range parts {
		words = append(words, m.packages[part])
	}
	return words
}

// line is the command for a person to paste.
func (m manager) line(parts []Part) string {
	sudo := ""
	if m.asRoot && os.Getuid() != 0 {
		sudo = "sudo "
	}
	line := sudo + strings.Join(m.command(parts), " ")
	if m.program == "apt-get" && !listed() {
		line = sudo + "apt-get update && " + line
	}
	return line
}

// run installs, and for apt-get once more after an update of its lists: they may
// be missing, as in a new container, or name files that are no longer served.
func (m manager) run(ctx context.Context, out io.Writer, before []string, parts []Part) error {
	if m.program != "apt-get" {
		return say(ctx, out, slices.Concat(before, m.command(parts)))
	}
	// Variables by way of env: sudo passes none of ours on. RUNLEVEL keeps a
	// system without systemd from starting services of its own.
	quiet := []string{"env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"}
	install := slices.Concat(before, quiet, m.command(parts), []string{"-qq", "-o", "Dpkg::Use-Pty=0"})
	if listed() {
		if err := say(ctx, out, install); err == nil || ctx.Err() != nil {
			return err
		}
	}
	if err := say(ctx, out, slices.Concat(before, []string{"apt-get", "update", "-qq"})); err != nil {
		return err
	}
	return say(ctx, out, install)
}

// listed says whether apt has lists of packages at all.
func listed() bool {
	lists, _ := filepath.Glob("/var/lib/apt/lists/*_Packages*")
	return len(lists) > 0
}

// say runs a command after having said so.
func say(ctx context.Context, out io.Writer, words []string) error {
	if _, err := fmt.Fprintf(out, "running: %s\n", strings.Join(words, " ")); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}
