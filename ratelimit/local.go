package ratelimit

import (
	"hash/maphash"
	"time"
)

// Local is a token bucket per key in the memory of this process: for what is
// asked so often that it may cost no call. With n processes somebody is allowed
// up to n times as much.
//
// It remembers a bounded number of keys, and of each a hash alone. When more are
// busy at once than that, the ones that were quiet longest are forgotten, and
// have a full bucket again: a flood of keys loosens it, and never refuses
// somebody who is within the limit.
type Local[K comparable] struct {
	limit Limit
	now   func() time.Time
	began time.Time
	seed  maphash.Seed
	kept  *recent[bucket]
}

// bucket is how full somebody's bucket was: parts of which one takes per, as in
// bucket.lua. It holds no pointers, so the garbage collector passes it by.
type bucket struct {
	at    time.Duration // since the beginning
	parts int64
}

// NewLocal returns a token bucket of l.N that fills in l.Per, for up to most keys
// at once. now has to have a monotonic clock, as time.Now does. It panics where
// l is no token bucket.
func NewLocal[K comparable](l Limit, most int, now func() time.Time) *Local[K] {
	if l.Algorithm != Token || l.N < 1 || l.Per < MinPer {
		panic("ratelimit: a local limit is a token bucket, not " + l.String())
	}
	return &Local[K]{limit: l, now: now, began: now(), seed: maphash.MakeSeed(), kept: newRecent[bucket](most)}
}

// Allow asks for one more under key, and counts it if it is allowed.
func (l *Local[K]) Allow(key K) Reply {
	now := l.now().Sub(l.began)
	hash := maphash.Comparable(l.seed, key)
	s := l.kept.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now, l.limit.Per)
	per, n := l.limit.Per.Microseconds(), int64(l.limit.N)
	full := n * per
	parts := full
	if b, known := s.get(hash); known {
		parts = min(full, b.parts+min((now-b.at).Microseconds(), per)*n)
	}
	r := Reply{Limit: l.limit.N}
	if r.Allowed = parts >= per; r.Allowed {
		parts -= per
		s.young[hash] = bucket{now, parts}
		r.Remaining = int(parts / per)
	}
	if parts < per {
		r.RetryAfter = micros(ceil(per-parts, n))
	}
	r.Reset = micros(ceil(full-parts, n))
	return r
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
