package sim

import (
	"fmt"
	"io"
	"time"
)

// Summary is a result as programs read it.
type Summary struct {
	Shape            string        `json:"shape"`
	BatchSize        int           `json:"batchSize"`
	IntervalMs       int64         `json:"intervalMs"`
	Adaptive         bool          `json:"adaptive"`
	Seed             uint64        `json:"seed"`
	BearsPerSecond   float64       `json:"bearsPerSecond"`
	Lanes            []LaneSummary `json:"lanes"`
	Placed           int64         `json:"placed"`
	Failed           int64         `json:"failed"`
	Unused           int64         `json:"unused"`
	Slow             float64       `json:"slow"`
	Use              float64       `json:"use"`
	Overshoot        float64       `json:"overshoot"`
	OvershootSeconds float64       `json:"overshootAtSeconds"`
	Swings           int           `json:"swings"`
	Overshoots       bool          `json:"overshoots"`
	Oscillates       bool          `json:"oscillates"`
}

// LaneSummary is one lane of it. Times are seconds; wanted is null where nothing
// is.
type LaneSummary struct {
	Name    string   `json:"name"`
	Weight  int      `json:"weight"`
	Served  int      `json:"served"`
	Left    int      `json:"left"`
	Mean    float64  `json:"meanSeconds"`
	P95     float64  `json:"p95Seconds"`
	Longest float64  `json:"longestSeconds"`
	Wanted  *float64 `json:"wantedSeconds"`
	Met     bool     `json:"met"`
}

// Summary sums a result up.
func (r Result) Summary() Summary {
	s := Summary{
		Shape: r.Plan.Shape.Name, BatchSize: r.Plan.Room.Batch, IntervalMs: r.Plan.Room.Interval.Milliseconds(),
		Adaptive: !r.Plan.Room.Fixed, Seed: r.Plan.Seed, BearsPerSecond: r.Plan.Database.Bears(1),
		Placed: r.Placed, Failed: r.Failed, Unused: r.Unused, Slow: r.Slow, Use: r.Use,
		Overshoot: r.Overshoot, OvershootSeconds: r.OvershootAt.Seconds(), Swings: r.Swings,
		Overshoots: r.Overshoots(), Oscillates: r.Oscillates(),
	}
	for i, l := range r.Lanes {
		lane := LaneSummary{
			Name: l.Name, Weight: r.Plan.Room.Lanes[i].Weight, Served: l.Served, Left: l.Left, Met: l.Met(),
			Mean: l.Mean.Seconds(), P95: l.P95.Seconds(), Longest: l.Longest.Seconds(),
		}
		if l.Target > 0 {
			wanted := l.Target.Seconds()
			lane.Wanted = &wanted
		}
		s.Lanes = append(s.Lanes, lane)
	}
	return s
}

// WriteText writes a result for people, as cells with tabs between.
func (r Result) WriteText(w io.Writer) error {
	p := r.Plan
	how := "adaptive"
	if p.Room.Fixed {
		how = "fixed"
	}
	fmt.Fprintf(w, "shape\t%s: %s\n", p.Shape.Name, p.Shape.Help)
	fmt.Fprintf(w, "room\tat most %d every %v, %s%s\n", p.Room.Batch, p.Room.Interval, how, r.capacity())
	fmt.Fprintf(w, "database\t%d connections, %v an order: it bears %.0f orders a second\n", p.Database.Connections, p.Database.Service, p.Database.Bears(1))
	fmt.Fprintln(w)
	fmt.Fprintln(w, "lane\tweight\tserved\tleft\tmean wait\t95 of 100\tlongest\twanted")
	for i, l := range r.Lanes {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%v\t%v\t%v\t%s\n", l.Name, p.Room.Lanes[i].Weight, l.Served, l.Left,
			l.Mean.Round(time.Second), l.P95.Round(time.Second), l.Longest.Round(time.Second), l.wanted())
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "load\t%s\n", r.loadLine())
	fmt.Fprintf(w, "batch\t%s\n", r.batchLine())
	fmt.Fprintf(w, "use\t%s\n", r.useLine())
	_, err := fmt.Fprintf(w, "orders\t%d placed, %.1f %% of them in half a second or more; %d attempts failed; %d grants went unused\n",
		r.Placed, 100*r.Slow, r.Failed, r.Unused)
	return err
}

func (r Result) capacity() string {
	if r.Plan.Room.Capacity == 0 {
		return ""
	}
	return fmt.Sprintf(", %d inside at once", r.Plan.Room.Capacity)
}

func (l LaneResult) wanted() string {
	switch {
	case l.Target == 0:
		return "-"
	case l.Met():
		return fmt.Sprintf("%v: kept", l.Target)
	default:
		return fmt.Sprintf("%v: MISSED", l.Target)
	}
}

func (r Result) loadLine() string {
	if r.Overshoot <= 0 {
		return fmt.Sprintf("at most %.0f %% of what the database bears", 100*(1+r.Overshoot))
	}
	verdict := "no overshoot"
	if r.Overshoots() {
		verdict = "OVERSHOOT"
	}
	return fmt.Sprintf("%.1f %% above what the database bears at worst, after %v: %s", 100*r.Overshoot, r.OvershootAt, verdict)
}

func (r Result) batchLine() string {
	if r.Oscillates() {
		return fmt.Sprintf("OSCILLATES: %d turns by more than a fifth without a reason", r.Swings)
	}
	return fmt.Sprintf("no oscillation: %d turns by more than a fifth without a reason", r.Swings)
}

func (r Result) useLine() string {
	if r.Use == 0 {
		return fmt.Sprintf("not known: nobody waited later than %v after a change", settle)
	}
	return fmt.Sprintf("%.0f %% of what the database bears, while people waited", 100*r.Use)
}
