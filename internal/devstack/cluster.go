package devstack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	shards = 3
	slots  = 16384
)

// ClusterOptions say what a Cluster is made of.
type ClusterOptions struct {
	// Replicas gives each primary a replica that takes its place.
	Replicas bool
	// NodeTimeout is how long a node must be silent until the others count it as
	// failed; 0 stands for two seconds.
	NodeTimeout time.Duration
}

// Cluster is three primaries that share the slots equally, in the order of
// Nodes, and where asked for three replicas: Nodes[i+3] follows Nodes[i] to
// begin with. Unlike by default, the slots of a shard that has failed are out of
// reach alone: the rest of the Cluster goes on.
type Cluster struct {
	Nodes []*Proc
}

// StartCluster starts a throw-away Cluster and returns when every node serves
// and knows every other.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	if o.NodeTimeout == 0 {
		o.NodeTimeout = 2 * time.Second
	}
	c := &Cluster{}
	if err := c.start(ctx, o); err != nil {
		c.Close()
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o ClusterOptions) (err error) {
	ctx, cancel := context.WithTimeout(ctx, groupWithin)
	defer cancel()
	n := shards
	if o.Replicas {
		n = 2 * shards
	}
	if c.Nodes, err = startMany(n, func() (*Proc, error) { return startNode(ctx, o.NodeTimeout) }); err != nil {
		return err
	}
	if err := modern(ctx, c.Nodes[0]); err != nil {
		return err
	}
	ids, err := c.meet(ctx)
	if err != nil {
		return err
	}
	for i, replica := range c.Nodes[shards:] {
		// It has to have heard of its primary, which takes until they have met.
		if err := until(ctx, func() error { return do(ctx, replica, "CLUSTER REPLICATE "+ids[i]) }); err != nil {
			return err
		}
	}
	return c.agree(ctx)
}

func startNode(ctx context.Context, timeout time.Duration) (*Proc, error) {
	p, err := newRedis(Options{})
	if err != nil {
		return nil, err
	}
	err = p.launch(ctx, 0, func(port int) []string {
		// By default the nodes talk to each other on port + 10000, which can be one
		// that the system gives to outgoing connections. Where no other is free the
		// server says so itself: 0 is that default.
		bus, _ := freePort(0)
		return redisArgs(p, port, append([]string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", strconv.FormatInt(timeout.Milliseconds(), 10),
			"--cluster-require-full-coverage", "no",
			// A replica takes over however long it has not heard from its primary, and
			// stays with its shard: tests have just one, and hold it back.
			"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no",
		}, followerArgs...))
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// meet gives each primary its slots and makes every node known to every other.
// It returns their ids.
func (c *Cluster) meet(ctx context.Context) ([]string, error) {
	ids := make([]string, len(c.Nodes))
	for i, p := range c.Nodes {
		reply, err := ask(ctx, p.Addr, "CLUSTER MYID")
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(reply), "\r\n") // the length of the id, and the id
		ids[i] = lines[1]
		// Else two nodes have the same epoch, and that has to be settled first.
		commands := []string{fmt.Sprint("CLUSTER SET-CONFIG-EPOCH ", i+1)}
		if i < shards {
			commands = append(commands, fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/shards, (i+1)*slots/shards-1))
		}
		for _, other := range c.Nodes[:i] {
			commands = append(commands, fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %s", other.Port, other.bus()))
		}
		for _, command := range commands {
			if err := do(ctx, p, command); err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}

// bus is the port on which a node talks to the others.
func (p *Proc) bus() string {
	for i, arg := range p.args {
		if arg == "--cluster-port" {
			return p.args[i+1]
		}
	}
	return "0"
}

// agree waits until every node serves, knows all the others as what they are,
// and every replica follows.
func (c *Cluster) agree(ctx context.Context) error {
	for i, p := range c.Nodes {
		err := until(ctx, func() error {
			err := has(ctx, p, "CLUSTER INFO", "cluster_state:ok", fmt.Sprint("cluster_known_nodes:", len(c.Nodes)), fmt.Sprint("cluster_slots_ok:", slots))
			if err != nil {
				return err
			}
			view, err := c.view(ctx, p)
			if replicas := len(view) - primaries(view); err == nil && replicas != len(c.Nodes)-shards {
				err = fmt.Errorf("%s knows %d replicas", p.Addr, replicas)
			}
			return err
		})
		if err != nil {
			return err
		}
		if i < len(c.Nodes)-shards {
			if err := followed(ctx, p, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func primaries(view []member) (n int) {
	for _, m := range view {
		if m.primary {
			n++
		}
	}
	return n
}

// member is a node as another one sees it.
type member struct {
	node    *Proc
	primary bool
	slots   [][2]int // first and last of each range
}

// view is the whole Cluster as p sees it.
func (c *Cluster) view(ctx context.Context, p *Proc) ([]member, error) {
	reply, err := ask(ctx, p.Addr, "CLUSTER NODES")
	if err != nil {
		return nil, err
	}
	var view []member
	for line := range strings.Lines(string(reply)) {
		// id ip:port@bus flags primary ping-sent pong-received epoch link slot ...
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		addr, _, _ := strings.Cut(f[1], "@")
		for _, node := range c.Nodes {
			if node.Addr == addr {
				view = append(view, member{node, strings.Contains(f[2], "master"), ranges(f[8:])})
			}
		}
	}
	return view, nil
}

// ranges reads slots as CLUSTER NODES writes them: 7 or 7-9. One in brackets is
// being moved, and counts where it is listed without.
func ranges(fields []string) (list [][2]int) {
	for _, f := range fields {
		first, last, several := strings.Cut(f, "-")
		if !several {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err1 == nil && err2 == nil {
			list = append(list, [2]int{a, b})
		}
	}
	return list
}

// Owner is the node that serves a key, as the first node that answers sees it.
// A primary that has failed is the owner until its replica has taken over.
func (c *Cluster) Owner(ctx context.Context, key string) (*Proc, error) {
	for _, p := range c.Nodes {
		reply, err := ask(ctx, p.Addr, "CLUSTER KEYSLOT "+key)
		if err != nil {
			continue
		}
		slot, err := strconv.Atoi(strings.TrimPrefix(strings.Split(string(reply), "\r\n")[0], ":"))
		if err != nil {
			return nil, fmt.Errorf("slot of %s: %w", key, err)
		}
		view, err := c.view(ctx, p)
		if err != nil {
			continue
		}
		for _, m := range view {
			for _, r := range m.slots {
				if m.primary && r[0] <= slot && slot <= r[1] {
					return m.node, nil
				}
			}
		}
	}
	return nil, errors.New("no node knows who has " + key)
}

// Replica is the node that follows Nodes[i] to begin with.
func (c *Cluster) Replica(primary *Proc) *Proc {
	for i, p := range c.Nodes[:max(0, len(c.Nodes)-shards)] {
		if p == primary {
			return c.Nodes[i+shards]
		}
	}
	return nil
}

// URL names the primaries as LINEKEEPER_REDIS_URL does.
func (c *Cluster) URL() string {
	urls := make([]string, shards)
	for i, p := range c.Nodes[:shards] {
		urls[i] = "redis://" + p.Addr
	}
	return strings.Join(urls, ",")
}

// Close ends all of the Cluster.
func (c *Cluster) Close() { closeAll(c.Nodes) }

// do sends a command whose reply says nothing.
func do(ctx context.Context, p *Proc, command string) error {
	if _, err := ask(ctx, p.Addr, command); err != nil {
		return fmt.Errorf("%s on %s: %w", command, p.Addr, err)
	}
	return nil
}
