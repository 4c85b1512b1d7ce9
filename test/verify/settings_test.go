//go:build faults

package verify

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a run is told by its environment.
const (
	envFaults   = "FAULTS"                // quick (the default) or long
	envDuration = "DURATION"              // of each long history, 90s say
	envSeed     = "LINEKEEPER_SEED"       // of everything; without it each run has its own
	envBinary   = "LINEKEEPER_VERIFY_BIN" // the product, built with the tag faults and the overlay
	envKeep     = "LINEKEEPER_VERIFY_DIR" // where the histories of failures stay
	envMutant   = "LINEKEEPER_MUTANT"     // a mutant for the processes: to see a whole run fail
	// envClocks says that the product's wall clock can be wrong (test/fault/wallclock),
	// and so has to be.
	envClocks = "LINEKEEPER_VERIFY_CLOCKS"
)

// long says whether there is time for all of it.
func long() bool { return os.Getenv(envFaults) == "long" }

// duration is how long a history goes on that has no end of its own.
func duration(t testing.TB, quick, ifLong time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(envDuration)
	switch {
	case text != "":
		d, err := time.ParseDuration(text)
		require.NoError(t, err, envDuration)
		return d
	case long():
		return ifLong
	}
	return quick
}

// seedOf is the seed of a test. A failure says it, and how to have it again.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed, fixed := drawSeed(t)
	t.Cleanup(func() {
		if t.Failed() {
			name, _, _ := strings.Cut(t.Name(), "/")
			t.Logf("seed %d (given: %v); again: %s=%d make verify ARGS='-test.run %s'", seed, fixed, envSeed, seed, name)
		}
	})
	return seed
}

func drawSeed(t testing.TB) (seed uint64, fixed bool) {
	t.Helper()
	if text := os.Getenv(envSeed); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, envSeed)
		return seed, true
	}
	var b [8]byte
	_, _ = rand.Read(b[:])
	// Short enough to be typed.
	return binary.BigEndian.Uint64(b[:]) % 1_000_000_000, false
}

// keep is a directory that outlives the test, for what a failure leaves to be
// read.
func keep(t testing.TB, name string) string {
	t.Helper()
	base := os.Getenv(envKeep)
	if base == "" {
		base = filepath.Join(os.TempDir(), "linekeeper-verify")
	}
	require.NoError(t, os.MkdirAll(base, 0o755))
	dir, err := os.MkdirTemp(base, strings.ReplaceAll(name, "/", "-")+"-")
	require.NoError(t, err)
	t.Logf("kept in %s", dir)
	return dir
}
