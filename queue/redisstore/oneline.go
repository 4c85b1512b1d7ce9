package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/queue"
)

// PollLine is Poll in a room whose lanes are one line: Rank counts over all of
// them, and InLane in the member's own. place is what the member's ticket says;
// where they stand at another by now, the script counts.
func (s *Store) PollLine(ctx context.Context, room, member string, place queue.Place, lanes int) (queue.Standing, error) {
	st, err := s.rankedInLine(ctx, room, member, place, lanes)
	if err == nil && st.Place != place {
		return s.Standing(ctx, room, member)
	}
	return s.polled(ctx, room, member, st, err)
}

// rankedInLine finds a member in a lane and counts who stands ahead in the
// others, with one round trip. Of equal scores the lower lane is ahead.
func (s *Store) rankedInLine(ctx context.Context, room, member string, place queue.Place, lanes int) (queue.Standing, error) {
	key := laneKey(s.prefix, room, place.Lane)
	var rank *redis.IntCmd
	var score *redis.FloatCmd
	var others []*redis.IntCmd
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		rank, score = p.ZRank(ctx, key, member), p.ZScore(ctx, key, member)
		for lane := range lanes {
			upto := "(" + toString(place.Score)
			if lane < place.Lane {
				upto = toString(place.Score)
			}
			if lane != place.Lane {
				others = append(others, p.ZCount(ctx, laneKey(s.prefix, room, lane), "-inf", upto))
			}
		}
		return nil
	})
	if err != nil {
		return queue.Standing{}, err
	}
	st := queue.Standing{
		Status: queue.Waiting, Place: queue.Place{Lane: place.Lane, Score: int64(score.Val())}, Rank: rank.Val(), InLane: rank.Val(),
	}
	for _, n := range others {
		st.Rank += n.Val()
	}
	return st, nil
}
