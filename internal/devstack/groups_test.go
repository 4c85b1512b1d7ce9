package devstack_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

// becomes waits for what takes a group a few seconds.
func becomes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "not in time: %s", what)
	}
}

// written sends a command and waits until that many replicas have it.
func written(t *testing.T, p *devstack.Proc, command string, replicas int) string {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = fmt.Fprintf(c, "%s\r\nWAIT %d 8000\r\n", command, replicas)
	require.NoError(t, err)
	reply := make([]byte, len("+OK\r\n:0\r\n"))
	_, err = io.ReadFull(c, reply)
	require.NoError(t, err)
	return strings.TrimSpace(string(reply))
}

func startGroup(t *testing.T) *devstack.SentinelGroup {
	t.Helper()
	g, err := devstack.StartSentinelGroup(t.Context(), time.Second)
	skipMissing(t, err)
	t.Cleanup(g.Close)
	return g
}

func startCluster(t *testing.T, o devstack.ClusterOptions) *devstack.Cluster {
	t.Helper()
	c, err := devstack.StartCluster(t.Context(), o)
	skipMissing(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestKilledPrimaryIsReplacedAndFollowsWhenItIsBack(t *testing.T) {
	t.Parallel()
	g := startGroup(t)
	old, err := g.Primary(t.Context())
	require.NoError(t, err)
	require.Same(t, g.Servers[0], old)
	require.Equal(t, "+OK\r\n:2", written(t, old, "SET who me", 2), "both replicas follow")
	old.Kill()
	next := old
	becomes(t, "a replica is promoted", func() bool {
		next, err = g.Primary(t.Context())
		return err == nil && next != old
	})
	require.Equal(t, "$2\r\nme", say(t, next, "GET who"))
	require.Equal(t, "+OK", say(t, next, "SET who you"))
	require.NoError(t, old.Start())
	becomes(t, "the old primary follows", func() bool {
		reply, err := tell(old, "GET who")
		return err == nil && reply == "$3\r\nyou"
	})
}

func TestFailoverOfALivingPrimaryLosesNothing(t *testing.T) {
	t.Parallel()
	g := startGroup(t)
	old := g.Servers[0]
	require.Equal(t, "+OK", say(t, old, "SET who me"))
	require.NoError(t, g.Failover(t.Context()))
	becomes(t, "the old primary follows", func() bool {
		reply, err := tell(old, "SET another 1")
		return err == nil && strings.HasPrefix(reply, "-READONLY")
	})
	now, err := g.Primary(t.Context())
	require.NoError(t, err)
	require.NotSame(t, old, now)
	require.Equal(t, "$2\r\nme", say(t, now, "GET who"))
}

func TestWhatADetachedPrimaryAcknowledgesIsLostWithIt(t *testing.T) {
	t.Parallel()
	g := startGroup(t)
	old := g.Servers[0]
	require.Equal(t, "+OK", say(t, old, "SET kept 1"))
	require.NoError(t, devstack.Detach(t.Context(), old))
	require.Equal(t, "+OK", say(t, old, "SET lost 1"), "it serves as before")
	now, err := g.Primary(t.Context())
	require.NoError(t, err)
	require.Same(t, old, now, "nobody is to notice")
	old.Kill()
	becomes(t, "a replica is promoted", func() bool {
		now, err = g.Primary(t.Context())
		return err == nil && now != old
	})
	require.Equal(t, "$1\r\n1", say(t, now, "GET kept"))
	require.Equal(t, "$-1", say(t, now, "GET lost"))
}

func TestClusterSharesTheSlotsEqually(t *testing.T) {
	t.Parallel()
	c := startCluster(t, devstack.ClusterOptions{})
	require.Len(t, c.Nodes, 3)
	owned := map[*devstack.Proc]int{}
	for i := range 300 {
		p, err := c.Owner(t.Context(), fmt.Sprint("key-", i))
		require.NoError(t, err)
		owned[p]++
		if i < 10 {
			require.Equal(t, "+OK", say(t, p, fmt.Sprintf("SET key-%d 1", i)), "the owner serves the key")
		}
	}
	for _, p := range c.Nodes {
		require.Greater(t, owned[p], 60, "%v", owned)
	}
}

func TestClusterGoesOnWithoutAShardAndGetsItBack(t *testing.T) {
	t.Parallel()
	c := startCluster(t, devstack.ClusterOptions{Replicas: true, NodeTimeout: time.Second})
	old, replica, other := c.Nodes[1], c.Replica(c.Nodes[1]), c.Nodes[2]
	keys := map[*devstack.Proc]string{}
	for i := 0; len(keys) < 3; i++ {
		key := fmt.Sprint("key-", i)
		p, err := c.Owner(t.Context(), key)
		require.NoError(t, err)
		keys[p] = key
	}
	require.Equal(t, "+OK\r\n:1", written(t, old, "SET "+keys[old]+" 1", 1))
	replica.Pause()
	old.Kill()
	becomes(t, "the others count it as failed", func() bool {
		require.Equal(t, "+OK", say(t, other, "SET "+keys[other]+" 1"), "the others go on meanwhile")
		view := say(t, other, "CLUSTER INFO")
		require.Contains(t, view, "cluster_state:ok")
		return strings.Contains(view, "cluster_slots_fail:5461") || strings.Contains(view, "cluster_slots_fail:5462")
	})
	replica.Resume()
	becomes(t, "the replica serves", func() bool {
		p, err := c.Owner(context.WithoutCancel(t.Context()), keys[old])
		return err == nil && p == replica
	})
	becomes(t, "with its data", func() bool {
		reply, err := tell(replica, "GET "+keys[old])
		return err == nil && reply == "$1\r\n1"
	})
}
