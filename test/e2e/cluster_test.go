package e2e

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// spread is a deployment on a Cluster, with ten rooms spread over its shards.
type spread struct {
	*world
	cluster *devstack.Cluster
	rooms   []string
}

// over is a deployment on c. The scheduler's lock and all else that is not of
// one room are on the first shard.
func over(t *testing.T, c *devstack.Cluster) *spread {
	t.Helper()
	s := &spread{world: onGroup(t, c.URL()), cluster: c}
	first := func(keys ...string) bool {
		for _, key := range keys {
			if s.owner(key) != c.Nodes[0] {
				return false
			}
		}
		return true
	}
	for i, prefix := 0, s.prefix; !first(s.prefix+":leader", s.prefix+":term", s.prefix+":probe"); i++ {
		s.prefix = fmt.Sprint(prefix, "-", i)
	}
	return s
}

func (s *spread) owner(key string) *devstack.Proc {
	s.t.Helper()
	p, err := s.cluster.Owner(context.WithoutCancel(s.t.Context()), key)
	require.NoError(s.t, err)
	return p
}

// open makes the ten rooms.
func (s *spread) open(set settings) {
	s.t.Helper()
	s.stock("demo", 100_000)
	for i := range 10 {
		s.rooms = append(s.rooms, fmt.Sprint("sale-", i))
		s.operate("POST", "/admin/v1/rooms", settings{"name": s.rooms[i], "settings": set}).is(201)
	}
	for _, name := range s.rooms {
		for _, p := range s.replicas {
			harness.Eventually(s.t, patience, "every process knows "+name, func() bool {
				return s.ask("GET", p.public+"/v1/rooms/"+name, nil, "").status == 200
			})
		}
	}
	for _, p := range s.cluster.Nodes[:3] {
		require.NotEmpty(s.t, s.on(p), "a shard has no room: this test shows nothing")
	}
}

// key is one of a room's keys.
func (s *spread) key(room, part string) string { return s.prefix + ":{" + room + "}:" + part }

// on lists the rooms of one shard, and elsewhere those of all others.
func (s *spread) on(p *devstack.Proc) []string        { return s.whose(p, true) }
func (s *spread) elsewhere(p *devstack.Proc) []string { return s.whose(p, false) }

func (s *spread) whose(p *devstack.Proc, is bool) (names []string) {
	s.t.Helper()
	for _, name := range s.rooms {
		if (s.owner(s.key(name, "conf")) == p) == is {
			names = append(names, name)
		}
	}
	return names
}

func (s *spread) shopperAt(room string) *shopper { return &shopper{w: s.world, t: s.t, room: room} }

// shop is the whole way through rooms, side by side, on both processes.
func (s *spread) shop(a, b *process, rooms ...string) {
	s.t.Helper()
	people, orders := make([]*shopper, len(rooms)), make([]string, len(rooms))
	for i, name := range rooms {
		people[i] = s.shopperAt(name)
		people[i].enter([]*process{a, b}[i%2]).is(201)
	}
	for i, ann := range people {
		ann.until(b, queue.Ready)
		orders[i] = ann.order([]*process{b, a}[i%2], "demo", 1).is(201).order().ID
	}
	for i, ann := range people {
		require.Equal(s.t, orders[i], *ann.until(a, queue.Consumed).OrderID)
	}
}

