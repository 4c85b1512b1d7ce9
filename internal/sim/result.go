package sim

import (
	"slices"
	"time"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// tally counts one round.
type tally struct {
	Orders  queue.Health
	Arrived int64
	Granted int64
	First   int64 // orders sent for the first time
	Again   int64 // and sent again after a failure
	Unused  int64
	Inside  int64         // at the end
	Took    time.Duration // of all orders placed, together
}

// Row is one round of the result.
type Row struct {
	At      time.Duration
	Waiting []int
	Batch   float64
	Bears   float64 // orders a second, by the database's speed at the time
	Verdict controller.Verdict
	tally
}

// Latency is the mean response time of the orders placed in the round.
func (r Row) Latency() time.Duration {
	if n := r.Orders.Orders(); n > 0 {
		return r.Took / time.Duration(n)
	}
	return 0
}

// LaneResult is how those of a lane have waited.
type LaneResult struct {
	Name    string        `json:"name"`
	Served  int           `json:"served"`
	Left    int           `json:"left"` // in line at the end
	Mean    time.Duration `json:"-"`
	P95     time.Duration `json:"-"`
	Longest time.Duration `json:"-"`
	Target  time.Duration `json:"-"`
	waits   []time.Duration
}

func (l *LaneResult) waited(d time.Duration) { l.waits = append(l.waits, d) }

// Met tells whether 95 of 100 waited no longer than was wanted.
func (l LaneResult) Met() bool { return l.Target == 0 || l.P95 <= l.Target }

// steadySwings are no oscillation: where the batch found its place later than
// usual, it may have gone past it and back once.
const steadySwings = 2

// Oscillates tells whether the batch swung to and fro without a reason.
func (r Result) Oscillates() bool { return r.Swings > steadySwings }

// Overshoots tells whether more than a tenth too much was sent to the database.
func (r Result) Overshoots() bool { return r.Overshoot > 0.1 }

// Result is what came out of a run.
type Result struct {
	Plan  Plan
	Rows  []Row
	Lanes []LaneResult

	// Overshoot is how much more was sent to the database than it bears, at worst,
	// as a part of it; below zero if never. It is measured over half a minute, on
	// orders sent for the first time, and against the most that the database bore
	// in the time in which nobody could have known better: see reaction.
	Overshoot   float64
	OvershootAt time.Duration
	// Swings is how often the batch turned back by more than a fifth without a
	// reason: the database had not changed lately, nor had the run just begun.
	Swings int
	// Use is the part of what the database bears that was asked of it, while people
	// waited all the time and nothing was just changing.
	Use float64
	// Slow is the part of the orders placed that took half a second or more.
	Slow float64

	Placed, Failed, Unused int64
}

const (
	window = 30 * time.Second
	// settle is how long after a change of the database the batch is still on its
	// way to where it belongs.
	settle = 6 * time.Minute
	// swing is the part of the batch that it has to turn back by to count: twice
	// what one round may change.
	swing = 0.2
)

// reaction is how long after a change of the database its load may still be the
// old one: people who were let through think, the change has to be noticed (two
// rounds), and the way down is a tenth a round (a half takes seven).
func (p Plan) reaction() time.Duration { return 2*p.People.Think + 2*window }

func newResult(p Plan) Result {
	r := Result{Plan: p}
	for _, l := range p.Room.Lanes {
		r.Lanes = append(r.Lanes, LaneResult{Name: l.Name, Target: l.Target})
	}
	return r
}

// add takes a round over.
func (r *Result) add(s *run) {
	row := Row{
		At: s.now, Batch: s.state.Batch, Verdict: s.state.Verdict, tally: s.round,
		Bears: s.plan.Database.Bears(s.plan.Shape.speed(s.now)),
	}
	for i := range s.line.lanes {
		row.Waiting = append(row.Waiting, s.line.lanes[i].len())
	}
	r.Rows = append(r.Rows, row)
}

// judge sums up.
func (r *Result) judge() {
	var slow int64
	for _, row := range r.Rows {
		r.Placed += row.Orders.Orders()
		r.Failed += row.Orders.Failed
		r.Unused += row.Unused
		slow += row.Orders.Done[2] + row.Orders.Done[3]
	}
	if r.Placed > 0 {
		r.Slow = float64(slow) / float64(r.Placed)
	}
	for i := range r.Lanes {
		r.Lanes[i].sum(r.Rows, i)
	}
	r.measureOvershoot()
	r.measureSwings()
	r.measureUse()
}

func (l *LaneResult) sum(rows []Row, lane int) {
	if len(rows) > 0 {
		l.Left = rows[len(rows)-1].Waiting[lane]
	}
	if l.Served = len(l.waits); l.Served == 0 {
		return
	}
	slices.Sort(l.waits)
	var sum time.Duration
	for _, w := range l.waits {
		sum += w
	}
	l.Mean = sum / time.Duration(l.Served)
	l.P95, l.Longest = l.waits[(l.Served*95-1)/100], l.waits[l.Served-1]
}

func (r *Result) measureOvershoot() {
	n, back := int(window/controller.RoundLength), int(r.Plan.reaction()/controller.RoundLength)
	var sent int64
	for i, row := range r.Rows {
		sent += row.First
		if i < n {
			continue
		}
		sent -= r.Rows[i-n].First
		bears := 0.0
		for _, earlier := range r.Rows[max(0, i-back) : i+1] {
			bears = max(bears, earlier.Bears)
		}
		if bears == 0 {
			continue // away for longer than anybody thinks; see Rows for what is let through
		}
		if over := float64(sent)/window.Seconds()/bears - 1; i == n || over > r.Overshoot {
			r.Overshoot, r.OvershootAt = over, row.At
		}
	}
}

// measureSwings follows the batch and counts its turns.
func (r *Result) measureSwings() {
	low, high, up := 0.0, 0.0, false
	for i, row := range r.Rows {
		b := row.Batch
		if i == 0 || r.settling(i) {
			low, high, up = b, b, true
			continue
		}
		low, high = min(low, b), max(high, b)
		switch {
		case up && b < high*(1-swing), !up && b > low*(1+swing):
			up = !up
			low, high = b, b
			r.Swings++
		}
	}
}

// settling tells whether the run has just begun, or the database changed lately.
func (r *Result) settling(i int) bool {
	back := int(settle / controller.RoundLength)
	return i < back || r.Rows[i-back].Bears != r.Rows[i].Bears
}

func (r *Result) measureUse() {
	var asked, bears float64
	for i, row := range r.Rows {
		waiting := 0
		for _, w := range row.Waiting {
			waiting += w
		}
		if !r.settling(i) && waiting > 0 {
			asked += float64(row.First)
			bears += row.Bears * controller.RoundLength.Seconds()
		}
	}
	if bears > 0 {
		r.Use = asked / bears
	}
}
