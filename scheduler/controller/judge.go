package controller

import "github.com/linekeeper/linekeeper/queue"

// Verdict is what a round was.
type Verdict string

// The verdicts. The package comment has what follows from each.
const (
	Idle  Verdict = ""      // no order, and none had to come
	Quiet Verdict = "quiet" // fast, and next to none failed
	Fair  Verdict = "fair"  // neither
	Bad   Verdict = "bad"   // slow, or too many failed
	Out   Verdict = "out"   // the database, or the way to it, is away
)

// factors are what the response times of each band ask for, as a multiple of
// the batch: below 200 ms a fifth more, below 500 ms the same, below 1 s less by
// three tenths, and above that less by six.
var factors = [queue.Bands]float64{1.2, 1.0, 0.7, 0.4}

const (
	// A round is quiet when its orders ask on average for a tenth more, and bad
	// when for a tenth less. Between the two nothing moves, so that response times
	// which hover about an edge do not make the batch swing.
	quietFactor = 1.1
	badFactor   = 0.9

	// Few orders are slow by chance: a round is bad only if it would be with this
	// many more that ask for no change. (It is quiet without them, or a room at one
	// an interval would never be.)
	neutral = 5

	// The same for the share of failures; that of single ones among few orders is
	// left out, because it is large by chance.
	quietFailed = 0.01
	badFailed   = 0.05
	someFailed  = 2

	// The database is away when more orders than missedOrders had to come since
	// the last one was seen (less than 1 in 20,000 by chance), or all fail, for
	// outRounds: one pause of a few seconds is not an outage.
	missedOrders = 10
	outRounds    = 2
)

// judge tells what a round was. A failed attempt asks for as much less as the
// slowest order.
func (s State) judge(r Round) Verdict {
	n, failed := float64(r.Orders.Attempts()), float64(r.Orders.Failed)
	switch {
	case r.Outage,
		s.Missed >= missedOrders && s.Silent >= outRounds,
		s.Failing >= outRounds:
		return Out
	case n == 0 && s.Missed >= missedOrders:
		return Bad
	case n == 0:
		return Idle
	}
	asked := failed * factors[queue.Bands-1]
	for i, done := range r.Orders.Done {
		asked += float64(done) * factors[i]
	}
	switch {
	case asked+neutral <= badFactor*(n+neutral), failed >= someFailed && failed > badFailed*n:
		return Bad
	case asked >= quietFactor*n && (failed < someFailed || failed <= quietFailed*n):
		return Quiet
	default:
		return Fair
	}
}
