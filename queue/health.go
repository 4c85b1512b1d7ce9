package queue

import "time"

// BandEdges are where the latency bands of orders end: an order belongs to the
// first band that it stays below, or to one more behind them.
var BandEdges = [...]time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// Bands is how many latency bands there are.
const Bands = len(BandEdges) + 1

// Health counts how a room's orders went. It holds counts and sums alone, no
// average and no percentile, so that what many processes have seen adds up to
// what one would have seen.
type Health struct {
	// Done are orders that were placed, by how long that took.
	Done [Bands]int64
	// Failed are attempts that were not placed and whose member is not to blame:
	// timeouts, refusals of the database, outcomes nobody knows. Sold out, and an
	// order that can't be read, count nowhere.
	Failed int64
	// Delay is summed over all of these: from the grant to the attempt. Divided by
	// Attempts it is how long people take before they order.
	Delay time.Duration
}

// Band is the band of an order that took that long.
func Band(took time.Duration) int {
	for i, edge := range BandEdges {
		if took < edge {
			return i
		}
	}
	return Bands - 1
}

// Placed counts an order that was placed.
func (h *Health) Placed(took, delay time.Duration) {
	h.Done[Band(took)]++
	h.Delay += delay
}

// Fail counts an attempt that failed.
func (h *Health) Fail(delay time.Duration) {
	h.Failed++
	h.Delay += delay
}

// Orders is how many were placed.
func (h Health) Orders() int64 {
	var n int64
	for _, done := range h.Done {
		n += done
	}
	return n
}

// Attempts is how many there were of both kinds.
func (h Health) Attempts() int64 { return h.Orders() + h.Failed }

// Add is what two processes, or two stretches of time, have seen together.
func (h Health) Add(o Health) Health {
	for i, done := range o.Done {
		h.Done[i] += done
	}
	h.Failed += o.Failed
	h.Delay += o.Delay
	return h
}

// Since is what came after an earlier total. A total that is smaller than the
// earlier one has been begun anew, and is what came after.
func (h Health) Since(earlier Health) Health {
	diff := h
	for i, done := range earlier.Done {
		diff.Done[i] -= done
		if diff.Done[i] < 0 {
			return h
		}
	}
	diff.Failed -= earlier.Failed
	diff.Delay -= earlier.Delay
	if diff.Failed < 0 || diff.Delay < 0 {
		return h
	}
	return diff
}

// Report is what one process has counted since its last report.
type Report struct {
	Process string // one word; another one after a restart
	Number  int64  // rises from report to report of a process
	Health  Health
}

// Tuning is where the batch of an adaptive room stands, kept with the room so
// that another leader goes on from there.
type Tuning struct {
	Round   int64     // how many rounds were kept; 0: none
	At      time.Time // Redis time of the last of them
	Batch   int       // in force since
	Verdict string    // on it; empty: there was nothing to judge by
	Memory  []byte    // what its scheduler has to remember, in one line of JSON
}
