package main

import (
	"math"
	"slices"
)

// Spread is how values lie: the median, and the quartiles around it.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`  // a quarter is below
	High   float64 `json:"high"` // a quarter is above
	N      int     `json:"n"`
}

// spreadOf returns the zero Spread for no values.
func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{quantile(sorted, 0.5), quantile(sorted, 0.25), quantile(sorted, 0.75), len(sorted)}
}

// quantile lies between two of the sorted values where it falls between them.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(math.Floor(at))
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}

// Sample is one side's part of a round.
type Sample struct {
	Requests int                `json:"requests"`
	Seconds  float64            `json:"seconds"`
	CPU      map[string]float64 `json:"cpu"` // by process: seconds, user and system
}

func (s Sample) rate() float64 { return float64(s.Requests) / s.Seconds }

// micros is what a request costs the processes named, in microseconds of CPU.
func (s Sample) micros(processes ...string) float64 {
	total := 0.0
	for _, p := range processes {
		total += s.CPU[p]
	}
	return total * 1e6 / float64(s.Requests)
}

// Contest is sides measured by turns under the same load.
type Contest struct {
	Name        string              `json:"name"`
	Connections int                 `json:"connections"`
	Sides       []string            `json:"sides"`
	Rounds      []map[string]Sample `json:"rounds"` // by side
}

// each is f of every round in which all the sides have a sample.
func (c Contest) each(f func(round map[string]Sample) float64) Spread {
	values := make([]float64, len(c.Rounds))
	for i, r := range c.Rounds {
		values[i] = f(r)
	}
	return spreadOf(values)
}

// ratio is that of the rates of two sides, round by round.
func (c Contest) ratio(a, b string) Spread {
	return c.each(func(r map[string]Sample) float64 { return r[a].rate() / r[b].rate() })
}

func (c Contest) rate(side string) Spread {
	return c.each(func(r map[string]Sample) float64 { return r[side].rate() })
}

// micros is the CPU of a request, by process.
func (c Contest) micros(side string, processes ...string) Spread {
	return c.each(func(r map[string]Sample) float64 { return r[side].micros(processes...) })
}
