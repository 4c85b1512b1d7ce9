package sim

import "time"

// fluid is the line without chance: so many come in each step, as many are taken
// as the rate allows, and lanes share it by weight. What one lane does not need
// goes to the others, as with stride scheduling. It is thousands of times
// quicker than a run, and enough to choose weights by.
type fluid struct {
	step time.Duration
	come [][]float64 // lane, step
	want []time.Duration
	ramp time.Duration // an adaptive room begins with half, and is at its rate after this
}

// rampThoughts is how many times as long as people think the way from half of the
// batch to all of it takes: a twentieth each time, and a little for being sure.
const rampThoughts = 16

// flow makes the fluid of a plan.
func flow(p Plan) fluid {
	f := fluid{step: max(p.Room.Interval/2, 500*time.Millisecond)}
	if !p.Room.Fixed {
		f.ramp = rampThoughts * p.People.Think
	}
	steps := int(p.Shape.Length / f.step)
	for _, l := range p.Room.Lanes {
		come := make([]float64, steps)
		for n := range come {
			come[n] = l.Arrivals * p.Shape.arrivals(time.Duration(n)*f.step) * f.step.Seconds()
		}
		f.come, f.want = append(f.come, come), append(f.want, l.Target)
	}
	return f
}

// pool is a lane of the fluid: those who came in each step, the first first.
type pool struct {
	come    []float64
	head    int     // the step of the first who waits
	left    float64 // of that step
	waiting float64
	longest time.Duration
}

// fill lets those of a step in.
func (l *pool) fill(n int) {
	if n < len(l.come) {
		if l.head == n {
			l.left = l.come[n]
		}
		l.waiting += l.come[n]
	}
	l.seek(n)
}

// seek goes on to the first step of which somebody waits.
func (l *pool) seek(n int) {
	for l.left <= tiny && l.head <= n {
		l.left = 0
		if l.head++; l.head < len(l.come) && l.head <= n {
			l.left = l.come[l.head]
		}
	}
}

// take serves so many, and notes how long they had waited at step n.
func (l *pool) take(amount float64, n int, step time.Duration) {
	l.waiting = max(0, l.waiting-amount)
	for amount > tiny && l.left > tiny {
		l.longest = max(l.longest, time.Duration(n-l.head+1)*step)
		part := min(amount, l.left)
		amount, l.left = amount-part, l.left-part
		l.seek(n)
	}
	if l.left <= tiny {
		l.waiting = 0 // what is left of it is rounding
	}
}

// tiny is nobody, in a world of parts of people.
const tiny = 1e-9

func (f fluid) pools() []pool {
	lanes := make([]pool, len(f.come))
	for i, come := range f.come {
		lanes[i].come = come
	}
	return lanes
}

// run serves at a rate a second, by weight, until all are through, and returns
// the longest wait of each lane. It gives up at four times the length.
func (f fluid) run(rate float64, weights []float64) []time.Duration {
	return f.serve(rate, func(lanes []pool, n int, budget float64) {
		for budget > tiny {
			var sum float64
			for i := range lanes {
				if lanes[i].waiting > tiny {
					sum += weights[i]
				}
			}
			if sum == 0 {
				return
			}
			given := budget
			for i := range lanes {
				if lanes[i].waiting > tiny {
					part := min(given*weights[i]/sum, lanes[i].waiting)
					lanes[i].take(part, n, f.step)
					budget -= part
				}
			}
		}
	})
}

// urgent is run with no weights: always those whose time is up first. What this
// order of service cannot do, none can.
func (f fluid) urgent(rate float64) []time.Duration {
	return f.serve(rate, func(lanes []pool, n int, budget float64) {
		for budget > tiny {
			next := nobody
			for i := range lanes {
				if lanes[i].waiting > tiny && (next == nobody || f.due(&lanes[i], i) < f.due(&lanes[next], next)) {
					next = i
				}
			}
			if next == nobody {
				return
			}
			part := min(budget, lanes[next].left)
			lanes[next].take(part, n, f.step)
			budget -= part
		}
	})
}

// due is when the first of a lane must be served.
func (f fluid) due(l *pool, lane int) time.Duration {
	want := f.want[lane]
	if want == 0 {
		want = 1000 * time.Hour
	}
	return time.Duration(l.head)*f.step + want
}

func (f fluid) serve(rate float64, share func(lanes []pool, n int, budget float64)) []time.Duration {
	lanes, steps := f.pools(), len(f.come[0])
	for n := 0; n < 4*steps; n++ {
		waiting := 0.0
		for i := range lanes {
			lanes[i].fill(n)
			waiting += lanes[i].waiting
		}
		if n >= steps && waiting < tiny {
			break
		}
		begun := 1.0
		if at := time.Duration(n) * f.step; at < f.ramp {
			begun = 0.5 + 0.5*at.Seconds()/f.ramp.Seconds()
		}
		share(lanes, n, begun*rate*f.step.Seconds())
	}
	longest := make([]time.Duration, len(lanes))
	for i := range lanes {
		if longest[i] = lanes[i].longest; lanes[i].waiting > 1 {
			longest[i] = 4 * time.Duration(steps) * f.step
		}
	}
	return longest
}

// met tells whether all waits are as wanted.
func (f fluid) met(longest []time.Duration) bool {
	for i, w := range longest {
		if f.want[i] > 0 && w > f.want[i] {
			return false
		}
	}
	return true
}
