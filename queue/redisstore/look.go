package redisstore

import (
	"context"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Look says where a member is without hearing them: nothing is changed by it.
// queue.ErrNoRoom where the room has no data.
func (s *Store) Look(ctx context.Context, room, member string) (queue.Sight, error) {
	r, err := s.run(ctx, lookScript, room, member)
	if err != nil {
		return queue.Sight{}, err
	}
	at := func(name string) time.Time {
		if r.int(name) == 0 {
			return time.Time{}
		}
		return r.time(name)
	}
	return queue.Sight{
		State: queue.State(r.string("state")), Now: r.time("now"), Sale: r.int("sale"),
		Place: queue.Place{Lane: int(r.int("lane")), Score: r.int("score")},
		Rank:  r.int("rank"), Total: r.int("total"), Since: at("since"),
		Expiry: at("expiry"), Lease: at("lease"),
		Outcome: queue.Outcome(r.string("outcome")), OrderID: r.string("order"), Ended: at("ended"),
	}, nil
}
