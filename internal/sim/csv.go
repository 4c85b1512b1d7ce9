package sim

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes a line for each round, for a spreadsheet or a plotter.
// Numbers with a point, no separators of thousands.
func (r Result) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{"seconds", "arrived"}
	for _, l := range r.Lanes {
		head = append(head, "waiting_"+l.Name)
	}
	head = append(head, "batch", "granted", "inside", "orders_first", "orders_again", "placed", "failed", "unused",
		"latency_ms", "below_200ms", "below_500ms", "below_1s", "above_1s", "bears_per_second", "verdict")
	if err := c.Write(head); err != nil {
		return err
	}
	for _, row := range r.Rows {
		cells := []string{float(row.At.Seconds(), 0), whole(row.Arrived)}
		for _, n := range row.Waiting {
			cells = append(cells, strconv.Itoa(n))
		}
		cells = append(cells, float(row.Batch, 2))
		for _, n := range []int64{row.Granted, row.Inside, row.First, row.Again, row.Orders.Orders(), row.Orders.Failed, row.Unused, row.Latency().Milliseconds()} {
			cells = append(cells, whole(n))
		}
		for _, n := range row.Orders.Done {
			cells = append(cells, whole(n))
		}
		if err := c.Write(append(cells, float(row.Bears, 1), string(row.Verdict))); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func float(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
