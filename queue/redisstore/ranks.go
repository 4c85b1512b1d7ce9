package redisstore

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"
)

// ranks asks Redis where members stand in one lane. Questions that come while
// others are on the way share the next round trip; nobody waits for company. So a
// crowd of polls costs few calls, and a single one costs what it did.
//
// The calls are plain pipelines of reads. Whoever gives up waiting takes nothing
// away from the others, and what an answer that did not come was is unknown.
type ranks struct {
	rdb redis.UniversalClient
	key string

	mu     sync.Mutex
	next   *questions // gathered, not asked yet; nil: none
	asking bool       // a call is on the way, one at a time
}

// questions are asked in one call. The answers are written before done is closed,
// and not after.
type questions struct {
	members []string
	done    chan struct{}

	at  []rank
	err error
}

// rank is where a member stands in a lane: how many are ahead, and the score.
// found is false for who is not there, or has moved while the question was asked.
type rank struct {
	ahead, score int64
	found        bool
}

// of tells where member stands.
func (r *ranks) of(ctx context.Context, member string) (rank, error) {
	q, i := r.put(ctx, member)
	select {
	case <-q.done:
	case <-ctx.Done():
		return rank{}, ctx.Err()
	}
	if q.err != nil {
		return rank{}, q.err
	}
	return q.at[i], nil
}

// put has member asked about with others, or at once.
func (r *ranks) put(ctx context.Context, member string) (q *questions, at int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &questions{done: make(chan struct{})}
	}
	q = r.next
	q.members = append(q.members, member)
	at = len(q.members) - 1
	if !r.asking {
		r.asking = true
		go r.ask(context.WithoutCancel(ctx))
	}
	return q, at
}

// ask asks until nothing is gathered any more. Whoever is ready to ask at this
// moment comes first, so that they share the call.
func (r *ranks) ask(ctx context.Context) {
	for {
		runtime.Gosched()
		r.mu.Lock()
		q := r.next
		r.next, r.asking = nil, q != nil
		r.mu.Unlock()
		if q == nil {
			return
		}
		q.at, q.err = ranksOf(ctx, r.rdb, r.key, q.members)
		close(q.done)
	}
}

// ranksOf reads where members stand in the lane, in one pipeline.
func ranksOf(ctx context.Context, rdb redis.UniversalClient, lane string, members []string) ([]rank, error) {
	ahead := make([]*redis.IntCmd, len(members))
	var scores *redis.FloatSliceCmd
	_, _ = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, m := range members {
			ahead[i] = p.ZRank(ctx, lane, m)
		}
		scores = p.ZMScore(ctx, lane, members...)
		return nil
	})
	if err := scores.Err(); err != nil {
		return nil, err
	}
	at := make([]rank, len(members))
	for i, score := range scores.Val() {
		switch err := ahead[i].Err(); {
		case err == nil:
			at[i] = rank{ahead[i].Val(), int64(score), score > 0}
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
	}
	return at, nil
}
