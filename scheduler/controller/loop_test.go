package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// plant is the simplest database that can be overloaded: it completes so many a
// second, the rest waits, and who is let through orders so many rounds later.
// No chance is in it; package sim has one with chance.
type plant struct {
	bears  float64 // a second
	think  int     // rounds
	uses   float64 // share of grants that become orders
	hands  []int64 // granted, by round
	ahead  float64 // orders that wait
	unused float64
}

func (p *plant) round(s State, l Limits) Round {
	granted := int64(float64(s.Size(l)) * RoundLength.Seconds() / l.Interval.Seconds())
	p.hands = append(p.hands, granted)
	r := Round{Took: RoundLength, Granted: granted}
	if n := len(p.hands) - 1 - p.think; n >= 0 {
		p.ahead += float64(p.hands[n]) * p.uses
		p.unused += float64(p.hands[n]) * (1 - p.uses)
	}
	r.Unused = int64(p.unused)
	p.unused -= float64(r.Unused)
	done := int64(min(p.ahead, p.bears*RoundLength.Seconds()))
	p.ahead -= float64(done)
	band := fast
	switch wait := p.ahead / p.bears; {
	case wait > 1:
		band = slowest
	case wait > 0.5:
		band = slow
	case wait > 0.1:
		band = usual
	}
	r.Orders.Done[band] = done
	r.Orders.Delay = time.Duration(done) * time.Duration(p.think) * RoundLength
	return r
}

func TestTheBatchSettlesJustBelowWhatTheDatabaseBears(t *testing.T) {
	t.Parallel()
	for _, think := range []int{0, 1, 4, 12} {
		s, p := Begin(Limits{Batch: 300, Interval: time.Second}), &plant{bears: 100, think: think, uses: 1}
		l := Limits{Batch: 300, Interval: time.Second}
		s.Batch = 40
		s.Known = 20
		var worst float64
		for n := range 1440 { // two hours
			s = s.Next(p.round(s, l), l)
			worst = max(worst, s.Batch)
			if n > 720 {
				require.InDelta(t, 98, s.Batch, 10, "after %d rounds, with %d to think", n, think)
			}
		}
		require.LessOrEqual(t, worst, 110.0, "with %d rounds to think", think)
	}
}

func TestWhatNoShowsLeaveFreeIsGivenToOthers(t *testing.T) {
	t.Parallel()
	l := Limits{Batch: 300, Interval: time.Second}
	s, p := Begin(l), &plant{bears: 100, think: 2, uses: 1}
	s.Batch, s.Known = 60, 30
	run := func(rounds int) (batch float64) {
		for range rounds {
			s = s.Next(p.round(s, l), l)
			batch += s.Batch / float64(rounds)
		}
		return batch
	}
	run(720)
	require.InDelta(t, 96, run(240), 5)
	p.uses = 0.7
	run(240)
	require.InDelta(t, 96/0.7, run(480), 8, "as many orders as before")
	require.InDelta(t, 0.7, s.Share(), 0.03)
}

// parked is a room that stands at a ceiling of 100 orders a second.
func parked(unused int64) State {
	s := Begin(Limits{Batch: 1000, Interval: time.Second})
	s.Batch, s.Tested, s.Ceiling, s.Quiet, s.Known = 95, 95, 100, 5, 1
	s.Tried, s.Unused, s.Patience = 980, float64(unused), 24*time.Hour
	return s
}

func TestCapacityBoundsWhatNoShowsAreMadeUpFor(t *testing.T) {
	t.Parallel()
	reach := func(l Limits, inside int64) float64 {
		s := parked(1000)
		for range 120 {
			r := Round{Took: RoundLength, Granted: int64(s.Batch * 5), Inside: inside}
			r.Orders.Done[fast], r.Unused = r.Granted/2, r.Granted/2
			s = s.Next(r, l)
		}
		return s.Batch
	}
	wide := Limits{Batch: 1000, Interval: time.Second}
	require.InDelta(t, 95/0.5, reach(wide, 0), 20, "twice as many where half do not order")
	full := wide
	full.Capacity = 500
	require.InDelta(t, 95, reach(full, 500), 1, "nobody more where nothing is free")
	require.InDelta(t, 95+30, reach(full, 470), 1, "and no more than is free")
	low := wide
	low.Batch = 110
	require.Equal(t, 110.0, reach(low, 0), "nor more than the operator's batch")
}

func TestAnOutageIsNotTakenForNoShows(t *testing.T) {
	t.Parallel()
	s := Begin(limits).Next(Round{Took: RoundLength, Outage: true}, limits)
	late := Round{Took: RoundLength, Granted: 5, Unused: 200}
	late.Orders.Done[fast] = 5
	for at := time.Duration(0); at < limits.GrantTTL; at += RoundLength {
		s = s.Next(late, limits)
	}
	require.InDelta(t, 1, s.Share(), 0.001, "grants of the outage end until their time is over")
	for range 10 {
		s = s.Next(late, limits)
	}
	require.Less(t, s.Share(), 0.6)
}
