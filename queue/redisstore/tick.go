package redisstore

import (
	"context"
	"fmt"

	"github.com/linekeeper/linekeeper/queue"
)

// Reserve takes the next members out of their lanes for a scheduler's step, or
// says how long to wait. It returns queue.ErrStale, ErrNoRoom or ErrGeneration
// where the step may not be taken. Repeating a step answers with its members
// that still wait for Issue.
func (s *Store) Reserve(ctx context.Context, room string, step queue.Step, take queue.Take) (queue.Reservation, error) {
	args := []any{step.Generation, step.Term, step.Leader, step.Seq, take.Keep, take.Effective, take.Max, take.Zone}
	r, err := s.run(ctx, reserveScript, room, append(args, stockArgs(take.Stock)...)...)
	if err != nil {
		return queue.Reservation{}, err
	}
	res := queue.Reservation{
		More:       r.word == "MORE",
		Wait:       r.duration("wait"),
		Version:    r.int("version"),
		Watermarks: r.ints("watermarks"),
		LastScore:  r.int("last"),
		Consumed:   r.int("consumed"),
		Draw:       queue.DrawState(r.int("draw")),
	}
	for _, member := range r.list("lifted") {
		res.Lifted = append(res.Lifted, toString(member))
	}
	taken := r.list("taken")
	for i := 0; i+2 < len(taken); i += 3 {
		res.Taken = append(res.Taken, queue.Candidate{
			Member: toString(taken[i]),
			Place:  queue.Place{Lane: int(toInt(taken[i+1])), Score: toInt(taken[i+2])},
		})
	}
	return res, nil
}

// Issue turns the members of a step into grants or refuses them, 500 at most,
// and charges the rate for the grants. Repeating it charges nothing twice.
func (s *Store) Issue(ctx context.Context, room string, step queue.Step, decisions []queue.Decision) (queue.Issued, error) {
	args := []any{step.Generation, step.Term, step.Leader, step.Seq}
	for _, d := range decisions {
		grant := d.Grant
		if grant == "" {
			grant = "-"
		}
		args = append(args, d.Member, grant)
	}
	r, err := s.run(ctx, issueScript, room, args...)
	if err != nil {
		return queue.Issued{}, err
	}
	var out queue.Issued
	for _, w := range r.list("words") {
		switch toString(w) {
		case "NEW", "OK":
			out.Granted++
		case "OUT":
			out.Refused++
		default:
			out.Gone++
		}
	}
	return out, nil
}

// reapAtOnce is how many members of each kind a call of Reap moves at most: Redis
// does nothing else meanwhile.
const reapAtOnce = 250

// Reap does what time has decided, of reapAtOnce members of each kind at most, and
// says whether there is More.
func (s *Store) Reap(ctx context.Context, room string) (queue.Reaped, error) {
	r, err := s.run(ctx, reapScript, room, reapAtOnce, s.memory.state(ctx, s, room))
	if err != nil {
		return queue.Reaped{}, err
	}
	return queue.Reaped{
		Returned:  int(r.int("returned")),
		Lapsed:    int(r.int("lapsed")),
		Expired:   int(r.int("expired")),
		Away:      int(r.int("away")),
		Forgotten: int(r.int("forgotten")),
		More:      r.word == "MORE",
	}, nil
}

// Terms counts the leadership periods of schedulers.
type Terms struct{ s *Store }

// Terms returns the counter of this Redis.
func (s *Store) Terms() Terms { return Terms{s} }

// Next returns a term that nobody has had, as far as Redis remembers.
func (t Terms) Next(ctx context.Context) (int64, error) { return t.Raise(ctx, 0) }

// Raise returns a term above both the counter and seen, a term that a room
// knows. A counter that a failover has set back locks nobody out.
func (t Terms) Raise(ctx context.Context, seen int64) (int64, error) {
	n, err := raiseTermScript.Run(ctx, t.s.rdb, []string{t.s.prefix + ":term"}, seen).Int64()
	if err != nil {
		return 0, fmt.Errorf("next term: %w", mapError(err))
	}
	return n, nil
}
