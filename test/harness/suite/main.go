// Command suite is what `make test` runs: it installs the servers that the
// tests need, runs go test with the arguments it is given, and prints what a
// person wants to know: the packages, the output of what failed, and at the end
// the tests that were skipped, with their reasons.
//
// With CI set in the environment it fails if a test was skipped because a
// program was missing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns go test's own exit status, or 1 for what it does not count as a
// failure.
func run(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := devstack.Install(ctx, out, devstack.RedisServer, devstack.PostgresServer); err != nil {
		// Tests that need none of it still run; those that do say so themselves.
		fmt.Fprintln(errOut, err)
	}
	r := newReport(out)
	code, err := goTest(ctx, args, r.read, errOut)
	if err != nil {
		fmt.Fprintln(errOut, err)
		return 1
	}
	missing := r.summary()
	if code == 0 && missing > 0 && os.Getenv("CI") != "" {
		fmt.Fprintf(out, "FAIL: %d tests did not run for want of a program, and CI is set\n", missing)
		return 1
	}
	return code
}

// goTest runs go test -json and gives its events to read. An interrupt reaches
// the tests by the terminal; we wait for what they still have to say.
func goTest(ctx context.Context, args []string, read func(io.Reader) error, errOut io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = errOut
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("run go test: %w", err)
	}
	readErr := read(events)
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), readErr
	}
	return 0, errors.Join(readErr, err)
}
