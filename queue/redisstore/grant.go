package redisstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Claim lets the order attempt named claim use g until the lease ends. Claiming
// twice under one name succeeds and does not lengthen the lease. It returns
// queue.ErrBusy, ErrGone, ErrLimit or ErrNoRoom where claim may not use g.
func (s *Store) Claim(ctx context.Context, g queue.Grant, claim string, lease time.Duration) error {
	_, err := s.runTogether(ctx, claimScript, g.Room, g.Member, g.ID, claim, lease.Microseconds())
	return err
}

// Release gives g back after the order attempt named claim has definitely
// failed. It is no error if that attempt does not hold g (any more).
func (s *Store) Release(ctx context.Context, g queue.Grant, claim string) error {
	_, err := s.runTogether(ctx, releaseScript, g.Room, g.Member, g.ID, claim)
	return err
}

// Consumed says what consume found of one grant.
type Consumed string

// A grant is spent now, or was spent or lost before.
const (
	ConsumedNow  Consumed = "OK"
	ConsumedLate Consumed = "LATE" // it had expired or its member had left: the outcome is mended
	ConsumedNone Consumed = "NONE" // nothing of it is left
)

// consumedAtOnce is how many grants a call ends at most: Redis does nothing else
// meanwhile.
const consumedAtOnce = 250

// Consume ends grants that orders have used up, in as many calls as that takes, and
// answers for each in turn. It compares grant ids: a member's next grant is not
// touched. After an error some have been ended; it is safe to repeat for all.
func (s *Store) Consume(ctx context.Context, room string, spent []queue.Spent) ([]Consumed, error) {
	out := make([]Consumed, 0, len(spent))
	for some := range slices.Chunk(spent, consumedAtOnce) {
		words, err := s.consume(ctx, room, some)
		if err != nil {
			return nil, err
		}
		out = append(out, words...)
	}
	return out, nil
}

func (s *Store) consume(ctx context.Context, room string, spent []queue.Spent) ([]Consumed, error) {
	args := make([]any, 0, 3*len(spent))
	for _, x := range spent {
		args = append(args, x.Member, x.Grant, x.Order)
	}
	r, err := s.run(ctx, consumeScript, room, args...)
	if err != nil {
		return nil, err
	}
	words := r.list("words")
	if len(words) != len(spent) {
		return nil, fmt.Errorf("consume in room %s: %d answers for %d grants", room, len(words), len(spent))
	}
	out := make([]Consumed, len(words))
	for i, w := range words {
		out[i] = Consumed(toString(w))
	}
	return out, nil
}
