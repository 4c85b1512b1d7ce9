package child_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/child"
)

const parentEnv = "CHILD_TEST_PARENT"

// The test is a parent itself: it runs once more, starts a process, and is killed.
func TestItEndsWithWhoHasStartedIt(t *testing.T) {
	t.Parallel()
	if os.Getenv(parentEnv) != "" {
		cmd := exec.Command("sh", "-c", "echo begun; exec sleep 60")
		cmd.Stdout = os.Stdout
		ended, err := child.Start(cmd)
		require.NoError(t, err)
		ends(t, ended)
		return
	}
	parent, out := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$"), &child.Output{}
	parent.Env, parent.Stdout = append(os.Environ(), parentEnv+"=1"), out
	ended, err := child.Start(parent)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return out.String() == "begun\n" }, 30*time.Second, time.Millisecond)
	require.NoError(t, parent.Process.Kill())
	ends(t, ended) // which is when the last has ended that could write
}
