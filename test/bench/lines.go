package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// unpolled is how many stand in front of those who poll. Some of them are let
// through while the bench runs, as in any room that is open; who polls waits on.
const unpolled = 1_000

var operator = room.Actor{Name: "bench", Role: "admin", Remote: "127.0.0.1"}

// openRoom makes a room with the defaults, but for change, and returns it as soon
// as a scheduler has begun it.
func (s *site) openRoom(ctx context.Context, name string, change func(*room.Settings)) (queue.Snapshot, error) {
	settings := room.Defaults()
	settings.MaxWaiting = 10_000_000
	change(&settings)
	if _, err := s.rooms.Create(ctx, name, settings, operator); err != nil {
		return queue.Snapshot{}, err
	}
	var snap queue.Snapshot
	err := eventually(ctx, "room "+name+" has begun", func() (ok bool, err error) {
		snap, err = s.line.Snapshot(ctx, name)
		return err == nil, nil
	})
	return snap, err
}

// closeRooms removes rooms, and the naive lines of that name, as soon as nobody
// needs them: what a scheduler does for them would be a part of what comes next.
func (s *site) closeRooms(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := s.rooms.Delete(ctx, name, operator); err != nil {
			return err
		}
		if err := s.rdb.Unlink(ctx, naivePrefix(name)+":waiting").Err(); err != nil {
			return err
		}
		err := eventually(ctx, "room "+name+" is gone", func() (bool, error) {
			n, err := s.rdb.Exists(ctx, key(name, "conf"), key(name, "lane0")).Result()
			return n == 0, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// slow lets one member through a second, so that a line of any length is there to
// the end, and hears as many of them as a room does that lets 50 through a second
// and waits two minutes for the silent: the first 9,000.
func slow(s *room.Settings) { s.BatchSize, s.AwayAfterSeconds = 1, 8940 }

// member is somebody in a line.
type member struct {
	id    string
	score int64
}

// key is a key of a room.
func key(name, part string) string { return prefix + ":{" + name + "}:" + part }

// fill puts n members in the lane of a room of rdb, as enter would have, a
// microsecond apart and up to now. The ids are those of anonymous members.
func fill(ctx context.Context, rdb redis.UniversalClient, name string, n int) ([]member, error) {
	all := make([]member, n)
	first := time.Now().UnixMicro() - int64(n)
	for i := range all {
		all[i] = member{credential.NewMember(), first + int64(i)}
	}
	if err := add(ctx, rdb, key(name, "lane0"), all); err != nil {
		return nil, err
	}
	return all, rdb.HIncrBy(ctx, key(name, "stats"), "entered", int64(n)).Err()
}

func add(ctx context.Context, rdb redis.UniversalClient, key string, all []member) error {
	const each = 5000
	entries := make([]redis.Z, 0, each)
	for i := 0; i < len(all); i += each {
		entries = entries[:0]
		for _, m := range all[i:min(i+each, len(all))] {
			entries = append(entries, redis.Z{Score: float64(m.score), Member: m.id})
		}
		if err := rdb.ZAdd(ctx, key, entries...).Err(); err != nil {
			return fmt.Errorf("fill %s: %w", key, err)
		}
	}
	return nil
}

// ticket is what a member shows to poll.
func (s *site) ticket(snap queue.Snapshot, m member) (string, error) {
	t, err := s.ring.SignTicket(credential.Ticket{
		Room: snap.Room, Sale: snap.Sale, Generation: snap.Generation, Member: m.id,
		Place: queue.Place{Score: m.score}, IssuedAt: snap.Now,
	})
	return t.Reveal(), err
}
