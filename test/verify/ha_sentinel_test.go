//go:build faults

package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/test/harness"
)

// guarded is a shop on a Sentinel group. The product has a user of its own there,
// so that a server can be cut off from everybody else.
type guarded struct {
	*shop
	group *devstack.SentinelGroup
}

const guardedUser, guardedPassword = "shop", "secret"

func openGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{group: harness.Sentinel(t)}
	for _, p := range g.group.Servers {
		c := redis.NewClient(&redis.Options{Addr: p.Addr})
		require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", guardedUser, "on", ">"+guardedPassword, "~*", "&*", "+@all").Err())
		require.NoError(t, c.Close())
	}
	url := strings.Replace(g.group.URL(), "://", "://"+guardedUser+":"+guardedPassword+"@", 1)
	g.shop = openShop(t, url, harness.DSN(t), fast)
	return g
}

func (g *guarded) primary() (*devstack.Proc, error) { return g.group.Primary(g.t.Context()) }

// mine is a client of one server, as the product's user.
func (g *guarded) mine(p *devstack.Proc) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: p.Addr, Username: guardedUser, Password: guardedPassword})
	g.t.Cleanup(func() { _ = c.Close() })
	return c
}

// cutOff takes a primary away from its replicas and from the Sentinels, and from
// nobody else: it goes on alone, and what it acknowledges is lost.
func (g *guarded) cutOff(p *devstack.Proc) (back func()) {
	g.t.Helper()
	ctx, c := g.t.Context(), g.mine(p)
	require.NoError(g.t, devstack.Detach(ctx, p))
	require.NoError(g.t, c.Do(ctx, "ACL", "SETUSER", "default", "off").Err())
	require.NoError(g.t, c.Do(ctx, "CLIENT", "KILL", "USER", "default").Err())
	return func() {
		require.NoError(g.t, c.Do(ctx, "ACL", "SETUSER", "default", "on").Err())
		require.NoError(g.t, c.Do(ctx, "ACL", "SETUSER", "follower", "on", "nopass", "~*", "&*", "+@all").Err())
	}
}

// follows waits until a server that was the primary follows the one that is.
func (g *guarded) follows(p *devstack.Proc) {
	g.t.Helper()
	c := g.mine(p)
	eventually(g.t, longEnough, "the old primary follows the new one", func() bool {
		info, err := c.Info(g.t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:slave")
	})
}

// R4, R5: the primary is replaced while people enter, poll and order. Whatever it
// was that took it away, what comes of it is judged as one history.
func TestSentinelFailoverBreaksNoPromise(t *testing.T) {
	if !long() {
		t.Skip("takes minutes: FAULTS=long")
	}
	for name, take := range map[string]func(g *guarded, p *devstack.Proc) (back func()){
		"killed": func(_ *guarded, p *devstack.Proc) func() {
			p.Kill()
			return func() {}
		},
		"paused": func(g *guarded, p *devstack.Proc) func() {
			p.Pause()
			return func() {
				p.Resume()
				g.follows(p)
			}
		},
		"cut off": func(g *guarded, p *devstack.Proc) func() {
			back := g.cutOff(p)
			return func() {
				back()
				g.follows(p)
			}
		},
		"asked to go": func(g *guarded, _ *devstack.Proc) func() {
			require.NoError(g.t, g.group.Failover(g.t.Context()))
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openGuarded(t)
			a, b := g.start(), g.start()
			g.begun()
			crowd := g.host(10, a, b)
			crowd.buys(15)
			old, err := g.primary()
			require.NoError(t, err)
			over := g.risk()
			back := take(g, old)
			g.promoted(old, g.primary)
			pause(t.Context(), 2*time.Second)
			back()
			crowd.buys(10) // by then everybody speaks to the new primary
			over()
			seen := crowd.verdict()
			require.True(t, seen || name == "asked to go", "nobody has noticed anything: this test shows nothing")
		})
	}
}
