package ratelimit

import (
	"context"
	"hash/maphash"
	"time"
)

// Shared is one limit whose counts all processes share. It keeps a flood away
// from Redis: whom Redis has told to wait needs no question until then.
//
// That refuses nobody whom Redis would let through. A count that is full can only
// be emptied by time, under each of the algorithms: nothing that others do until
// then gives one back. The wait is reckoned from before the question was sent, so
// it ends here no later than there. (Where Redis forgets, or its clock jumps, it
// ends a period later at most.)
//
// It remembers a bounded number of keys; the question of who is forgotten goes to
// Redis again.
type Shared struct {
	limiter *Limiter
	limit   Limit
	now     func() time.Time
	began   time.Time
	seed    maphash.Seed
	waiting *recent[wait]
}

// wait is until when nobody needs to be asked, and, reckoned from when the answer
// had come, when one is allowed again and when all are. Between the first two
// Redis decides.
type wait struct{ until, next, reset time.Duration }

// NewShared returns the limit l, counted by limiter, that remembers up to most
// keys. now has to have a monotonic clock, as time.Now does.
func NewShared(limiter *Limiter, l Limit, most int, now func() time.Time) *Shared {
	return &Shared{limiter: limiter, limit: l, now: now, began: now(), seed: maphash.MakeSeed(), waiting: newRecent[wait](most)}
}

// Limit is the limit.
func (s *Shared) Limit() Limit { return s.limit }

// Known is the refusal of key, if it is known without asking.
func (s *Shared) Known(key string) (r Reply, refused bool) {
	now := s.now().Sub(s.began)
	hash := maphash.String(s.seed, key)
	kept := s.waiting.shard(hash)
	kept.mu.Lock()
	w, known := kept.get(hash)
	kept.mu.Unlock()
	if !known || now >= w.until {
		return Reply{}, false
	}
	return Reply{Limit: s.limit.N, RetryAfter: w.next - now, Reset: w.reset - now}, true
}

// Allow asks for one more under key as Limiter.Allow does, and only where the
// answer is not known.
func (s *Shared) Allow(ctx context.Context, key string) (Reply, error) {
	if r, refused := s.Known(key); refused {
		return r, nil
	}
	sent := s.now()
	r, err := s.limiter.Allow(ctx, key, s.limit)
	if err == nil && r.RetryAfter > 0 {
		s.remember(key, sent, r)
	}
	return r, err
}

func (s *Shared) remember(key string, sent time.Time, r Reply) {
	now := s.now().Sub(s.began)
	hash := maphash.String(s.seed, key)
	kept := s.waiting.shard(hash)
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.turn(now, s.limit.Per)
	kept.young[hash] = wait{until: sent.Sub(s.began) + r.RetryAfter, next: now + r.RetryAfter, reset: now + r.Reset}
}
