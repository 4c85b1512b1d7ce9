package main

import (
	"fmt"
	"html"
	"strings"
)

// bar is one row of a plot.
type bar struct {
	label string
	parts []float64 // one behind the other
	low   float64   // the quartiles, where there are some
	high  float64
	note  string
}

// colours are of the parts of a bar, the first for all where there is one.
var colours = []string{"#3b6ea8", "#c8553d", "#6a994e", "#9a9a9a"}

const (
	plotWidth, labelWidth, noteWidth = 760, 210, 130
	rowHeight, topHeight             = 22, 50
)

// plot draws bars below a title, with a legend of the parts.
func plot(title string, legend []string, bars []bar) string {
	most := 0.0
	for _, b := range bars {
		most = max(most, b.total(), b.high)
	}
	scale := float64(plotWidth-labelWidth-noteWidth) / most
	var s strings.Builder
	height := topHeight + rowHeight*len(bars) + 10
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, height)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="#fff"/><text x="10" y="20" font-size="14">%s</text>`+"\n", plotWidth, height, html.EscapeString(title))
	for i, name := range legend {
		fmt.Fprintf(&s, `<rect x="%d" y="28" width="10" height="10" fill="%s"/><text x="%d" y="37">%s</text>`+"\n", 10+i*110, colours[i], 24+i*110, html.EscapeString(name))
	}
	for i, b := range bars {
		b.draw(&s, topHeight+i*rowHeight, scale)
	}
	return s.String() + "</svg>\n"
}

func (b bar) total() float64 {
	sum := 0.0
	for _, p := range b.parts {
		sum += p
	}
	return sum
}

func (b bar) draw(s *strings.Builder, y int, scale float64) {
	fmt.Fprintf(s, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-6, y+14, html.EscapeString(b.label))
	x := float64(labelWidth)
	for i, p := range b.parts {
		fmt.Fprintf(s, `<rect x="%.1f" y="%d" width="%.1f" height="16" fill="%s"/>`, x, y+2, p*scale, colours[i])
		x += p * scale
	}
	if b.high > b.low {
		fmt.Fprintf(s, `<path d="M%.1f %dH%.1f" stroke="#111"/>`, labelWidth+b.low*scale, y+10, labelWidth+b.high*scale)
		x = max(x, labelWidth+b.high*scale)
	}
	fmt.Fprintf(s, `<text x="%.1f" y="%d">%s</text>`+"\n", x+5, y+14, html.EscapeString(b.note))
}

// ratesPlot is how many answers a second each side gives.
func (r *Result) ratesPlot() string {
	var bars []bar
	for _, c := range r.Contests {
		for _, side := range c.Sides {
			v := c.rate(side)
			bars = append(bars, bar{c.label(side), []float64{v.Median}, v.Low, v.High, fmt.Sprintf("%.0f", v.Median)})
		}
	}
	return plot("Answers a second: median of rounds, and quartiles", nil, bars)
}

// cpuPlot is what a request costs which process.
func (r *Result) cpuPlot() string {
	var bars []bar
	for _, c := range r.Contests {
		for _, side := range c.Sides {
			b := bar{label: c.label(side)}
			for _, p := range []string{serverCPU, redisCPU, postgresCPU} {
				b.parts = append(b.parts, c.micros(side, p).Median)
			}
			b.note = fmt.Sprintf("%.0f us", b.total())
			bars = append(bars, b)
		}
	}
	return plot("CPU of a request by process, user and system: median of rounds", []string{"server", "Redis", "Postgres"}, bars)
}

func (c Contest) label(side string) string {
	return fmt.Sprintf("%s at %d, %s", c.title(), c.Connections, side)
}
