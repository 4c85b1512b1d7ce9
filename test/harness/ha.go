package harness

import (
	"testing"
	"time"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

// silence is how long a server of a group may be silent until the others act:
// long enough for a machine that is busy with other tests, and as short as the
// tests that wait for it need.
const silence = 2 * time.Second

// Sentinel starts a primary, two replicas and three Sentinels of the test's own,
// gone at its end.
func Sentinel(t testing.TB) *devstack.SentinelGroup {
	t.Helper()
	g, err := devstack.StartSentinelGroup(t.Context(), silence)
	must(t, err)
	t.Cleanup(g.Close)
	return g
}

// Cluster starts a Cluster of three primaries of the test's own, gone at its end.
func Cluster(t testing.TB) *devstack.Cluster {
	t.Helper()
	return cluster(t, devstack.ClusterOptions{NodeTimeout: silence})
}

// ReplicatedCluster is Cluster with a replica for each primary.
func ReplicatedCluster(t testing.TB) *devstack.Cluster {
	t.Helper()
	return cluster(t, devstack.ClusterOptions{Replicas: true, NodeTimeout: silence})
}

func cluster(t testing.TB, o devstack.ClusterOptions) *devstack.Cluster {
	t.Helper()
	c, err := devstack.StartCluster(t.Context(), o)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}
