package redisstore

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// sharedParts are the files that are no scripts themselves.
var sharedParts = []string{"prelude", "members", "steps", "stock", "gates", "shares", "lifts", "lanes", "upkeep"}

// Case 46, go-redis/redis_rate#93, hibiken/asynq#1086: a key that is not declared
// is an accident waiting for a Cluster, or for a proxy. Here each room's scripts
// run as a user who may touch the room's keys and nothing else, on a Cluster,
// and all of them run.
func TestEveryScriptTouchesTheKeysOfItsRoomOnly(t *testing.T) {
	t.Parallel()
	c := harness.Cluster(t)
	var mu sync.Mutex
	owners, ran := map[any]bool{}, map[string]bool{"raise": true} // which has no observer
	ok := func(script string, _ time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		ran[script] = ran[script] || err == nil
	}
	t.Run("rooms", func(t *testing.T) {
		for i := range 6 {
			room := fmt.Sprint("room-", i)
			owner, err := c.Owner(t.Context(), confKey("t", room))
			require.NoError(t, err)
			owners[owner] = true
			t.Run(room, func(t *testing.T) {
				t.Parallel()
				wholeLife(t, New(confined(t, c, room), "t", WithObserver(ok)), room)
			})
		}
	})
	require.Len(t, owners, 3, "not every shard has had a room")
	for _, name := range scriptNames(t) {
		require.True(t, ran[name], "script %s has not run: let wholeLife use it", name)
	}
}

// confined is a client that may use the keys of one room, and those of none.
func confined(t *testing.T, c *devstack.Cluster, room string) *redis.ClusterClient {
	t.Helper()
	open := func(user string) *redis.ClusterClient {
		o := &redis.ClusterOptions{Username: user, Password: "any"}
		for _, p := range c.Nodes {
			o.Addrs = append(o.Addrs, p.Addr)
		}
		client := redis.NewClusterClient(o)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	rules := []any{"ACL", "SETUSER", room, "on", "nopass", "+@all"}
	for _, key := range append(keys("t", room), "t:term", "t:probe") {
		rules = append(rules, "~"+key)
	}
	err := open("default").ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		return node.Do(ctx, rules...).Err()
	})
	require.NoError(t, err)
	client := open(room)
	stray := redis.NewScript("return redis.call('EXISTS', (string.gsub(KEYS[1], 'conf', 'other')))")
	err = stray.Run(t.Context(), client, []string{confKey("t", room)}).Err()
	require.ErrorContains(t, err, "access", "the user may touch more than the room: this test shows nothing")
	return client
}

// scriptNames lists the files that are scripts.
func scriptNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := fs.ReadDir(luaFS, "lua")
	require.NoError(t, err)
	for _, f := range files {
		name := strings.TrimSuffix(path.Base(f.Name()), ".lua")
		if !slices.Contains(sharedParts, name) {
			names = append(names, name)
		}
	}
	return names
}

// wholeLife runs every script in a room, most of them where they have something
// to do: entering, waiting, being let through, ordering, leaving, expiring.
func wholeLife(t *testing.T, s *Store, room string) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	life := queue.Life{Room: room, Generation: 1, Sale: 1, RestorableFrom: 1, Version: 1, Settings: []byte("{}"), Floors: make([]int64, queue.MaxLanes),
		Rules: queue.Rules{Batch: 4, Interval: 100 * time.Millisecond, TokenTTL: time.Minute, PickupTTL: time.Second, ClaimLease: time.Minute,
			ProcessingTimeout: time.Minute, AwayAfter: time.Minute, ForgetAfter: time.Minute, DoneTTL: time.Minute, MaxWaiting: 100, Weights: []int{2, 1}, Adaptive: true}}
	must(s.Probe(ctx))
	must(s.Create(ctx, life))
	life.Version = 2
	must(s.Update(ctx, life))
	members := []string{"ann", "bob", "cy", "dan", "eve", "fay", "gus"}
	for i, m := range members {
		_, err := s.Enter(ctx, room, m, i%2)
		must(err)
	}
	term, err := s.Terms().Next(ctx)
	must(err)
	_, err = s.Reap(ctx, room) // makes seen, which is then refreshed
	must(err)
	must(s.Heard(ctx, room, members))
	must(s.AddHealth(ctx, room, queue.Report{Process: "p", Number: 1, Health: queue.Health{Failed: 1}}))
	_, err = s.Tune(ctx, room, queue.Step{Generation: 1, Term: term, Leader: "a"}, queue.Tuning{Round: 1, Batch: 4, Memory: []byte("{}")})
	must(err)

	step := queue.Step{Generation: 1, Term: term, Leader: "a", Seq: 1}
	taken, err := s.Reserve(ctx, room, step, queue.Take{Keep: 1, Effective: 4, Max: 500})
	must(err)
	require.Len(t, taken.Taken, 4)
	var decisions []queue.Decision
	for i, c := range taken.Taken {
		decisions = append(decisions, queue.Decision{Member: c.Member, Grant: fmt.Sprint("grant-", i)})
	}
	decisions[3].Grant = ""
	issued, err := s.Issue(ctx, room, step, decisions)
	must(err)
	require.Equal(t, queue.Issued{Granted: 3, Refused: 1}, issued)

	grants := make([]queue.Grant, 2) // the third is not fetched, and its member AWAY soon
	for i := range grants {
		st, err := s.Standing(ctx, room, decisions[i].Member)
		must(err)
		grants[i], err = s.PickUp(ctx, st.Grant, "k1")
		must(err)
		must(s.Claim(ctx, grants[i], "claim", time.Minute))
	}
	sight, err := s.Look(ctx, room, grants[1].Member)
	must(err)
	require.Equal(t, queue.StateClaimed, sight.State)
	must(s.Release(ctx, grants[0], "claim"))
	_, err = s.Leave(ctx, room, grants[0].Member, 0, queue.OutcomeLeft)
	must(err)
	_, err = s.Consume(ctx, room, []queue.Spent{{Member: grants[1].Member, Grant: grants[1].ID, Order: "order"}, {Member: grants[0].Member, Grant: grants[0].ID, Order: "order"}})
	must(err)
	harness.Eventually(t, 10*time.Second, "a grant that nobody fetches ends", func() bool {
		reaped, err := s.Reap(ctx, room)
		must(err)
		return reaped.Away == 1
	})
	for _, c := range taken.Taken {
		_, err = s.Poll(ctx, room, c.Member, c.Place)
		must(err)
	}
	back, err := s.Restore(ctx, room, queue.Lost{Generation: 1, Member: "hal", Ticket: 1, Place: queue.Place{Score: taken.LastScore + 1}})
	must(err)
	require.Equal(t, queue.Waiting, back.Status)
	_, err = s.SnapshotMarks(ctx, room)
	must(err)

	life.Generation, life.Rules.Draw, life.Rules.AdmitsAt = 2, true, time.Unix(1, 0)
	must(s.Create(ctx, life))
	_, err = s.Entrants(ctx, room, 2, 0, 0)
	must(err)
	must(s.Listed(ctx, room, 1))
	must(s.Drop(ctx, life))
}
