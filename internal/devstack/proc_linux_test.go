package devstack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

func TestKilledPostgresLeavesNoSharedMemory(t *testing.T) {
	t.Parallel()
	pg := startPostgres(t, devstack.Options{})
	b, err := os.ReadFile(filepath.Join(pg.Dir, "data", "postmaster.pid"))
	require.NoError(t, err)
	ids := strings.Fields(strings.Split(string(b), "\n")[6]) // key and id
	require.True(t, segment(t, ids[1]), "the server has no shared memory to leave")
	pg.Kill()
	pg.Close()
	// The kernel frees it when the last of the killed processes has ended.
	for deadline := time.Now().Add(10 * time.Second); segment(t, ids[1]); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the segment is still there")
	}
}

func segment(t *testing.T, id string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/sysvipc/shm")
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == id {
			return true
		}
	}
	return false
}
