//go:build faults

package verify

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/test/harness"
)

// sharded is a shop on a Cluster.
type sharded struct {
	*shop
	cluster *devstack.Cluster
}

// owner is the node that has the room.
func (c *sharded) owner() (*devstack.Proc, error) {
	return c.cluster.Owner(c.t.Context(), c.key("conf"))
}

// node is a client of one node.
func (c *sharded) node(p *devstack.Proc) *redis.Client {
	n := redis.NewClient(&redis.Options{Addr: p.Addr})
	c.t.Cleanup(func() { _ = n.Close() })
	return n
}

// R7: the shard of the room fails while people enter, poll and order.
func TestClusterFailoverBreaksNoPromise(t *testing.T) {
	if !long() {
		t.Skip("takes a minute: FAULTS=long")
	}
	for name, take := range map[string]func(p *devstack.Proc) (back func()){
		"killed": func(p *devstack.Proc) func() {
			p.Kill()
			return func() {}
		},
		"paused": func(p *devstack.Proc) func() {
			p.Pause()
			return p.Resume
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := harness.ReplicatedCluster(t)
			c := &sharded{openShop(t, nodes.URL(), harness.DSN(t), fast), nodes}
			a, b := c.start(), c.start()
			c.begun()
			crowd := c.host(10, a, b)
			crowd.buys(15)
			old, err := c.owner()
			require.NoError(t, err)
			over := c.risk()
			back := take(old)
			c.promoted(old, c.owner)
			back()
			crowd.buys(10)
			over()
			require.True(t, crowd.verdict(), "nobody has noticed anything: this test shows nothing")
		})
	}
}

// R7: the slot of the room moves to another shard, key by key, while people enter,
// poll and order. Until that is done the room is out of reach. Nothing is lost.
func TestRoomWhoseSlotIsMovedBreaksNoPromise(t *testing.T) {
	if !long() {
		t.Skip("takes half a minute: FAULTS=long")
	}
	t.Parallel()
	nodes := harness.Cluster(t)
	c := &sharded{openShop(t, nodes.URL(), harness.DSN(t), fast), nodes}
	a, b := c.start(), c.start()
	c.begun()
	crowd := c.host(10, a, b)
	crowd.buys(15)
	from, err := c.owner()
	require.NoError(t, err)
	to := nodes.Nodes[0]
	if to == from {
		to = nodes.Nodes[1]
	}
	tally.Faults(1)
	c.move(from, to)
	now, err := c.owner()
	require.NoError(t, err)
	require.Same(t, to, now)
	require.True(t, crowd.verdict(), "nobody has noticed anything: this test shows nothing")
}

// move takes the slot of the room from one node to another, a key every so often.
func (c *sharded) move(from, to *devstack.Proc) {
	t := c.t
	t.Helper()
	ctx, src, dst := t.Context(), c.node(from), c.node(to)
	slot := src.ClusterKeySlot(ctx, c.key("conf")).Val()
	srcID, dstID := src.Do(ctx, "CLUSTER", "MYID").Val(), dst.Do(ctx, "CLUSTER", "MYID").Val()
	must := func(n *redis.Client, args ...any) { require.NoError(t, n.Do(ctx, args...).Err(), "%v", args) }
	must(dst, "CLUSTER", "SETSLOT", slot, "IMPORTING", srcID)
	must(src, "CLUSTER", "SETSLOT", slot, "MIGRATING", dstID)
	for {
		keys := src.ClusterGetKeysInSlot(ctx, int(slot), 1).Val()
		if len(keys) == 0 {
			break
		}
		must(src, "MIGRATE", "127.0.0.1", to.Port, keys[0], 0, 5000)
		pause(ctx, 100*time.Millisecond)
	}
	for _, n := range []*redis.Client{dst, src} {
		must(n, "CLUSTER", "SETSLOT", slot, "NODE", dstID)
	}
}
