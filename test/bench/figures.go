package main

import (
	"fmt"
	"io"
)

// forms are the lines that a run ends with, in this order.
var forms = []struct{ name, format string }{
	{"poll_vs_plain_64", "%.2f"},
	{"poll_vs_plain_256", "%.2f"},
	{"poll_vs_naive_64", "%.2f"},
	{"poll_vs_naive_256", "%.2f"},
	{"enter_vs_plain_64", "%.2f"},
	{"enter_vs_naive_64", "%.2f"},
	{"order_vs_bare_64", "%.2f"},
	{"order_hot_vs_bare_64", "%.2f"},
	{"bytes_per_waiting", "%.0f"},
	{"tick_us_per_member", "%.1f"},
	{"script_ms_max", "%.1f"},
	{"poll_1m_vs_10k", "%.2f"},
	{"enter_1m_vs_10k", "%.2f"},
	{"alloc_per_poll", "%.0f"},
	{"poll_cpu_us_over_plain", "%.1f"},
}

// figures are the results by name.
type figures map[string]float64

// print writes each on a line of its own. One that was not measured is an error:
// a run that prints fewer lines has not shown what it says.
func (f figures) print(out io.Writer) error {
	for _, form := range forms {
		v, measured := f[form.name]
		if !measured {
			return fmt.Errorf("%s was not measured", form.name)
		}
		fmt.Fprintf(out, "bench: %s="+form.format+"\n", form.name, v)
	}
	return nil
}
