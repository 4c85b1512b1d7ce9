// Package e2e shows the promises of the product the way its users meet them:
// on real processes of the binary, over HTTP, on real Redis and Postgres.
//
// The binary is built once per test binary, with -race if the tests have it.
// Every answer in every test is held against api/spec/openapi.yaml, and every
// process must end in order and without having reported a fault of its own.
// Tests keep apart by databases and key prefixes, so all run in parallel; those
// that kill a server have one of their own.
//
// Bounds on time are those of the promises plus slack, because a loaded machine
// is slow and still right. Nothing sleeps: what takes time is asked for again
// until a deadline.
package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/linekeeper/linekeeper/test/harness"
)

const (
	// slack is what a loaded machine may add to a promised time.
	slack = 3 * time.Second
	// patience is for what has no promised time but must come.
	patience = 30 * time.Second
)

// binary is the linekeeper under test. TestMain has no other way to hand it on.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	// Most tests wait most of the time, so there may be more of them than cores.
	parallelGiven := false
	flag.Visit(func(f *flag.Flag) { parallelGiven = parallelGiven || f.Name == "test.parallel" })
	if !parallelGiven {
		_ = flag.Set("test.parallel", "10")
	}
	dir, err := os.MkdirTemp("", "linekeeper-e2e-")
	if err == nil {
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "linekeeper")
		err = build(binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return harness.Run(m)
}

func build(to string) error {
	args := []string{"build", "-buildvcs=false", "-o", to}
	if raced {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "../../cmd/linekeeper")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build linekeeper: %w\n%s", err, out)
	}
	return nil
}

// noteSources looks at every file that the binary is built from while a test
// runs. go test remembers what a test looked at: otherwise it would repeat a
// cached result although the binary has changed.
var noteSources = sync.OnceFunc(func() {
	built := []string{".go", ".lua", ".sql", ".yaml", ".mod", ".sum"}
	_ = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && len(d.Name()) > 2 && d.Name()[0] == '.' {
			return fs.SkipDir
		}
		if err == nil && slices.Contains(built, filepath.Ext(path)) {
			_, _ = os.Stat(path)
		}
		return nil
	})
})
