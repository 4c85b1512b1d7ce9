package load

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// point is a place on a diagram, in its own units.
type point struct{ x, y float64 }

// curve is one line of a diagram.
type curve struct {
	name   string
	points []point
}

// Measures of a diagram, in the units of the picture.
const (
	fieldWidth, fieldHeight = 800, 180
	fieldLeft, fieldTop     = 60, 34
)

// The colours can be told apart by people who see no red or green.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#000000"}

// field is a diagram being drawn.
type field struct {
	b    strings.Builder
	x, y float64 // what its width and height stand for
}

// chart draws curves over the time of the run.
func chart(title, unit string, curves []curve) template.HTML {
	var f field
	for _, c := range curves {
		for _, p := range c.points {
			f.x, f.y = max(f.x, p.x), max(f.y, p.y)
		}
	}
	f.begin(title, unit)
	key := fieldLeft + fieldWidth
	for i := len(curves) - 1; i >= 0; i-- { // the key stands at the right, in the order of the curves
		c := curves[i]
		key -= 40 + 8*len(c.name)
		fmt.Fprintf(&f.b, `<path d="M%d 16h18" stroke="%s" stroke-width="3"/><text x="%d" y="20">%s</text>`+"\n", key, colours[i], key+24, html.EscapeString(c.name))
	}
	for i, c := range curves {
		at := make([]string, len(c.points))
		for j, p := range c.points {
			at[j] = f.at(p)
		}
		fmt.Fprintf(&f.b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n", colours[i], strings.Join(at, " "))
	}
	return f.end()
}

// scatter draws what people were told against what became of it, with the line on
// which both are the same.
func scatter(title string, of []Passage) template.HTML {
	var f field
	for _, p := range of {
		f.x, f.y = max(f.x, p.Told), max(f.y, p.Real)
	}
	f.begin(title, "s")
	same := min(f.x, f.y)
	fmt.Fprintf(&f.b, `<polyline fill="none" stroke="#999" stroke-dasharray="4" points="%s %s"/>`+"\n", f.at(point{0, 0}), f.at(point{same, same}))
	for _, p := range of {
		x, y, _ := strings.Cut(f.at(point{p.Told, p.Real}), ",")
		fmt.Fprintf(&f.b, `<circle cx="%s" cy="%s" r="2" fill="%s" fill-opacity="0.5"/>`+"\n", x, y, colours[0])
	}
	return f.end()
}

// begin draws the axes.
func (f *field) begin(title, unit string) {
	f.x, f.y = max(1, 4*math.Ceil(f.x/4)), rounded(f.y) // quarters of both read well
	fmt.Fprintf(&f.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="12">`+"\n",
		fieldLeft+fieldWidth+20, fieldTop+fieldHeight+30)
	fmt.Fprintf(&f.b, `<title>%s</title><text x="%d" y="20" font-weight="bold">%s</text>`+"\n", html.EscapeString(title), fieldLeft, html.EscapeString(title))
	const parts = 4
	for n := range parts + 1 {
		part := float64(n) / parts
		y := fieldTop + fieldHeight*(1-part)
		x := fieldLeft + fieldWidth*part
		fmt.Fprintf(&f.b, `<path d="M%d %.1fh%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			fieldLeft, y, fieldWidth, fieldLeft-6, y+4, number(f.y*part))
		fmt.Fprintf(&f.b, `<text x="%.1f" y="%d" text-anchor="middle">%s %s</text>`+"\n", x, fieldTop+fieldHeight+18, number(f.x*part), unit)
	}
}

func (f *field) end() template.HTML { return template.HTML(f.b.String() + "</svg>\n") } //nolint:gosec // all texts in it are escaped

func (f *field) at(p point) string {
	return fmt.Sprintf("%.1f,%.1f", fieldLeft+fieldWidth*p.x/f.x, fieldTop+fieldHeight*(1-p.y/f.y))
}

// rounded is the next number above that reads well in quarters.
func rounded(x float64) float64 {
	if x <= 0 {
		return 1
	}
	ten := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8} {
		if x <= n*ten {
			return n * ten
		}
	}
	return 10 * ten
}

func number(x float64) string {
	if x >= 10_000 {
		return fmt.Sprintf("%gk", x/1000)
	}
	return fmt.Sprintf("%g", math.Round(x*100)/100)
}
