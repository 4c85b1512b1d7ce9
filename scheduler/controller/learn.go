package controller

import (
	"math"
	"time"
)

const (
	delayMemory = time.Minute
	longDelay   = 5 * time.Minute // longer ones are retries after an outage, not people
	flowMemory  = 30 * time.Second
	shareMemory = 5 * time.Minute
	shareDoubt  = 20  // grants that are taken for used before any has ended
	fullUse     = 0.8 // of the batch
	leastShare  = 0.5 // no-shows are made up for by at most twice the batch
)

// fade is the part of a moving average that stays after a time.
func fade(took, memory time.Duration) float64 { return math.Exp(-took.Seconds() / memory.Seconds()) }

// Share is the part of the grants that are used, as far as is known: 1 until
// grants have ended without an order.
func (s State) Share() float64 {
	return max(leastShare, (s.Tried+shareDoubt)/(s.Tried+s.Unused+shareDoubt))
}

// expect follows the grants until their orders must have come, and counts for
// how long none has.
//
// Tested trails the grants by the time that people think (a lag of first order,
// which is what a spread of think times makes of a step): what is not in it yet
// may still come as a surprise. Orders are expected where it and the grants of
// this round both say so: at the end of a wave the lag has a longer tail than
// people have. A batch of which a part was refused, or came a moment too late for
// the round, has still been tried.
func (s State) expect(r Round, l Limits) State {
	granted, size := float64(r.Granted)/r.intervals(l), float64(s.Size(l))
	if granted >= fullUse*size {
		granted = max(granted, size)
	}
	s.Tested += (granted - s.Tested) * (1 - fade(r.Took, max(s.Delay, r.Took, 2*l.Interval)))
	switch attempts := r.Orders.Attempts(); {
	case attempts > 0:
		s.Heard, s.Missed, s.Silent = true, 0, 0
		if r.Orders.Orders() == 0 && r.Orders.Failed >= someFailed {
			s.Failing++
		} else {
			s.Failing = 0
		}
	case s.Heard:
		s.Missed += min(s.Tested, granted) * s.Share() * r.intervals(l)
		s.Silent++
	default: // nobody knows yet how long people think, so only grants that ended tell
		s.Missed += float64(r.Unused)
		s.Silent++
	}
	return s
}

// learn takes from a quiet round how people behave. Other rounds tell more
// about the database: who could not order is no no-show, and who had to repeat
// it did not think for longer.
func (s State) learn(r Round, l Limits) State {
	if n := r.Orders.Attempts(); n > 0 {
		seen := min(r.Orders.Delay/time.Duration(n), longDelay)
		s.Delay += time.Duration(float64(seen-s.Delay) * (1 - fade(r.Took, delayMemory)))
	}
	s.Flow += (float64(r.Orders.Orders())/r.intervals(l) - s.Flow) * (1 - fade(r.Took, flowMemory))
	if s.Doubt == 0 {
		keep := fade(r.Took, shareMemory)
		s.Tried = keep*s.Tried + float64(r.Orders.Attempts())
		s.Unused = keep*s.Unused + float64(r.Unused)
	}
	return s
}
