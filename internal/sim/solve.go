package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Answer is a batch and weights with which all wait no longer than wanted.
type Answer struct {
	Batch   int
	Weights []int
	Result  Result // of a run with them
}

// NoAnswer says why none will do.
type NoAnswer struct{ Reason string }

// Error is the reason.
func (e NoAnswer) Error() string { return e.Reason }

const (
	// spare is the part of what the database bears that a fixed batch may ask for.
	// An adaptive one may be twice as large: it begins with half of itself.
	spare = 0.95
	// closer is how near the answer is to the smallest, and bolder by how much more
	// is tried where a run has missed what was wanted.
	closer = 1.03
	bolder = 1.1
	tries  = 12
)

// Solve finds a batch as small as it can, and weights, with which a plan's people
// wait no longer than is wanted of each lane; the plan's own batch and weights do
// not matter. The answer has been run, with chance in it: there 95 of 100 do. The
// error is NoAnswer where there is none.
//
// It looks for both in the line without chance (fluid): the rate by halving
// between what the most urgent order of service needs, and what is enough if
// every lane gets its own share at its worst moment.
func Solve(p Plan) (Answer, error) {
	f := flow(p)
	if !slices.ContainsFunc(f.want, func(w time.Duration) bool { return w > 0 }) {
		return Answer{}, errors.New("no lane says how long people may wait")
	}
	atOnce := f
	atOnce.ramp = 0
	if least, bears := atOnce.least(), p.bearable(); least > bears {
		return Answer{}, NoAnswer{fmt.Sprintf(
			"whatever the weights, %.1f a second would have to be let through, and the database bears %.1f", least, bears)}
	}
	least, most := f.least(), p.largest()
	for range tries {
		rate, weights, ok := f.cheapest(least, most)
		if !ok {
			return Answer{}, NoAnswer{fmt.Sprintf("no weights do with a batch of %d", p.batch(most, most))}
		}
		a := Answer{Batch: p.batch(rate, most), Weights: weights}
		a.Result = Run(p.with(a))
		missed := a.missed()
		if missed == nobody {
			return a, nil
		}
		if rate >= most/closer {
			l := a.Result.Lanes[missed]
			return Answer{}, NoAnswer{fmt.Sprintf("with a batch of %d, the largest that the database bears, 95 of 100 in lane %s wait up to %v; %v is wanted",
				a.Batch, l.Name, l.P95.Round(time.Second), l.Target)}
		}
		f, least = f.stricter(a.Result), min(rate*bolder, most)
	}
	return Answer{}, NoAnswer{"the waits are too close to what is possible: ask for a little more of them, or of the database"}
}

// bearable is how many may be let through a second so that the database bears
// the orders that come of it.
func (p Plan) bearable() float64 {
	return spare * p.Database.Bears(1) / (1 - p.People.NoShows)
}

// largest is the highest rate a second that may be proposed.
func (p Plan) largest() float64 {
	if p.Room.Fixed {
		return p.bearable()
	}
	return 2 * p.bearable()
}

// batch is the batch that gives a rate: whole, and at least one.
func (p Plan) batch(rate, most float64) int {
	n := math.Ceil(rate * p.Room.Interval.Seconds())
	return int(min(max(n, 1), max(1, math.Floor(most*p.Room.Interval.Seconds())), 10_000))
}

// with is the plan as answered. Arrivals end with the shape, and it goes on until
// whoever came last has waited for as long as is wanted.
func (p Plan) with(a Answer) Plan {
	var longest time.Duration
	for _, l := range p.Room.Lanes {
		longest = max(longest, l.Target)
	}
	p.Shape.Come = append(slices.Clone(p.Shape.Come), Stretch{From: p.Shape.Length})
	p.Shape.Length += longest + window
	p.Room.Batch = a.Batch
	p.Room.Lanes = slices.Clone(p.Room.Lanes)
	for i, w := range a.Weights {
		p.Room.Lanes[i].Weight = w
	}
	return p
}

