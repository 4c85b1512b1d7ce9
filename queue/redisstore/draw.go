package redisstore

import (
	"context"

	"github.com/linekeeper/linekeeper/queue"
)

// Entrants reads up to 2,000 members of a lane who have a drawn place behind the
// score after, lowest first, of a draw that is over. It returns
// queue.ErrGeneration where the room is in another generation, or its draw open.
func (s *Store) Entrants(ctx context.Context, room string, generation int64, lane int, after int64) ([]queue.Candidate, error) {
	r, err := s.run(ctx, entrantsScript, room, generation, lane, after, 2000)
	if err != nil {
		return nil, err
	}
	flat := r.list("entrants")
	page := make([]queue.Candidate, 0, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		page = append(page, queue.Candidate{Member: toString(flat[i]), Place: queue.Place{Lane: lane, Score: toInt(flat[i+1])}})
	}
	return page, nil
}

// Listed lets the room go on after its draw, whose list is kept. It returns
// queue.ErrGeneration where the room is in another sale.
func (s *Store) Listed(ctx context.Context, room string, sale int64) error {
	_, err := s.run(ctx, listedScript, room, sale)
	return err
}
