// Command linekeeper is admission control for an order API: a waiting line in
// Redis, a scheduler that lets people through at a rate the database can bear,
// entry tokens, and orders that take each token exactly once.
//
// This package is the only one that knows all the others. `serve` wires them;
// `dev` does the same around private servers of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	_ "time/tzdata" // rooms have days of their own, and an image from scratch knows no zones

	"github.com/alecthomas/kong"

	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/load"
	"github.com/linekeeper/linekeeper/internal/sim"
)

// cli is the command line. Every setting is also an environment variable, a
// *_FILE and a line of the YAML file; package config has the order.
type cli struct {
	config.Source
	Serve      serveCmd      `cmd:"" help:"Run Linekeeper against a Redis and a Postgres."`
	Dev        devCmd        `cmd:"" help:"Run everything on this machine: private Redis and Postgres, a room and a product to try."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database to the schema of this binary, or back."`
	Keys       keysCmd       `cmd:"" help:"Signing keys."`
	AdminToken adminTokenCmd `cmd:"" name:"admin-token" help:"Admin tokens."`
	Setup      setupCmd      `cmd:"" help:"Make what a stack lacks: the schema, secrets, a room and a product to try. Safe to repeat."`

	Room    roomCmd    `cmd:"" help:"Rooms and their settings, through the operators' API."`
	Member  memberCmd  `cmd:"" help:"Members of a room, through the operators' API."`
	Code    codeCmd    `cmd:"" help:"Access codes of rooms, through the operators' API."`
	Product productCmd `cmd:"" help:"What is sold, through the operators' API."`
	Outbox  outboxCmd  `cmd:"" help:"Events that orders have left, through the operators' API."`
	Audit   auditCmd   `cmd:"" help:"Who changed what, newest first."`
	Token   tokenCmd   `cmd:"" help:"Queue tickets and entry tokens."`

	Draw        drawCmd        `cmd:"" help:"Places by lot, and whether they were."`
	Simulate    simulateCmd    `cmd:"" help:"Run a room in a simulation, to choose its settings before anybody comes."`
	Load        loadCmd        `cmd:"" help:"Let a crowd loose on a room, measure it, and look whether it keeps its promises."`
	Settings    configCmd      `cmd:"" name:"config" help:"Settings of a process."`
	Doctor      doctorCmd      `cmd:"" help:"Examine the settings, Redis, Postgres and every room, and say what to do."`
	Healthcheck healthcheckCmd `cmd:"" help:"Ask the process on this machine whether it is ready: for container probes."`
	Completion  completionCmd  `cmd:"" help:"Print a script that completes this command line in a shell."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// streams are where commands read and write: results to out, all else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run is main without the process: 0 all well, 1 failed, 2 called or
// configured wrongly, 3 the question has no answer.
func run(ctx context.Context, args []string, env config.Env, std streams) int {
	var c cli
	k, exited, err := parse(&c, args, env, std)
	if exited {
		return 0
	}
	if err != nil {
		report(std.err, err)
		return 2
	}
	k.BindTo(ctx, (*context.Context)(nil))
	err = k.Run(std, env)
	var m misuse
	var none sim.NoAnswer
	var nowhere load.Unreachable
	switch {
	case errors.As(err, &m):
		report(std.err, m.error)
		return 2
	case errors.As(err, &none):
		report(std.err, fmt.Errorf("none will do: %w", none))
		return 3
	case errors.As(err, &nowhere):
		report(std.err, nowhere)
		return 3
	case err != nil:
		report(std.err, err)
		return 1
	}
	return 0
}

// misuse is an error of whoever called, found while a command runs.
type misuse struct{ error }

// exit unwinds kong after --help, which it wants to end the process with.
type exit struct{}

func parse(c *cli, args []string, env config.Env, std streams) (k *kong.Context, exited bool, err error) {
	defer func() {
		if r := recover(); r == (exit{}) {
			exited = true
		} else if r != nil {
			panic(r)
		}
	}()
	k, err = config.Parse(c, args, env,
		kong.Name("linekeeper"), kong.UsageOnError(), kong.Writers(std.out, std.err),
		kong.Description("Admission control for an order API."), kong.PostBuild(withExamples),
		kong.Exit(func(int) { panic(exit{}) }))
	return k, false, err
}

// report prints each of the joined errors on a line of its own. An error that
// only wraps a join keeps its words in front, and is one line as well.
func report(w io.Writer, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && errors.Join(joined.Unwrap()...).Error() == err.Error() {
		for _, e := range joined.Unwrap() {
			report(w, e)
		}
		return
	}
	fmt.Fprintln(w, "linekeeper:", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}

type versionCmd struct{ output }

// Run prints what was built and, as JSON, with which Go.
func (c *versionCmd) Run(std streams) error {
	v, err := operators.NewView(map[string]string{"version": version(), "go": runtime.Version()}, func(w io.Writer) {
		fmt.Fprintln(w, "linekeeper", version())
	})
	return c.shown(std, v, err)
}

// version is the module's, as the toolchain has recorded it.
func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}
