package load

import (
	"math"
	"time"
)

// Shapes are the ways in which people may come, by name: evenly; at a rate that
// rises from nothing to twice the mean; half of them in the first tenth of the
// time, and the others evenly after that.
const (
	Constant = "constant"
	Ramp     = "ramp"
	Burst    = "burst"
)

// Arrivals is when people come: so many within a time, whatever becomes of them.
type Arrivals struct {
	Shape  string
	People int
	Over   time.Duration // 0: all at once
}

// Of a burst, this share comes within this part of the time.
const rush, rushTime = 0.5, 0.1

// At is when person i comes, counted from 0, after the beginning. It never goes
// back as i rises, and is within Over for all People.
func (a Arrivals) At(i int) time.Duration {
	part := float64(i) / float64(max(a.People, 1)) // of those who come, how many before
	switch a.Shape {
	case Ramp:
		part = math.Sqrt(part) // so that by the time t the square of t have come
	case Burst:
		if part < rush {
			part *= rushTime / rush
		} else {
			part = rushTime + (part-rush)*(1-rushTime)/(1-rush)
		}
	}
	return time.Duration(part * float64(a.Over))
}
