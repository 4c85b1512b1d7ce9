package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// lane is a line that moves, in virtual time: half a batch each half interval, as
// the scheduler does it, and whoever is silent is passed over at the front.
type lane struct {
	rand     *rand.Rand
	now      time.Time
	line     []*waiter
	batch    int
	interval time.Duration
	silent   float64 // part of those who come
	comes    float64 // a second
	jitter   float64 // of a tick's size
	Sample
}

type waiter struct {
	silent   bool
	admitted time.Time
}

func (l *lane) come(n int) {
	for range n {
		l.line = append(l.line, &waiter{silent: l.rand.Float64() < l.silent})
	}
}

// pass lets time go by, a tick of half an interval at a time.
func (l *lane) tick() {
	l.now = l.now.Add(l.interval / 2)
	l.come(int(l.comes*l.interval.Seconds()/2 + l.rand.Float64()))
	n := int(math.Round(float64(l.batch) / 2 * (1 + l.jitter*(2*l.rand.Float64()-1))))
	for ; n > 0 && len(l.line) > 0; l.line = l.line[1:] {
		if l.line[0].silent {
			l.Passed++
			continue
		}
		l.line[0].admitted = l.now
		l.Admitted++
		n--
	}
	l.At, l.Waiting = l.now, int64(len(l.line))
}

// guess is what somebody was told, and how it went.
type guess struct {
	who  *waiter
	at   time.Time
	told Wait
}

// watch runs a line and asks for somebody in it at each tick.
func (l *lane) watch(ticks int) (told []guess) {
	var p Pace
	for n := range ticks {
		l.tick()
		if p = p.Next(l.Sample, l.interval); n < ticks/4 || len(l.line) < 2 {
			continue
		}
		ahead := l.rand.IntN(len(l.line))
		if wait, known := p.Wait(int64(ahead)); known && !l.line[ahead].silent {
			told = append(told, guess{l.line[ahead], l.now, wait})
		}
	}
	return told
}

func TestTheEstimateIsWithinAFifthAtSteadyState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		batch    int
		interval time.Duration
		silent   float64
		jitter   float64 // beyond a half it is no steady state, and only the range is held to it
	}{
		{50, time.Second, 0, 0}, {50, time.Second, 0.3, 0}, {50, time.Second, 0.6, 0.3},
		{6, 100 * time.Millisecond, 0.2, 0}, {600, time.Minute, 0.2, 0}, {1000, time.Second, 0.1, 0.3}, {50, time.Second, 0, 1},
	} {
		t.Run(fmt.Sprintf("%d every %v, %.1f silent, jitter %.1f", c.batch, c.interval, c.silent, c.jitter), func(t *testing.T) {
			t.Parallel()
			perSecond := float64(c.batch) / c.interval.Seconds()
			l := &lane{
				rand: rand.New(rand.NewPCG(7, 7)), now: time.Unix(1e9, 0), batch: c.batch, interval: c.interval,
				silent: c.silent, jitter: c.jitter, comes: perSecond / (1 - c.silent), Sample: Sample{Moves: true},
			}
			l.come(int(perSecond * 60 * max(1, c.interval.Seconds()) / (1 - c.silent)))
			long, near, inRange, nearInRange := 0, 0, 0, 0
			guesses := l.watch(int(max(2000, 300*2/c.interval.Seconds())))
			l.comes = 0
			for len(l.line) > 0 {
				l.tick()
			}
			for _, g := range guesses {
				took := g.who.admitted.Sub(g.at)
				in := took <= g.told.Most && took >= g.told.Least
				if in {
					inRange++
				}
				if took < 5*c.interval {
					near++
					if in {
						nearInRange++
					}
				}
				if c.jitter > 0.5 || took < max(10*c.interval, 20*time.Second) {
					continue // a batch is a large part of it
				}
				long++
				require.InEpsilon(t, took.Seconds(), g.told.Likely.Seconds(), 0.2, "told %v after %v", g.told, g.at)
			}
			require.True(t, long > 300 || c.jitter > 0.5, "%d", long)
			require.GreaterOrEqual(t, float64(nearInRange), 0.9*float64(near), "near the front: %d of %d", nearInRange, near)
			require.GreaterOrEqual(t, float64(inRange), 0.9*float64(len(guesses)), "in the range: %d of %d", inRange, len(guesses))
		})
	}
}

