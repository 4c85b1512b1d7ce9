package main

import (
	"fmt"
	"io"
)

// form is a line that a run ends with, and what is aimed at.
type form struct {
	name   string
	format string
	aim    float64 // 0: none
	below  bool    // the aim is not to be exceeded; else it is to be reached
}

// forms are all of them, in order.
var forms = []form{
	{"poll_vs_plain_64", "%.2f", 0.72, false},
	{"poll_vs_plain_256", "%.2f", 0.80, false},
	{"poll_vs_naive_64", "%.2f", 2.8, false},
	{"poll_vs_naive_256", "%.2f", 3.6, false},
	{"enter_vs_plain_64", "%.2f", 0.50, false},
	{"enter_vs_naive_64", "%.2f", 2.1, false},
	{"order_vs_bare_64", "%.2f", 1.5, false},
	{"order_hot_vs_bare_64", "%.2f", 5.0, false},
	{"bytes_per_waiting", "%.0f", 130, true},
	{"tick_us_per_member", "%.1f", 8, true},
	{"script_ms_max", "%.1f", 4.0, true},
	{"poll_1m_vs_10k", "%.2f", 0.92, false},
	{"enter_1m_vs_10k", "%.2f", 0.92, false},
	{"alloc_per_poll", "%.0f", 0, true},
	{"poll_cpu_us_over_plain", "%.1f", 12, true},
}

// aimed is the aim in words, and whether v is there.
func (f form) aimed(v float64) (aim, reached string) {
	switch {
	case f.aim == 0:
		return "", ""
	case f.below:
		aim = "at most "
	default:
		aim = "at least "
	}
	reached = "no"
	if f.below && v <= f.aim || !f.below && v >= f.aim {
		reached = "yes"
	}
	return aim + fmt.Sprintf(f.format, f.aim), reached
}

// figures are the results by name, with their spread where there are several
// rounds or ticks.
type figures map[string]Spread

// one is a figure that was measured once.
func one(v float64) Spread { return Spread{v, v, v, 1} }

// print writes each on a line of its own. In a run of everything, one that was not
// measured is an error: with fewer lines it has not shown what it says.
func (f figures) print(out io.Writer, all bool) error {
	for _, form := range forms {
		v, measured := f[form.name]
		if !measured && all {
			return fmt.Errorf("%s was not measured", form.name)
		}
		if measured {
			fmt.Fprintf(out, "bench: %s="+form.format+"\n", form.name, v.Median)
		}
	}
	return nil
}
