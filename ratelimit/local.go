package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// Local is a token bucket per key in the memory of this process: for what is
// asked so often that it may cost no call. With n processes somebody is allowed
// up to n times as much.
//
// It remembers a bounded number of keys. When more are busy at once than that,
// the ones that were quiet longest are forgotten, and have a full bucket again:
// a flood of keys loosens it, and never refuses somebody who is within the
// limit.
type Local struct {
	limit  Limit
	now    func() time.Time
	seed   maphash.Seed
	shards [shards]shard
}

const shards = 64

// shard holds two generations of keys. Whoever asks moves into the younger; the
// older goes as a whole, so forgetting costs nothing per key.
type shard struct {
	mu           sync.Mutex
	young, old   map[string]bucket
	youngSince   time.Time
	mostPerShard int
}

// bucket is how full somebody's bucket was: parts of which one takes per, as in
// bucket.lua.
type bucket struct {
	at    time.Time
	parts int64
}

// NewLocal returns a token bucket of l.N that fills in l.Per, for up to most keys
// at once. now has to have a monotonic clock, as time.Now does. It panics where
// l is no token bucket.
func NewLocal(l Limit, most int, now func() time.Time) *Local {
	if l.Algorithm != Token || l.N < 1 || l.Per < MinPer {
		panic("ratelimit: a local limit is a token bucket, not " + l.String())
	}
	local := &Local{limit: l, now: now, seed: maphash.MakeSeed()}
	for i := range local.shards {
		local.shards[i].mostPerShard = max(1, most/2/shards)
	}
	return local
}

// Allow asks for one more under key, and counts it if it is allowed.
func (l *Local) Allow(key string) Reply {
	now := l.now()
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now, l.limit.Per)
	b, known := s.young[key]
	if !known {
		b, known = s.old[key]
	}
	per, n := l.limit.Per.Microseconds(), int64(l.limit.N)
	full := n * per
	parts := full
	if known {
		parts = min(full, b.parts+min(now.Sub(b.at).Microseconds(), per)*n)
	}
	r := Reply{Limit: l.limit.N}
	if r.Allowed = parts >= per; r.Allowed {
		parts -= per
		s.young[key] = bucket{now, parts}
		r.Remaining = int(parts / per)
	} else {
		r.RetryAfter = micros(ceil(per-parts, n))
	}
	r.Reset = micros(ceil(full-parts, n))
	return r
}

// turn makes the young the old, once all the old are full again or the young are
// as many as may be remembered.
func (s *shard) turn(now time.Time, per time.Duration) {
	if s.young != nil && now.Sub(s.youngSince) < per && len(s.young) < s.mostPerShard {
		return
	}
	s.old, s.young, s.youngSince = s.young, map[string]bucket{}, now
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
