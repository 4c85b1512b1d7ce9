// Package controller tunes how many members of a room are let through per
// interval to what the database behind it bears.
//
// Every few seconds it is told how the orders of all processes went, and moves
// the batch by at most a tenth. It is arithmetic alone: no clock, no Redis, no
// memory but the State that it is given and returns, so that a leader can take
// over where another has stopped, and a simulation runs the same code.
//
// # Promises
//
//   - The batch is never below one, nor above the operator's.
//   - A step is at most a tenth of the batch. Only an outage is no step: then the
//     batch is one at once.
//   - It rises only after two quiet rounds, and never when the orders got worse.
//   - It never lets through much more than a tenth above what has been seen to go
//     well, so it does not pass what the database bears by much more than that.
//   - As long as orders are slow or fail it goes on falling, down to one.
//   - From one it comes back by itself once orders go well again.
//
// # A round
//
//	orders by band, failures, grants
//	        |
//	      judge --> out     no order where some must come, or all fail: one
//	        |   --> bad     slow, or some fail: down, to what is completed
//	        |   --> fair    stay
//	        |   --> idle    nothing to judge by: stay
//	        |   --> quiet   two of them: up, as far as it has been tried
//
// docs/policies.md has the formulas, with where they come from, for operators.
//
// # Why it is more than "faster, slower"
//
// Between a grant and its order people think, for half a minute or so. Whoever
// steps up every round meanwhile has let far too many in before the first slow
// order is seen, and whoever steps down every round has closed the room before
// the first step is felt. So the way up is bound to what has been tried, and
// the way down to what the database still completes.
package controller

import (
	"math"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// RoundLength is how long a round should be.
const RoundLength = 5 * time.Second

// Limits are what the operator has set for the room. They may change between
// any two rounds.
type Limits struct {
	Batch    int // the largest allowed
	Interval time.Duration
	Capacity int           // how many may be inside at once; 0: any number
	GrantTTL time.Duration // of an entry token
}

// Round is what happened since the last one, in all processes together.
type Round struct {
	Took    time.Duration
	Orders  queue.Health
	Granted int64 // grants issued
	Unused  int64 // grants that ended without an order having been tried or placed
	Inside  int64 // members ready, claimed and processing at its end
	Outage  bool  // the room could not be asked, or has lost its memory
}

// intervals is how many intervals the round had.
func (r Round) intervals(l Limits) float64 { return r.Took.Seconds() / l.Interval.Seconds() }

// State is all that the controller remembers, to be kept with the room. Rates
// are per interval.
type State struct {
	Batch   float64 `json:"batch"`   // in force; Size is what a tick takes of it
	Verdict Verdict `json:"verdict"` // on the last round
	Quiet   int     `json:"quiet"`   // quiet rounds in a row

	Known    float64       `json:"known"`    // batch up to which it is known ground
	Tested   float64       `json:"tested"`   // grants whose orders have been seen
	Flow     float64       `json:"flow"`     // orders placed, on average, while all was quiet
	Ceiling  float64       `json:"ceiling"`  // orders at which the database was last slow; 0: never
	Slow     bool          `json:"slow"`     // the database was, and two quiet rounds have not come since
	Raised   int           `json:"raised"`   // how often the ceiling was raised since
	Parked   time.Duration `json:"parked"`   // how long all was quiet at the ceiling
	Patience time.Duration `json:"patience"` // until the ceiling is tried
	Stuck    time.Duration `json:"stuck"`    // how long cutting has not helped

	Delay   time.Duration `json:"delay"`  // from grant to order, on average
	Tried   float64       `json:"tried"`  // grants that were used, fading
	Unused  float64       `json:"unused"` // and that were not
	Doubt   time.Duration `json:"doubt"`  // how long grants of an outage may still end
	Heard   bool          `json:"heard"`  // an order has been seen in this life
	Missed  float64       `json:"missed"` // orders expected since the last one was seen
	Silent  int           `json:"silent"` // rounds since then
	Failing int           `json:"failing"`
}

// firstDelay is what Delay is taken for until people have been seen to order.
const firstDelay = 15 * time.Second

// Begin is the state of a room about which nothing is known. It begins with
// half of the batch: what is above may have to be cut, and a cut takes as long
// to be felt as people think.
func Begin(l Limits) State {
	half := max(1, float64(l.Batch)/2)
	return State{Batch: half, Known: half, Delay: firstDelay, Patience: shortPatience}
}

// Restart is the state of a room that has lost its memory, as after an outage.
func Restart(l Limits) State {
	s := Begin(l)
	s.Batch, s.Verdict, s.Doubt = 1, Out, l.GrantTTL
	return s
}

// Next is the state after a round.
func (s State) Next(r Round, l Limits) State {
	s.Batch = clamp(s.Batch, 1, float64(l.Batch)) // the operator may have changed it
	if r.Took <= 0 {
		return s
	}
	s = s.expect(r, l)
	s.Verdict = s.judge(r)
	switch s.Verdict {
	case Out:
		s = s.collapse(l)
	case Bad:
		s = s.cut(r, l)
	case Fair:
		s.Quiet, s.Parked, s.Stuck = 0, 0, 0
	case Quiet:
		s.Quiet++
		s.Stuck = 0
		s = s.learn(r, l).rise(r, l)
	}
	if s.Verdict != Out {
		s.Doubt = max(0, s.Doubt-r.Took)
	}
	return s
}

// Size is the whole number of members that a tick works with.
func (s State) Size(l Limits) int {
	return int(clamp(math.Floor(s.Batch+1e-9), 1, float64(l.Batch)))
}

func clamp(x, low, high float64) float64 { return min(max(x, low), max(low, high)) }
