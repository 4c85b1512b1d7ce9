package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

// The tests named Child... are run by the others, each in a process of its own.

const childEnv, reportEnv = "HARNESS_CHILD", "HARNESS_REPORT"

func itself(test string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), childEnv+"=1"), env...)
	return cmd
}

func isChild() bool { return os.Getenv(childEnv) != "" }

func TestMissingPartSkipsButFailsInCI(t *testing.T) {
	t.Parallel()
	for ci, want := range map[string]string{"": "--- SKIP", "true": "--- FAIL"} {
		out, _ := itself("TestChildMissesAPart", "CI="+ci).CombinedOutput()
		require.Contains(t, string(out), want, "with CI=%q", ci)
		require.Contains(t, string(out), MissingPart)
	}
}

func TestChildMissesAPart(t *testing.T) {
	if isChild() {
		must(t, fmt.Errorf("a thing: %w", devstack.ErrMissing))
	}
}

// Not parallel: the sweeps of the tests beside it would end the servers too, and
// it is to be shown that they end by themselves.
func TestKilledTestBinaryLeavesNothing(t *testing.T) {
	for _, part := range []devstack.Part{devstack.RedisServer, devstack.PostgresServer} {
		_, err := devstack.Find(part)
		must(t, err)
	}
	report := filepath.Join(t.TempDir(), "report")
	cmd := itself("TestChildStartsServersAndHangs", reportEnv+"="+report)
	require.NoError(t, cmd.Start())
	var said []string
	Eventually(t, 30*time.Second, "the child's servers are up", func() bool {
		b, _ := os.ReadFile(report)
		said = strings.Fields(string(b))
		return len(said) == 4
	})
	addr, redisDir, dsn, postgresDir := said[0], said[1], said[2], said[3]
	require.NoError(t, devstack.Ping(t.Context(), addr), "nothing to be left")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, as asked

	dbs, err := devstack.OpenDatabases(dsn)
	require.NoError(t, err)
	Eventually(t, 10*time.Second, "the servers are gone", func() bool {
		if runtime.GOOS != "linux" { // there the next test binary's sweep ends them
			devstack.Sweep()
		}
		return devstack.Ping(t.Context(), addr) != nil && dbs.Exec(t.Context(), "postgres", "SELECT 1") != nil
	})
	Eventually(t, 10*time.Second, "their data is gone", func() bool {
		devstack.Sweep() // what the next test binary does first
		return missing(redisDir) && missing(postgresDir)
	})
}

func missing(dir string) bool {
	_, err := os.Stat(dir)
	return os.IsNotExist(err)
}

func TestChildStartsServersAndHangs(t *testing.T) {
	if !isChild() {
		return
	}
	r, pg := RedisServer(t), PostgresServer(t)
	said := strings.Join([]string{r.Addr, r.Dir, pg.DSN("postgres"), pg.Dir}, "\n")
	require.NoError(t, os.WriteFile(os.Getenv(reportEnv), []byte(said), 0o600))
	<-r.Done() // until somebody kills us
}
