package ratelimit

import (
	"sync"
	"time"
)

// recent remembers something of a bounded number of keys, by their hashes; those
// that were quiet longest are forgotten first.
type recent[V any] struct {
	shards [shards]shard[V]
}

// newRecent remembers up to most keys.
func newRecent[V any](most int) *recent[V] {
	r := &recent[V]{}
	for i := range r.shards {
		r.shards[i].most = max(1, most/2/shards)
	}
	return r
}

const shards = 64

// shard holds two generations of keys. Whoever writes goes into the younger; the
// older goes as a whole, so forgetting costs nothing per key.
type shard[V any] struct {
	mu         sync.Mutex
	young, old map[uint64]V
	youngSince time.Duration
	most       int
}

// shard returns the one that hash belongs to.
func (r *recent[V]) shard(hash uint64) *shard[V] { return &r.shards[hash%shards] }

// get is for who holds the lock.
func (s *shard[V]) get(hash uint64) (V, bool) {
	v, known := s.young[hash]
	if !known {
		v, known = s.old[hash]
	}
	return v, known
}

// turn makes the young the old, once nothing of the old counts any more, which is
// after a period, or the young are as many as may be remembered.
func (s *shard[V]) turn(now, per time.Duration) {
	if s.young != nil && now-s.youngSince < per && len(s.young) < s.most {
		return
	}
	s.old, s.young, s.youngSince = s.young, s.old, now
	if s.young == nil {
		s.young = map[uint64]V{}
	}
	clear(s.young) // and kept: a busy process makes no new map each period
}
