package child_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/child"
)

// ends waits until it has, for as long as a busy machine may need.
func ends(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestItHasAGroupOfItsOwnAndWhatItWroteIsThereWhenItHasEnded(t *testing.T) {
	t.Parallel()
	cmd, out := exec.Command("sh", "-c", "echo begun; exec sleep 60"), &child.Output{}
	cmd.Stdout = out
	ended, err := child.Start(cmd)
	require.NoError(t, err)
	group, err := syscall.Getpgid(cmd.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, cmd.Process.Pid, group)
	require.Eventually(t, func() bool { return out.String() == "begun\n" }, 30*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	ends(t, ended)
	require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

func TestWhatCanNotBeStartedHasEnded(t *testing.T) {
	t.Parallel()
	ended, err := child.Start(exec.Command("/there/is/no/such/program"))
	require.ErrorIs(t, err, os.ErrNotExist)
	ends(t, ended)
}
