package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/internal/share"
)

// ranks is where those ask who want to know where they stand in one lane.
type ranks = share.Line[string, rank]

// rank is where a member stands in a lane: how many are ahead, and the score.
// found is false for who is not there, or has moved while the question was asked.
type rank struct {
	ahead, score int64
	found        bool
}

// mostRanks is how many questions go with one call: two short reads each.
const mostRanks = 1000

// newRanks returns a line of questions about a lane, which plain reads answer.
func newRanks(rdb redis.UniversalClient, lane string) *ranks {
	return share.NewLine(mostRanks, func(ctx context.Context, members []string) ([]rank, error) {
		return ranksOf(ctx, rdb, lane, members)
	})
}

// ranksOf reads where members stand in a lane, in one pipeline.
func ranksOf(ctx context.Context, rdb redis.UniversalClient, lane string, members []string) ([]rank, error) {
	ahead := make([]*redis.IntCmd, len(members))
	var scores *redis.FloatSliceCmd
	// What it returns is the error of one of them, or that somebody is not there.
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
	for i, score := range scores.Val() { // below 2^53: a float64 holds them exactly; 0 of who is not there
		switch err := ahead[i].Err(); {
		case err == nil:
			at[i] = rank{ahead[i].Val(), int64(score), score > 0}
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
	}
	return at, nil
}