func TestNothingIsKnownBeforeAnIntervalWasSeen(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{100 * time.Millisecond, time.Second, time.Minute} {
		var p Pace
		known := func() bool { _, ok := p.Wait(0); return ok }
		s := Sample{At: time.Unix(1e9, 0), Moves: true, Waiting: 5}
		next := func(after time.Duration, admitted int64) {
			s.At, s.Admitted = s.At.Add(after), s.Admitted+admitted
			p = p.Next(s, interval)
		}
		require.False(t, known())
		next(0, 0)
		short := max(interval, shortSample) - time.Millisecond
		next(short, 500)
		require.False(t, known(), "less than %v says nothing: members come in batches", interval)
		next(time.Millisecond, 0)
		require.True(t, known())
		require.InDelta(t, 500/max(interval, shortSample).Seconds(), p.PerSecond(), 0.1)
	}
}

func TestAPauseAnEmptyLineAndALongGapAreNoMeasurement(t *testing.T) {
	t.Parallel()
	// measured is the pace of a lane of 10 a second, with a time in it in which
	// nobody is let through.
	measured := func(gap time.Duration, moves bool, waiting int64) float64 {
		var p Pace
		s := Sample{At: time.Unix(1e9, 0), Moves: true, Waiting: 1000}
		run := func() {
			for range 10 {
				p = p.Next(s, time.Second)
				s.At, s.Admitted = s.At.Add(time.Second), s.Admitted+10
			}
			p = p.Next(s, time.Second)
		}
		run()
		s.Moves, s.Waiting = moves, waiting
		p = p.Next(s, time.Second)
		s.At = s.At.Add(gap)
		p = p.Next(s, time.Second)
		s.Moves, s.Waiting = true, 1000
		s.At = s.At.Add(time.Millisecond)
		run()
		return p.PerSecond()
	}
	require.InDelta(t, 10, measured(5*time.Second, false, 1000), 1e-9, "paused")
	require.InDelta(t, 10, measured(5*time.Second, true, 0), 1e-2, "nobody in line")
	require.InDelta(t, 10, measured(time.Minute, true, 1000), 1e-2, "nobody looked")
	require.Less(t, measured(5*time.Second, true, 1000), 9.0, "a scheduler that is away")
}

func TestThePaceFollowsANewRate(t *testing.T) {
	t.Parallel()
	var p Pace
	s := Sample{At: time.Unix(1e9, 0), Moves: true, Waiting: 1000}
	for n := range 120 {
		p = p.Next(s, time.Second)
		s.At = s.At.Add(time.Second)
		if s.Admitted += 10; n >= 60 {
			s.Admitted += 30
		}
	}
	require.InEpsilon(t, 40, p.PerSecond(), 0.06)
}

func TestARangeHasTheEstimateInIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p Pace
		interval := time.Duration(rapid.IntRange(1, 600).Draw(t, "interval")) * 100 * time.Millisecond
		s := Sample{At: time.Unix(1e9, 0), Moves: true, Waiting: 9}
		for range rapid.IntRange(2, 30).Draw(t, "samples") {
			p = p.Next(s, interval)
			s.At = s.At.Add(time.Duration(rapid.Int64Range(0, 200_000).Draw(t, "ms")) * time.Millisecond)
			s.Admitted += rapid.Int64Range(0, 10_000).Draw(t, "admitted")
			s.Passed += rapid.Int64Range(-500, 1000).Draw(t, "passed")
			s.Moves, s.Waiting = rapid.IntRange(0, 9).Draw(t, "moves") > 0, rapid.Int64Range(0, 3).Draw(t, "waiting")
		}
		near, known := p.Wait(0)
		far, _ := p.Wait(rapid.Int64Range(1, 1e9).Draw(t, "ahead"))
		if known && (near.Least < 0 || near.Least > near.Likely || near.Likely > near.Most || far.Likely < near.Likely || far.Most < far.Likely) {
			t.Fatalf("%+v, and further back %+v", near, far)
		}
	})
}
