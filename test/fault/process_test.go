package fault

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// start runs a small script that says that it serves, and then goes on talking.
func start(t *testing.T, more string) *Process {
	t.Helper()
	p, err := StartProcess("/bin/sh", []string{"LINEKEEPER_GIVEN=yes"}, "-c", more+`
		echo '{"msg":"serving","public":"127.0.0.1:1","admin":"127.0.0.1:2"}' >&2
		while :; do echo $LINEKEEPER_GIVEN $LINEKEEPER_OTHER; sleep 0.01; done`)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func words(p *Process) int { return strings.Count(p.Said(), "yes") }

func TestStoppedProcessStandsStillAndGoesOn(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	require.NoError(t, p.AwaitServing(t.Context()))
	require.Equal(t, "http://127.0.0.1:1", p.Public)
	require.Equal(t, "http://127.0.0.1:2", p.Admin)
	harness.Eventually(t, 5*time.Second, "it talks", func() bool { return words(p) > 2 })
	require.False(t, p.Halted())
	require.NoError(t, p.Stop())
	if runtime.GOOS == "linux" {
		harness.Eventually(t, 5*time.Second, "it is known to be halted", p.Halted)
	}
	var still int
	harness.Eventually(t, 5*time.Second, "it stands still", func() bool {
		still = words(p)
		time.Sleep(100 * time.Millisecond)
		return words(p) == still
	})
	require.NoError(t, p.Continue())
	harness.Eventually(t, 5*time.Second, "it goes on", func() bool { return words(p) > still })
	require.False(t, p.Ended())
	p.Kill()
	require.True(t, p.Ended())
	require.Equal(t, -1, p.ExitCode())
}

func TestTerminateReachesAStoppedProcess(t *testing.T) {
	t.Parallel()
	p := start(t, "trap 'echo bye; exit 3' TERM;")
	require.NoError(t, p.AwaitServing(t.Context()))
	require.NoError(t, p.Stop())
	require.NoError(t, p.Terminate(t.Context()))
	require.Equal(t, 3, p.ExitCode())
	require.Contains(t, p.Tail(), "bye")
}

func TestTerminateKillsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	p := start(t, "trap '' TERM;")
	require.NoError(t, p.AwaitServing(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, p.Terminate(ctx))
	require.True(t, p.Ended())
}

func TestProcessThatEndsInsteadOfServingSaysWhy(t *testing.T) {
	t.Parallel()
	p := start(t, "echo no database; exit 1;")
	require.ErrorContains(t, p.AwaitServing(t.Context()), "no database")
}

func TestProcessGetsNoSettingsButItsOwn(t *testing.T) {
	t.Setenv("LINEKEEPER_OTHER", "leaked")
	p := start(t, "")
	require.NoError(t, p.AwaitServing(t.Context()))
	harness.Eventually(t, 5*time.Second, "it talks", func() bool { return words(p) > 0 })
	require.NotContains(t, p.Said(), "leaked")
}
