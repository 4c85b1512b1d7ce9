package redisstore

import (
	"context"
	"fmt"

	"github.com/linekeeper/linekeeper/queue"
)

// AddHealth adds a process's report of orders to those of all. A report counts
// once however often it is sent, and not at all in a room that is not adaptive.
func (s *Store) AddHealth(ctx context.Context, room string, r queue.Report) error {
	h := r.Health
	args := []any{r.Process, r.Number}
	for _, done := range h.Done {
		args = append(args, done)
	}
	_, err := s.run(ctx, healthScript, room, append(args, h.Failed, h.Delay.Microseconds())...)
	return err
}

// Tune keeps where the batch of an adaptive room stands after t.Round, and tells
// whether it has: another scheduler may have come first with that round, or the
// room may follow its orders no more. It returns queue.ErrStale, ErrNoRoom or
// ErrGeneration where the step may not be taken; of step, Seq does not count.
func (s *Store) Tune(ctx context.Context, room string, step queue.Step, t queue.Tuning) (kept bool, err error) {
	verdict := t.Verdict
	if verdict == "" {
		verdict = "-"
	}
	r, err := s.run(ctx, tuneScript, room, step.Generation, step.Term, step.Leader, t.Round, t.Batch, verdict, t.Memory)
	if err != nil {
		return false, fmt.Errorf("keep round %d: %w", t.Round, err)
	}
	return r.int("kept") == 1, nil
}

func healthOf(h hash) queue.Health {
	return queue.Health{
		Done:   [queue.Bands]int64{h.int("done0"), h.int("done1"), h.int("done2"), h.int("done3")},
		Failed: h.int("failed"), Delay: h.duration("delay"),
	}
}

func tuningOf(h hash) queue.Tuning {
	t := queue.Tuning{
		Round: h.int("round"), At: h.time("at"), Batch: int(h.int("batch")), Verdict: h["verdict"], Memory: []byte(h["memory"]),
	}
	if t.Verdict == "-" {
		t.Verdict = ""
	}
	return t
}