// direct is a client of one node.
func direct(t testing.TB, p *devstack.Proc) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: p.Addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Case 46 as well: the whole way through on every shard.
func TestTenRoomsSpreadOverAClusterAllMove(t *testing.T) {
	t.Parallel()
	s := over(t, harness.Cluster(t))
	a, b := s.pair()
	s.open(nil)
	s.shop(a, b, s.rooms...)
	require.Equal(t, 10, s.placed())
	s.ticksSince(time.Now(), time.Second+slack, s.rooms...)
	require.NotEqual(t, a.leads(), b.leads(), "one leads, on a Cluster too")

	// What operators do to a room reaches its shard and no other room.
	gone, flushed := s.rooms[0], s.rooms[1]
	node := direct(t, s.owner(s.key(gone, "conf")))
	require.EqualValues(t, 1, node.Exists(t.Context(), s.key(gone, "conf")).Val())
	s.operate("DELETE", "/admin/v1/rooms/"+gone, settings{"confirm": gone}).is(204)
	harness.Eventually(t, patience, "nothing is left of the room", func() bool {
		return node.Exists(t.Context(), s.key(gone, "conf"), s.key(gone, "state"), s.key(gone, "stats")).Val() == 0
	})
	before, _ := s.look(flushed)
	s.operate("POST", "/admin/v1/rooms/"+flushed+"/flush", settings{"confirm": flushed}).is(200)
	harness.Eventually(t, patience, "a new sale begins", func() bool {
		now, ok := s.look(flushed)
		return ok && now.Generation > before.Generation
	})
	for _, name := range s.rooms[2:] {
		now, ok := s.look(name)
		require.True(t, ok)
		require.EqualValues(t, 1, now.Counters["consumed"])
		s.conserved(now)
	}
	s.moves(s.rooms[2], a, b)
}

// moves has the slot of a room moved to another shard while people wait in it
// (R7). Until that is done the room is out of reach, and no other is.
func (s *spread) moves(name string, a, b *process) {
	t := s.t
	t.Helper()
	ctx := t.Context()
	s.operate("POST", "/admin/v1/rooms/"+name+"/pause", nil).is(200)
	harness.Eventually(t, patience, "the room is paused", func() bool {
		now, ok := s.look(name)
		return ok && now.RoomState == "PAUSED"
	})
	var waiting []*shopper
	for i := range 4 {
		waiting = append(waiting, s.shopperAt(name))
		waiting[i].enter(a).is(201)
	}
	from := s.owner(s.key(name, "conf"))
	to := s.cluster.Nodes[0]
	if to == from {
		to = s.cluster.Nodes[1]
	}
	src, dst := direct(t, from), direct(t, to)
	slot := src.ClusterKeySlot(ctx, s.key(name, "conf")).Val()
	srcID, dstID := src.Do(ctx, "CLUSTER", "MYID").Val(), dst.Do(ctx, "CLUSTER", "MYID").Val()
	must := func(c *redis.Client, args ...any) { require.NoError(t, c.Do(ctx, args...).Err(), "%v", args) }
	// Half of the keys are there and half are here.
	move := func(most int) {
		keys := src.ClusterGetKeysInSlot(ctx, int(slot), most).Val()
		require.NotEmpty(t, keys)
		args := []any{"MIGRATE", "127.0.0.1", to.Port, "", 0, 5000, "KEYS"}
		for _, key := range keys {
			args = append(args, key)
		}
		must(src, args...)
	}
	must(dst, "CLUSTER", "SETSLOT", slot, "IMPORTING", srcID)
	must(src, "CLUSTER", "SETSLOT", slot, "MIGRATING", dstID)
	move(2)
	for _, p := range []*process{a, b} {
		got := s.shopperAt(name).enter(p).is(503, "unavailable")
		require.NotEmpty(t, got.header.Get("Retry-After"))
	}
	s.ticksSince(time.Now(), time.Second+slack, s.rooms[3:]...)
	s.shop(a, b, s.rooms[3:6]...)
	move(100)
	for _, c := range []*redis.Client{dst, src} {
		must(c, "CLUSTER", "SETSLOT", slot, "NODE", dstID)
	}
	for rank, w := range waiting {
		harness.Eventually(t, recoverIn, "the room is back", func() bool { return w.poll(a).status == 200 })
		require.EqualValues(t, rank, *w.poll(b).is(200).position().Rank)
	}
	require.Same(t, to, s.owner(s.key(name, "conf")))
	s.operate("POST", "/admin/v1/rooms/"+name+"/resume", nil).is(200)
	for _, w := range waiting {
		w.until(b, queue.Ready)
	}
}

