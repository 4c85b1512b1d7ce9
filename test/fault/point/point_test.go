//go:build faults

package point_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/fault/point"
	"github.com/linekeeper/linekeeper/test/harness"
)

// envPass has a child process pass a failpoint, say so, and end.
const envPass = "LINEKEEPER_TEST_PASS"

func passing(t *testing.T, points string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envPass+"=O3-claimed", point.EnvPoints+"="+points)
	return cmd
}

func TestAProcessDiesWhereItIsTold(t *testing.T) {
	cmd := passing(t, "O3-claimed=kill")
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, syscall.SIGKILL, ended.Sys().(syscall.WaitStatus).Signal())
	require.Equal(t, "failpoint O3-claimed: kill\n", string(out))
}

func TestAProcessPassesWhatIsNotArmed(t *testing.T) {
	out, err := passing(t, "O4-begun=kill;O3-claimed=kill@0").CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "passed", string(out))
}

func TestAProcessLags(t *testing.T) {
	start := time.Now()
	out, err := passing(t, "O3-claimed=sleep:150ms").CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "failpoint O3-claimed: sleep\npassed", string(out))
	require.GreaterOrEqual(t, time.Since(start), 150*time.Millisecond)
}

func TestAProcessStopsAndGoesOn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	cmd := passing(t, "O3-claimed=stop")
	var out strings.Builder
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if it is still there
	harness.Eventually(t, 10*time.Second, "the child stops", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.NoError(t, cmd.Wait())
	require.Equal(t, "passed", out.String())
}

func TestAProcessWithMisspeltFaultsDoesNotStart(t *testing.T) {
	out, err := passing(t, "O3-claimed=explode").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `point: LINEKEEPER_FAULTPOINTS: failpoint O3-claimed: "explode" is not kill, stop or sleep:DURATION`)
}

type whose struct{}

func TestAHandlerIsToldWhoPassesWhat(t *testing.T) {
	var got []any
	point.SetHandler(func(ctx context.Context, name string) { got = append(got, ctx.Value(whose{}), name) })
	point.At(context.WithValue(t.Context(), whose{}, 3), "O3-claimed")
	point.SetHandler(nil)
	point.At(t.Context(), "O3-claimed")
	require.Equal(t, []any{3, "O3-claimed"}, got)
}

func TestEachNodeHasAClockOfItsOwn(t *testing.T) {
	point.SetSkew(func(ctx context.Context) time.Duration { return time.Duration(ctx.Value(whose{}).(int)) * time.Second })
	ctx := context.WithValue(t.Context(), whose{}, -3)
	require.Equal(t, "1764499997000000", point.AppClock(ctx, "1764500000000000"))
	point.SetSkew(nil)
	require.Equal(t, "1764500000000000", point.AppClock(ctx, "1764500000000000"))
}
