package load

import (
	"context"
	"fmt"
	"time"
)

// Progress is how a run goes, second by second.
type Progress struct {
	At                  time.Duration // since it began
	Planned, Came       int64         // people; intruders are not counted among them
	Waiting, Holding    int64         // in line; with an entry token
	Ordered, TurnedAway int64
	Calls, Failed       int64         // in this second; failed had no answer, or a 5xx
	P99                 time.Duration // of the calls of this second, from when they were due
	Violations          int64
	Leaving             int64 // at the end: who is still to leave
}

// String is one line for people.
func (p Progress) String() string {
	if p.Leaving > 0 {
		return fmt.Sprintf("%4.0f s  over; %d are still leaving", p.At.Seconds(), p.Leaving)
	}
	line := fmt.Sprintf("%4.0f s  came %d of %d  waiting %d  with token %d  ordered %d  turned away %d  | %d calls/s, p99 %s, %d failed",
		p.At.Seconds(), p.Came, p.Planned, p.Waiting, p.Holding, p.Ordered, p.TurnedAway, p.Calls, short(p.P99), p.Failed)
	if p.Violations > 0 {
		line += fmt.Sprintf("  | %d VIOLATIONS", p.Violations)
	}
	return line
}

// tick closes each second and shows it.
func (r *run) tick(ctx context.Context, w *watch, show func(Progress)) {
	every(ctx, time.Second, func() {
		p := r.progress(w)
		if show != nil {
			show(p)
		}
	})
}

// progress closes the second that has just ended.
func (r *run) progress(w *watch) Progress {
	at := r.agenda.now()
	n := func(where place) int64 { return r.places[where].Load() }
	s := r.tally.close(at-time.Second, second{Waiting: n(waiting), Holding: n(holding), RoomWaiting: w.waiting.Load(), Granted: w.granted()})
	came, placed := r.tally.totals()
	return Progress{
		At: at, Planned: int64(r.plan.Arrivals.People), Came: came, Waiting: n(waiting), Holding: n(holding),
		Ordered: placed, TurnedAway: n(TurnedAway), Calls: s.Calls, Failed: s.Failed, P99: s.P99,
		Violations: r.judge.violations(), Leaving: r.tidying.Load(),
	}
}

// short is a time in a few characters.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}
