package load

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	r.head(t)
	r.latencyTable(t)
	r.waitLines(t)
	r.problemTable(t)
	r.promiseTable(t)
	return t.Flush()
}

func (r *Report) head(w io.Writer) {
	p := r.People
	stopped := ""
	if r.Interrupted {
		stopped = ", stopped before its end"
	}
	fmt.Fprintf(w, "load\troom %s at %s, %s%s\n", r.Room, r.URL, r.BeganAt.Format("2006-01-02 15:04:05 MST"), stopped)
	fmt.Fprintf(w, "arrivals\t%d of %d, %s over %gs; then %.0f s more\n", r.Came, r.Plan.Arrivals, r.Plan.Shape, r.Plan.OverSeconds, max(0, r.Seconds-r.Plan.OverSeconds))
	fmt.Fprintf(w, "people\t%d ordered, %d still in line, %d still with a token, %d left, %d vanished, %d never used their token\n",
		p.Ordered, p.InLine, p.WithToken, p.Left, p.Vanished, p.Unused)
	fmt.Fprintf(w, "\t%d found it sold out, %d turned away, %d lost their place or token, %d never heard of their order, %d had no answer to enter\n",
		p.SoldOut, p.TurnedAway, p.Lost, p.Undecided, p.NotEntered)
	fmt.Fprintf(w, "orders\t%d placed, %d answers that told one again\n", r.Orders.Placed, r.Orders.Replayed)
	a := r.Admissions
	fmt.Fprintf(w, "let through\t%d of these people", a.Seen)
	if a.RatePerSecond > 0 {
		fmt.Fprintf(w, ", %d of all; the rate is %g a second, the fullest window had %.1f %% of what it allows", a.Granted, a.RatePerSecond, 100*a.FullestWindow)
	}
	fmt.Fprintln(w)
	for i, n := range r.Notes {
		label := ""
		if i == 0 {
			label = "note"
		}
		fmt.Fprintf(w, "%s\t%s\n", label, n)
	}
}

func (r *Report) latencyTable(w io.Writer) {
	fmt.Fprintln(w, "\ncall\tcount\trefused\tfailed\tms\tp50\tp90\tp99\tp99.9\tmax")
	for _, c := range r.Calls {
		if c.Count == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\tfrom due\t%s\n", c.Name, c.Count, c.Refused, c.Failed, c.Due.cells())
		fmt.Fprintf(w, "\t\t\t\tfrom sending\t%s\n", c.Service.cells())
	}
}

func (l Latencies) cells() string {
	return fmt.Sprintf("%.1f\t%.1f\t%.1f\t%.1f\t%.1f", l.P50, l.P90, l.P99, l.P999, l.Max)
}

func (r *Report) waitLines(w io.Writer) {
	line := func(name string, s Spread) {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\n", name, s.P10, s.P50, s.P90, s.Max)
	}
	if r.Admissions.Seen == 0 {
		return
	}
	fmt.Fprintln(w, "\nwait, seconds\tp10\tp50\tp90\tmax")
	line("from entering to the token", r.Waits.SinceEntered)
	if r.Waits.Told == 0 {
		return
	}
	line("first told", r.Waits.Estimate)
	line("from then on, really", r.Waits.Real)
	fmt.Fprintf(w, "within the range told\t%d of %d\n", r.Waits.WithinRange, r.Waits.Told)
}

func (r *Report) problemTable(w io.Writer) {
	if len(r.Problems) == 0 {
		return
	}
	fmt.Fprintln(w, "\nno success\tstatus\tcode\tcount")
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\n", p.Call, p.Status, p.Code, p.Count)
	}
}

func (r *Report) promiseTable(w io.Writer) {
	fmt.Fprintln(w, "\npromise\tlooks\t")
	for _, p := range r.Promises {
		fmt.Fprintf(w, "%s\t%d\t%s\n", p.Name, p.Looks, p.verdict())
	}
	for _, v := range r.Violations {
		fmt.Fprintf(w, "VIOLATION\t%.1f s\t%s: %s\n", v.AtSeconds, v.Promise, v.Saw)
	}
	if more := r.Broken() - int64(len(r.Violations)); more > 0 {
		fmt.Fprintf(w, "\t\tand %d more\n", more)
	}
}

func (p Promise) verdict() string {
	switch {
	case p.Broken > 0:
		return fmt.Sprintf("BROKEN %d times", p.Broken)
	case p.Unseen != "":
		return "not judged: " + p.Unseen
	default:
		return "kept"
	}
}
