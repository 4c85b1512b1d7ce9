package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// line is the waiting line with its rate, counted as the scripts do it: reserve
// and issue in one, because nothing fails between them here.
type line struct {
	lanes  []waiting
	arrive []float64     // a second, per lane
	tat    time.Duration // where the bucket of one batch is empty
}

// waiting is one lane: when each has come, the first first.
type waiting struct {
	since  []time.Duration
	head   int
	pass   float64 // of stride scheduling: the lowest is served
	stride float64
}

func (w *waiting) len() int { return len(w.since) - w.head }

func (w *waiting) pop() time.Duration {
	at := w.since[w.head]
	if w.head++; w.head > 4096 && w.head > len(w.since)/2 {
		w.since = append(w.since[:0], w.since[w.head:]...)
		w.head = 0
	}
	return at
}

func newLine(r Room) line {
	l := line{tat: -r.Interval}
	for _, lane := range r.Lanes {
		l.lanes = append(l.lanes, waiting{stride: 1 / float64(lane.Weight)})
		l.arrive = append(l.arrive, lane.Arrivals)
	}
	return l
}

func (l *line) waiting() int {
	n := 0
	for i := range l.lanes {
		n += l.lanes[i].len()
	}
	return n
}

// next is the lane whose turn it is; nobody if all are empty.
func (l *line) next() int {
	pick := nobody
	for i := range l.lanes {
		if l.lanes[i].len() > 0 && (pick == nobody || l.lanes[i].pass < l.lanes[pick].pass) {
			pick = i
		}
	}
	return pick
}

// level sets the passes back to where the lowest busy lane is, so that an idle
// lane has saved nothing.
func (l *line) level() {
	lowest := math.Inf(1)
	for i := range l.lanes {
		if l.lanes[i].len() > 0 {
			lowest = min(lowest, l.lanes[i].pass)
		}
	}
	for i := range l.lanes {
		l.lanes[i].pass = max(l.lanes[i].pass-lowest, 0)
	}
}

// crowd is how long a stretch of arrivals is drawn at once.
const crowd = 100 * time.Millisecond

// arrive draws those who come in the next moment.
func (s *run) arrive() {
	s.after(crowd, arrive, nobody)
	factor := s.plan.Shape.arrivals(s.now)
	for i, perSecond := range s.line.arrive {
		for range poisson(s.rand, perSecond*factor*crowd.Seconds()) {
			s.line.lanes[i].since = append(s.line.lanes[i].since, s.now)
			s.round.Arrived++
		}
	}
}

// poisson draws from the Poisson distribution: by the product of uniform numbers
// where the mean is small, by its normal neighbour where it is large.
func poisson(r *rand.Rand, mean float64) int {
	if mean > 50 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	limit, p := math.Exp(-mean), 1.0
	for n := 0; ; n++ {
		if p *= r.Float64(); p <= limit {
			return n
		}
	}
}

// tick lets through as many as rate and capacity allow, and sleeps as long as
// reserve would say.
func (s *run) tick() {
	interval, batch := s.plan.Room.Interval, s.state.Size(s.plan.limits())
	waiting := s.line.waiting()
	if waiting == 0 {
		s.after(interval/2, tick, nobody)
		return
	}
	base := max(s.line.tat, s.now-interval)
	// In microseconds, as there: a whole number stays one.
	allowed := int(float64((s.now - base).Microseconds()) * float64(batch) / float64(interval.Microseconds()))
	half := min((batch+1)/2, waiting)
	if allowed < half {
		s.at(max(base+s.per(half, batch), s.now+time.Microsecond), tick, nobody)
		return
	}
	if s.plan.Room.Capacity > 0 {
		allowed = min(allowed, s.plan.Room.Capacity-int(s.inside))
		if allowed <= 0 {
			s.after(interval/4, tick, nobody)
			return
		}
	}
	taken := 0
	for ; taken < allowed; taken++ {
		lane := s.line.next()
		if lane == nobody {
			break
		}
		w := &s.line.lanes[lane]
		w.pass += w.stride
		s.admit(s.now-w.pop(), lane)
	}
	s.line.level()
	s.line.tat = base + s.per(taken, batch)
	s.after(time.Microsecond, tick, nobody)
}

// per is the time in which a batch as large as that lets n through, rounded up
// to the microsecond.
func (s *run) per(n, batch int) time.Duration {
	us := math.Ceil(float64(n) * float64(s.plan.Room.Interval.Microseconds()) / float64(batch))
	return time.Duration(us) * time.Microsecond
}
