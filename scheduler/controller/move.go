package controller

import "time"

const (
	step = 0.1 // of the batch, the most that a round changes

	// quietRounds come before each rise that follows anything else than a rise.
	quietRounds = 2

	// headroom is how far the batch may be above what has been tried: with the
	// round or two until a slow order is seen, less than a tenth too much.
	headroom = 1.05

	// drain is the part of what the database completes that is let through while
	// it is slow, so that what has piled up in front of it goes down.
	drain = 0.92

	// enough orders of a round tell how many the database completes; fewer tell
	// only that it is slow.
	enough = 20

	// margin is how far below its ceiling the batch stays, and probe how much
	// higher the ceiling is put when all was quiet there for a while. After
	// refuted raises the old ceiling has been passed, and is forgotten.
	margin        = 0.95
	probe         = 1.03
	refuted       = 3
	ceilingGain   = 0.3 // of each slow round's completions
	shortPatience = time.Minute
	longPatience  = 4 * time.Minute
)

// collapse lets one through per interval. The way back is quick as far as half
// of what was in force: the database may come back weaker than it was.
func (s State) collapse(l Limits) State {
	if s.Batch > 1 {
		s.Known = s.Batch / 2
	}
	s.Batch, s.Quiet, s.Stuck, s.Flow, s.Doubt = 1, 0, 0, 0, l.GrantTTL
	s.Ceiling, s.Raised, s.Parked, s.Patience, s.Slow = 0, 0, 0, shortPatience, false
	return s
}

// cut lowers the batch to somewhat less than what the database completes, and
// no further while that may help: what is in the hands of people is still to
// come, whatever is done here. Where it does not help, it goes on.
func (s State) cut(r Round, l Limits) State {
	begins := !s.Slow
	s.Quiet, s.Parked, s.Flow, s.Slow = 0, 0, 0, true
	least := max(1, (1-step)*s.Batch)
	if r.Orders.Attempts() < enough || s.Batch == 1 {
		s.Batch = least
		return s
	}
	done := float64(r.Orders.Orders()) / r.intervals(l)
	switch {
	case !begins:
		s.Ceiling += (done - s.Ceiling) * ceilingGain
	case s.Ceiling > 0:
		s.Patience = min(2*s.Patience, longPatience)
		fallthrough
	default:
		s.Ceiling, s.Raised = done, 0
	}
	s.Known = min(s.Known, s.Batch/2)

	next := min(s.Batch, max(least, drain*s.Ceiling/s.Share()))
	if s.Stuck += r.Took; next < (1-step/2)*s.Batch {
		s.Stuck = 0
	}
	if s.Stuck >= 2*s.Delay+4*RoundLength {
		next, s.Stuck = least, 0
	}
	s.Batch = next
	return s
}

// rise raises the batch by a step, as far as what has been tried goes well, and
// to somewhat below the ceiling.
func (s State) rise(r Round, l Limits) State {
	if s.Quiet < quietRounds {
		return s
	}
	s.Slow = false
	// A tenth of less than ten is less than one member, so one more may be tried.
	tried := max(headroom*s.Tested, s.Tested+1, s.Known)
	s = s.lift(r, l)
	goal := min((1+step)*s.Batch, tried, s.roof(r, l), float64(l.Batch))
	s.Batch = max(s.Batch, goal)
	return s
}

// roof is the batch that the ceiling allows. People who do not order leave room
// for others: with them made up for, the database gets as many orders. That
// part of the batch is bounded by what is free inside; what is over capacity
// would wait in front of it anyway.
func (s State) roof(r Round, l Limits) float64 {
	if s.Ceiling == 0 {
		return float64(l.Batch)
	}
	orders := margin * s.Ceiling
	roof := orders / s.Share()
	if l.Capacity > 0 {
		free := max(0, float64(int64(l.Capacity)-r.Inside))
		roof = min(roof, orders+free)
	}
	return roof
}

// lift tries the ceiling once all has been quiet below it for long enough, and
// forgets it when it is wrong. Each time that the database was slow again it
// waits twice as long.
func (s State) lift(r Round, l Limits) State {
	if s.Ceiling > 0 {
		s.Ceiling = max(s.Ceiling, s.Flow) // it has been wrong
	}
	full := margin * s.Ceiling / s.Share()
	if s.Ceiling == 0 || s.Tested < 0.99*min(float64(s.Size(l)), full) || s.Batch < 0.98*full {
		return s // what lies below the ceiling has not been tried
	}
	if s.Parked += r.Took; s.Parked < max(s.Patience>>s.Raised, 2*s.Delay) {
		return s
	}
	s.Parked = 0
	if s.Raised++; s.Raised > refuted {
		s.Ceiling, s.Raised, s.Patience = 0, 0, shortPatience
		return s
	}
	s.Ceiling *= probe
	return s
}