func TestEveryShardIsAskedWhetherItEvicts(t *testing.T) {
	t.Parallel()
	c := harness.Cluster(t)
	w := onGroup(t, c.URL())
	require.NoError(t, direct(t, c.Nodes[2]).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	for range 3 { // whichever shard it comes to first
		w.refuses(1, c.Nodes[2].Addr+": redis has maxmemory-policy allkeys-lru")
	}
}

// A shard that has failed takes its rooms along and no others, until its
// replica serves them. And where that has forgotten the newest terms and the
// lock, nobody is locked out.
func TestFailedShardTakesItsOwnRoomsAlongAndGivesThemBack(t *testing.T) {
	t.Parallel()
	c := harness.ReplicatedCluster(t)
	s := over(t, c)
	a, b := s.pair()
	s.open(settings{"batchSize": 5, "claimLeaseSeconds": 11, "pickupTtlSeconds": 60})
	failing := c.Nodes[1]
	lost, others := s.on(failing), s.elsewhere(failing)
	ready := s.shopperAt(lost[0])
	ready.admitted(a)
	s.operate("POST", "/admin/v1/rooms/"+lost[0]+"/pause", nil).is(200)
	waiting := s.shopperAt(lost[0])
	score := *waiting.enter(b).is(201).position().Score

	// Held back, so that the outage lasts until we have seen what we want.
	c.Replica(failing).Pause()
	failing.Kill()
	for _, p := range []*process{a, b} {
		for _, got := range []answer{s.shopperAt(lost[0]).enter(p), waiting.poll(p), ready.order(p, "demo", 1)} {
			got.is(503, "unavailable")
			require.NotEmpty(t, got.header.Get("Retry-After"))
		}
	}
	// Some time later still, the others tick and their people get on.
	for range 3 {
		s.ticksSince(time.Now(), time.Second+slack, others...)
	}
	s.shop(a, b, others[:3]...)
	require.Equal(t, []int{200, 200}, []int{s.health(a), s.health(b)}, "the rest of the Cluster is well")
	c.Replica(failing).Resume()
	owner := func(of string) func() (*devstack.Proc, error) {
		return func() (*devstack.Proc, error) { return c.Owner(t.Context(), s.key(of, "conf")) }
	}
	s.ticksSince(promoted(t, failing, owner(lost[0])), recoverIn+slack, lost...)
	require.Equal(t, score, *waiting.until(b, queue.Waiting).Score)
	s.operate("POST", "/admin/v1/rooms/"+lost[0]+"/resume", nil).is(200)
	ready.order(b, "demo", 1).is(201)
	require.Equal(t, 4, s.placed())

	s.forgetsTheNewestTerm()
	for _, name := range s.rooms {
		now, ok := s.look(name)
		require.True(t, ok)
		s.conserved(now)
	}
}

// forgetsTheNewestTerm has the shard of the lock fail when another has begun to
// lead, and its replica does not know.
func (s *spread) forgetsTheNewestTerm() {
	t := s.t
	t.Helper()
	first := s.cluster.Nodes[0]
	elsewhere := s.elsewhere(first)
	require.NoError(t, devstack.Detach(t.Context(), first))
	lead := s.leader()
	lead.signal(syscall.SIGTERM)
	lead.awaitEnd(patience)
	next := s.leader()
	s.ticksSince(time.Now(), recoverIn, elsewhere...)
	now, _ := s.look(elsewhere[0])
	term := now.Term

	first.Kill()
	promotion := promoted(t, first, func() (*devstack.Proc, error) { return s.cluster.Owner(t.Context(), s.prefix+":term") })
	s.ticksSince(promotion, recoverIn+slack, s.rooms...)
	now, _ = s.look(elsewhere[0])
	require.Greater(t, now.Term, term, "the room has been led by a term that it knew already")
	require.NotEmpty(t, next.logged("term raised above one that a room has seen"), "the counter was not set back: this test shows nothing")
	s.shop(next, next, elsewhere...)
}
