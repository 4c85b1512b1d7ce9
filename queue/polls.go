package queue

import (
	"math"
	"sync/atomic"
	"time"
)

// SlowPoll is what a poll takes, Redis included, where a process or its Redis is
// busy: many times as long as one takes otherwise.
const SlowPoll = 10 * time.Millisecond

// MostStretch brings the interval of those far behind to LongestPoll. More would
// slow nobody down but those near the front.
const MostStretch = 6

// StretchEvery is how often Step wants to be called.
const StretchEvery = time.Second

// Polls says by how much the poll intervals of one process are to be stretched,
// so that it is asked no more than it can bear. Each process goes by what it sees.
//
// It keeps books of the polls that it has asked for: everybody who was answered has
// one appointment, and from the intervals that these would be without a stretch
// follows how often all of them together would ask. When a tenth of the polls has been
// slow for two seconds, it has seen how many answers a second are too many; from then
// on intervals are stretched so that those in the books ask three quarters of that. As
// what will come is known before it comes, nothing has to be tried out, and nothing
// swings. After five minutes in which nothing was slow it allows a twentieth more each
// minute, until it sees again what is too much.
//
// Books are right as long as members poll as told, and each process is asked by the same
// share of them. The zero Polls stretches nothing, and is ready for use.
//
//	Answered, Took: by every request     Step: by one, each second     Stretch: by anybody
type Polls struct {
	answered, slow atomic.Int64
	due            [bookedSeconds]atomic.Int64 // polls an hour, by the second in which they were asked for
	stretch        atomic.Uint64               // of a float64; 0 stands for 1

	at    time.Time // of the last Step
	tempo tempo
}

const (
	bookedSeconds = 64 // more than LongestPoll and a Step that comes late
	perBooking    = 3600 * time.Second
)

// Answered notes at now that somebody was told to poll after next, which would have
// been after usual without a stretch; of a usual of 0, that nobody was.
func (p *Polls) Answered(now time.Time, usual, next time.Duration) {
	p.answered.Add(1)
	if usual > 0 {
		p.bucket(now.Add(next).Unix()).Add(int64(perBooking / usual))
	}
}

// Took notes how long a poll took us.
func (p *Polls) Took(d time.Duration) {
	if d > SlowPoll {
		p.slow.Add(1)
	}
}

// Stretch is by how much intervals are to be longer than usual: 1 to MostStretch.
func (p *Polls) Stretch() float64 {
	return max(1, math.Float64frombits(p.stretch.Load()))
}

// Step looks at what was noted since the last Step, and returns the new Stretch. Only
// one goroutine may call it.
func (p *Polls) Step(now time.Time) float64 {
	elapsed := now.Sub(p.at)
	if p.at.IsZero() || elapsed <= 0 {
		elapsed = StretchEvery
		p.at = now.Add(-elapsed)
	}
	p.settle(p.at.Unix(), now.Unix())
	p.at = now
	answered, slow := p.answered.Swap(0), p.slow.Swap(0)
	seen := load{answered: float64(answered) / elapsed.Seconds(), due: p.booked(now), elapsed: elapsed}
	if answered > 0 {
		seen.slow = float64(slow) / float64(answered)
	}
	p.tempo = p.tempo.next(seen)
	p.stretch.Store(math.Float64bits(p.tempo.stretch))
	return p.tempo.stretch
}

func (p *Polls) bucket(second int64) *atomic.Int64 { return &p.due[uint64(second)%bookedSeconds] }

// settle takes out of the books whoever was to come from a second on, before another.
func (p *Polls) settle(from, before int64) {
	for s := max(from, before-bookedSeconds); s < before; s++ {
		p.bucket(s).Store(0)
	}
}

// booked is how many polls a second those in the books would make without a stretch.
// Of those who were to come in this second, as many have come as there has been of it.
func (p *Polls) booked(now time.Time) float64 {
	sum := int64(0)
	for i := range p.due {
		sum += p.due[i].Load()
	}
	sum -= p.bucket(now.Unix()).Load() * int64(now.Nanosecond()) / int64(time.Second)
	return float64(sum) / perBooking.Seconds()
}

// load is what a process has seen since the last step.
type load struct {
	answered float64 // a second
	slow     float64 // the share of these that was slow
	due      float64 // polls a second, of those in the books
	elapsed  time.Duration
}

// tempo is what a process has learned it can bear, and the stretch that follows. It
// is arithmetic alone.
type tempo struct {
	recent   float64 // answers a second, lately; one second that stands still is not all
	mean     float64 // answers a second, over some ten seconds
	late     int     // steps on end in which polls were slow
	bearable float64 // answers a second; 0: nobody knows
	calm     time.Duration
	stretch  float64 // 0 stands for 1
}

const (
	tooManySlow  = 0.1
	hardlySlow   = 0.01
	lateSteps    = 2    // one alone may be a collection of garbage, or a neighbour
	headroom     = 0.75 // of what was too much
	recentFades  = 0.8  // in each step
	meanFades    = 0.9
	calmAfter    = 5 * time.Minute
	growsPerHour = 3.  // 5 % a minute
	aside        = 0.2 // of what can be borne: from none of the stretch to the most
	drawn        = 0.1 // to it, in each step: at 0.2 it would swing
)

func (t tempo) next(l load) tempo {
	t.recent = max(l.answered, recentFades*t.recent)
	t.mean = meanFades*t.mean + (1-meanFades)*l.answered
	switch {
	case l.slow < hardlySlow:
		t.late, t.calm = 0, t.calm+l.elapsed
	case l.slow < tooManySlow:
		t.late = 0
	default:
		if t.late++; t.late >= lateSteps {
			t.bearable, t.calm = headroom*t.recent, 0
		}
	}
	if t.calm > calmAfter {
		t.bearable *= 1 + growsPerHour*l.elapsed.Hours()
		if t.bearable > 2*l.due { // what it bears it need not know
			t.bearable = 0
		}
	}
	t.stretch = t.toBear(l.due)
	return t
}

// toBear is the stretch with which those in the books ask as often as can be borne.
//
// By the books alone, processes that have learned different figures from one crowd
// would drift apart: those that are asked a little too often would stretch on and
// on, and the others less and less. So each is drawn, slowly, to a stretch that it
// sees without its books, and all see about alike: none where it is asked a fifth
// less than it should be, the most where it is asked a fifth more.
func (t tempo) toBear(due float64) float64 {
	if t.bearable == 0 {
		return 1
	}
	above := min(max((t.mean/t.bearable-1+aside)/(2*aside), 0), 1)
	alike := math.Pow(MostStretch, above)
	stretch := due / t.bearable * math.Pow(alike/max(t.stretch, 1), drawn)
	return min(max(stretch, 1), MostStretch)
}