// missed is a lane whose people wait for too long, or nobody.
func (a Answer) missed() int {
	for i, l := range a.Result.Lanes {
		if l.Target > 0 && (!l.Met() || l.Left > 0) {
			return i
		}
	}
	return nobody
}

// stricter asks for shorter waits where a run has missed them.
func (f fluid) stricter(r Result) fluid {
	want := slices.Clone(f.want)
	for i, l := range r.Lanes {
		if !l.Met() {
			off := max(0.6, float64(l.Target)/float64(l.P95))
			want[i] = max(f.step, time.Duration(float64(want[i])*min(off, 0.95)))
		}
	}
	f.want = want
	return f
}

// least is the lowest rate at which the most urgent order of service does it.
func (f fluid) least() float64 {
	return lowest(func(rate float64) bool { return f.met(f.urgent(rate)) })
}

// lowest is the lowest rate that does, to a part in a thousand, where higher
// ones do as well.
func lowest(does func(rate float64) bool) float64 {
	high := 1e-3
	for !does(high) {
		if high *= 2; high > 1e9 {
			return math.Inf(1)
		}
	}
	low := high / 2
	for high/low > 1.001 {
		if mid := math.Sqrt(low * high); does(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// cheapest is the lowest rate from low to most at which weights are found.
func (f fluid) cheapest(low, most float64) (rate float64, weights []int, ok bool) {
	if low = max(low, f.least()); low > most {
		return 0, nil, false
	}
	rate = low
	parts, ok := f.parts(rate)
	if !ok {
		rate = most
		if parts, ok = f.parts(rate); !ok {
			return 0, nil, false
		}
	}
	for rate/low > closer {
		mid := math.Sqrt(low * rate)
		if p, ok := f.parts(mid); ok {
			rate, parts = mid, p
		} else {
			low = mid
		}
	}
	for ; rate <= most*closer; rate *= closer { // whole numbers may need a little more
		if weights, ok := f.wholeWeights(rate, parts); ok {
			return min(rate, most), weights, true
		}
	}
	return 0, nil, false
}

// parts looks for weights that do at a rate. It begins with what each lane would
// need for itself, and gives more to those that wait for too long.
func (f fluid) parts(rate float64) ([]float64, bool) {
	parts := make([]float64, len(f.come))
	for i := range parts {
		parts[i] = f.alone(i)
	}
	for range 40 {
		longest := f.run(rate, parts)
		if f.met(longest) {
			return parts, true
		}
		for i, w := range longest {
			if f.want[i] > 0 {
				parts[i] *= min(max(math.Sqrt(float64(w)/(0.97*float64(f.want[i]))), 0.7), 1.5)
			}
		}
	}
	return nil, false
}

// alone is the rate that a lane needs if the others leave it nothing. One of
// which nothing is wanted needs a little, to get on at all.
func (f fluid) alone(lane int) float64 {
	one := fluid{step: f.step, ramp: f.ramp, come: f.come[lane : lane+1], want: f.want[lane : lane+1]}
	if one.want[0] == 0 {
		var sum float64
		for _, n := range one.come[0] {
			sum += n
		}
		return max(tiny, 0.1*sum/(float64(len(one.come[0]))*f.step.Seconds()))
	}
	return one.least()
}

// wholeWeights are the smallest whole numbers near the parts that still do.
func (f fluid) wholeWeights(rate float64, parts []float64) ([]int, bool) {
	var sum float64
	for _, p := range parts {
		sum += p
	}
	for scale := len(parts); scale <= 200; scale++ {
		weights, near := make([]int, len(parts)), make([]float64, len(parts))
		for i, p := range parts {
			weights[i] = max(1, int(math.Round(p/sum*float64(scale))))
			near[i] = float64(weights[i])
		}
		if f.met(f.run(rate, near)) {
			return weights, true
		}
	}
	return nil, false
}
