package sim

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// curve is one line of a panel.
type curve struct {
	name   string
	colour string
	at     func(Row) float64
}

// panel is a diagram over the time of the run.
type panel struct {
	title  string
	curves []curve
}

// Measures of the picture, in its own units.
const (
	width, height = 900, 200 // of a panel's field
	left, top     = 70, 56
	gap           = 70
)

// The colours can be told apart by people who see no red or green.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"}

func (r Result) panels() []panel {
	perSecond := func(n int64) float64 { return float64(n) / controller.RoundLength.Seconds() }
	line := panel{title: "people in line"}
	for i, l := range r.Lanes {
		line.curves = append(line.curves, curve{l.Name, colours[i], func(row Row) float64 { return float64(row.Waiting[i]) }})
	}
	return []panel{
		line,
		{"a second", []curve{
			{"let through", colours[0], func(row Row) float64 { return perSecond(row.Granted) }},
			{"orders sent", colours[1], func(row Row) float64 { return perSecond(row.First + row.Again) }},
			{"what the database bears", "#000000", func(row Row) float64 { return row.Bears }},
		}},
		{"milliseconds an order takes, on average", []curve{
			{"of those placed", colours[2], func(row Row) float64 { return float64(row.Latency().Milliseconds()) }},
		}},
	}
}

// WriteSVG draws the run: the line, what is let through and sent beside what the
// database bears, and how long orders take.
func (r Result) WriteSVG(w io.Writer) error {
	b := bufio.NewWriter(w)
	panels := r.panels()
	total := top + len(panels)*(height+gap)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="13">`+"\n", left+width+30, total)
	fmt.Fprintf(b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", html.EscapeString(r.title()))
	fmt.Fprintf(b, `<text x="%d" y="24" font-size="16">%s</text>`+"\n", left, html.EscapeString(r.title()))
	for i, p := range panels {
		r.draw(b, p, top+i*(height+gap)+20)
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

func (r Result) title() string {
	how := "adaptive"
	if r.Plan.Room.Fixed {
		how = "fixed"
	}
	return fmt.Sprintf("%s: batch of %d every %v, %s", r.Plan.Shape.Name, r.Plan.Room.Batch, r.Plan.Room.Interval, how)
}

func (r Result) draw(b io.Writer, p panel, y int) {
	most := 0.0
	for _, row := range r.Rows {
		for _, c := range p.curves {
			most = max(most, c.at(row))
		}
	}
	most = rounded(most)
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", left, y-8, html.EscapeString(p.title))
	for n := range 5 {
		at := float64(y) + float64(height)*float64(4-n)/4
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, at, width, left-8, at+4, short(most*float64(n)/4))
	}
	for minute := time.Duration(0); minute <= r.Plan.Shape.Length; minute += 5 * time.Minute {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d min</text>`+"\n", r.x(minute), y+height+18, int(minute.Minutes()))
	}
	key := left + 330
	for _, c := range p.curves {
		points := make([]string, len(r.Rows))
		for i, row := range r.Rows {
			points[i] = fmt.Sprintf("%.1f,%.1f", r.x(row.At), float64(y)+float64(height)*(1-c.at(row)/most))
		}
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n", c.colour, strings.Join(points, " "))
		fmt.Fprintf(b, `<path d="M%d %dh18" stroke="%s" stroke-width="3"/><text x="%d" y="%d">%s</text>`+"\n", key, y-12, c.colour, key+24, y-8, html.EscapeString(c.name))
		key += 44 + 8*len(c.name)
	}
}

func (r Result) x(at time.Duration) float64 {
	return left + width*at.Seconds()/max(r.Plan.Shape.Length.Seconds(), 1)
}

// rounded is the next number above that reads well: 1, 2, 4 or 8 and zeros.
func rounded(x float64) float64 {
	if x <= 0 {
		return 1
	}
	ten := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 4, 8} {
		if x <= n*ten {
			return n * ten
		}
	}
	return 10 * ten
}

func short(x float64) string {
	if x >= 10_000 {
		return fmt.Sprintf("%gk", x/1000)
	}
	return fmt.Sprintf("%g", x)
}
