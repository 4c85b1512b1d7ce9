package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/fault"
)

// Thirty rooms are what processes share, and what a Cluster spreads over its nodes.
const (
	scaleRooms = 30
	scaleLine  = 4_000 + unpolled // who stands in each
	scaleConns = 192              // 64 for each of three processes
)

// scaleOut is what is compared: the first of three processes alone, two, and three,
// all on one Redis, and three others on a Cluster of three.
type scaleOut struct {
	*world
	servers []*fault.Process
	cluster cluster
}

// cluster is an installation on a Cluster, and what serves it.
type cluster struct {
	*site
	nodes   *devstack.Cluster
	servers []*fault.Process
}

// scale measures polls and enters of thirty rooms by how many processes serve them.
func (w *world) scale(ctx context.Context, res *Result) error {
	s := &scaleOut{world: w, servers: only(w.product)}
	for len(s.servers) < 3 {
		p, err := w.serve(ctx, redisURL(w.redis), "linekeeper")
		if err != nil {
			return err
		}
		s.servers = append(s.servers, p)
	}
	if err := s.openCluster(ctx); err != nil {
		return err
	}
	here, there, err := s.manyLines(ctx)
	if err != nil {
		return err
	}
	polls, err := w.contest(ctx, "poll_scale", scaleConns, s.sides(here, there)...)
	if err != nil {
		return err
	}
	doors, others := manyDoors(&w.newcomers), manyDoors(&w.newcomers)
	enters, err := w.contest(ctx, "enter_scale", scaleConns, s.sides(doors, others)...)
	if err != nil {
		return err
	}
	res.Contests = append(res.Contests, polls, enters)
	for site, d := range map[*site]*doorways{w.site: doors, s.cluster.site: others} {
		if err := site.counted(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// sides have one traffic on one Redis, and another on the Cluster.
func (s *scaleOut) sides(here, there traffic) []side {
	var sides []side
	for n := range s.servers {
		sides = append(sides, side{name: processes(n + 1), servers: s.servers[:n+1], load: here})
	}
	return append(sides, side{name: "three, Cluster", servers: s.cluster.servers, stores: s.cluster.nodes.Nodes, load: there})
}

func processes(n int) string { return [...]string{"one process", "two", "three"}[n-1] }

func (s *scaleOut) openCluster(ctx context.Context) (err error) {
	c := &s.cluster
	c.site = &site{ring: s.ring}
	if c.nodes, err = devstack.StartCluster(ctx, devstack.ClusterOptions{}); err != nil {
		return err
	}
	s.atEnd(c.nodes.Close)
	if c.rdb, err = s.openRedis(c.nodes.URL()); err != nil {
		return err
	}
	c.line = redisstore.New(c.rdb, prefix)
	if c.db, err = s.database(ctx, "clustered"); err != nil {
		return err
	}
	c.rooms = roomstore.New(c.db)
	for len(c.servers) < len(s.servers) {
		p, err := s.serve(ctx, c.nodes.URL(), "clustered")
		if err != nil {
			return err
		}
		c.servers = append(c.servers, p)
	}
	return nil
}

func scaleRoom(i int) string { return fmt.Sprintf("scale%02d", i) }

// manyLines fills the rooms of both installations, and has their members ask.
func (s *scaleOut) manyLines(ctx context.Context) (here, there *polls, err error) {
	here, there = &polls{moved: unpolled}, &polls{moved: unpolled}
	for i := range scaleRooms {
		for site, all := range map[*site]*polls{s.site: here, s.cluster.site: there} {
			c, err := site.crowd(ctx, scaleRoom(i), scaleLine, scaleLine-unpolled, slow)
			if err != nil {
				return nil, nil, err
			}
			all.requests, all.ranks, all.scores = append(all.requests, c.requests...), append(all.ranks, c.ranks...), append(all.scores, c.scores...)
		}
	}
	here.shuffle()
	there.shuffle()
	return here, there, nil
}

// doorways are newcomers to one room after the other.
type doorways struct {
	doors []*enters
	at    atomic.Uint64
}

func manyDoors(count *newcomers) *doorways {
	d := &doorways{}
	for i := range scaleRooms {
		d.doors = append(d.doors, enterRoom(scaleRoom(i), count))
	}
	return d
}

// next implements traffic.
func (d *doorways) next(conn int) ([]byte, int) {
	return d.doors[d.at.Add(1)%scaleRooms].next(conn)
}

// check implements traffic. Answers of all rooms look alike.
func (d *doorways) check(id, status int, body []byte) error {
	return d.doors[0].check(id, status, body)
}

// counted compares what the rooms have counted with how many were told that they
// had entered.
func (s *site) counted(ctx context.Context, d *doorways) error {
	entered := int64(0)
	for i := range scaleRooms {
		snap, err := s.line.Snapshot(ctx, scaleRoom(i))
		if err != nil {
			return err
		}
		entered += snap.Counters["entered"] - scaleLine
	}
	if told := int64(d.doors[0].done.Load()); entered != told {
		return fmt.Errorf("%d have entered, and %d were told so", entered, told)
	}
	return nil
}
