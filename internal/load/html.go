package load

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
)

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"ms":      func(ms float64) string { return fmt.Sprintf("%.1f", ms) },
	"s":       func(s float64) string { return fmt.Sprintf("%.0f", s) },
	"percent": func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) },
	"verdict": Promise.verdict,
}).Parse(pageText))

// WriteHTML writes the report as one page that loads nothing and runs nothing.
func (r *Report) WriteHTML(w io.Writer) error {
	return page.Execute(w, struct {
		*Report
		Charts []template.HTML
	}{r, r.charts()})
}

// charts are the diagrams of the page.
func (r *Report) charts() []template.HTML {
	points := thinned(r.Series, maxPoints)
	over := func(name string, at func(SecondReport) float64) curve {
		c := curve{name: name}
		for i, s := range points.rows {
			c.points = append(c.points, point{float64(i*points.step) + float64(points.step)/2, at(s)})
		}
		return c
	}
	end := float64(len(r.Series))
	flow := []curve{
		over("came", func(s SecondReport) float64 { return float64(s.Came) }),
		over("shown a token", func(s SecondReport) float64 { return float64(s.Admitted) }),
		over("orders", func(s SecondReport) float64 { return float64(s.Ordered) }),
	}
	through := slices.Clone(flow[1:])
	if rate := r.Admissions.RatePerSecond; rate > 0 {
		through = append(through, over("granted by the room", func(s SecondReport) float64 { return float64(s.Granted) }),
			curve{"the rate", []point{{0, rate}, {end, rate}}})
	}
	charts := []template.HTML{
		chart("people who came, a second", "s", flow[:1]),
		chart("let through, and ordered, a second", "s", through),
		chart("people in line", "s", []curve{
			over("of this run", func(s SecondReport) float64 { return float64(s.Waiting) }),
			over("as the room says", func(s SecondReport) float64 { return float64(max(s.RoomWaiting, 0)) }),
		}),
		chart("calls a second", "s", []curve{
			over("answered", func(s SecondReport) float64 { return float64(s.Calls) }),
			over("failed", func(s SecondReport) float64 { return float64(s.Failed) }),
		}),
		chart("milliseconds, 99 of 100 calls, from when they were due", "s", []curve{over("p99", func(s SecondReport) float64 { return s.P99 })}),
	}
	if len(r.Passages) > 0 {
		charts = append(charts, scatter("seconds waited, by the seconds first told", r.Passages))
	}
	return charts
}

// maxPoints of a curve are drawn: more would not be seen.
const maxPoints = 600

// rows are seconds put together, so many in each.
type rows struct {
	step int
	rows []SecondReport
}

// thinned puts seconds together until there are few enough: what is counted as a
// mean, what is a level as at the end, and of latencies the worst.
func thinned(all []SecondReport, most int) rows {
	out := rows{step: max(1, (len(all)+most-1)/most)}
	for i := 0; i < len(all); i += out.step {
		part := all[i:min(i+out.step, len(all))]
		row := part[len(part)-1]
		for _, s := range part[:len(part)-1] {
			row.Came, row.Admitted, row.Ordered, row.Granted = row.Came+s.Came, row.Admitted+s.Admitted, row.Ordered+s.Ordered, row.Granted+s.Granted
			row.Calls, row.Failed, row.P99 = row.Calls+s.Calls, row.Failed+s.Failed, max(row.P99, s.P99)
		}
		n := int64(len(part))
		for _, count := range []*int64{&row.Came, &row.Admitted, &row.Ordered, &row.Granted, &row.Calls, &row.Failed} {
			*count /= n
		}
		out.rows = append(out.rows, row)
	}
	return out
}
