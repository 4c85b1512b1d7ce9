package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// kind is a call as the report has it.
type kind int

const (
	enterCall kind = iota
	pollCall
	orderCall
	leaveCall
	sneakCall
	numKinds
)

var kindOf = map[act]kind{
	enter: enterCall, enterAgain: enterCall, poll: pollCall, order: orderCall, orderTwin: orderCall, orderAgain: orderCall,
	leave: leaveCall, tidyUp: leaveCall, sneak: sneakCall,
}

var kindNames = [numKinds]string{"enter", "poll", "order", "leave", "intruders' order"}

// called is one call and how it went.
type called struct {
	kind            kind
	due, sent, done time.Duration
	status          int
	code            string
}

// problemKey is a kind of answer that was no success.
type problemKey struct {
	kind   kind
	status int
	code   string
}

// second is what happened in one second of the run.
type second struct {
	Came, Admitted, Ordered, Calls, Failed int64
	Waiting, Holding                       int64         // at its end
	RoomWaiting                            int64         // as the room says, at its end
	Granted                                int64         // by the room, to anybody; 0 where only operators can see
	P99                                    time.Duration // of calls from when they were due
}

// passage is somebody let through: what they were told, and how long it took.
type passage struct {
	told         told
	real         time.Duration // from then on
	sinceEntered time.Duration
}

// tally counts what happens. Its mutex is held for less than a microsecond at a
// time.
type tally struct {
	mu       sync.Mutex
	due      [numKinds]*hdrhistogram.Histogram // from when the call was due, in us
	service  [numKinds]*hdrhistogram.Histogram // from when it was sent
	lag      *hdrhistogram.Histogram           // between the two
	lately   *hdrhistogram.Histogram           // from when due, of this second
	refused  [numKinds]int64
	failed   [numKinds]int64
	problems map[problemKey]int64
	seconds  []second
	passed   []passage
	arrived  int64 // people, without intruders
	placed   int64 // orders
	replayed int64
}

// A latency is measured from 1 us to 10 min, to three digits.
const (
	longest = int64(10 * time.Minute / time.Microsecond)
	digits  = 3
)

func newTally() *tally {
	t := &tally{problems: map[problemKey]int64{}}
	t.lag, t.lately = hdrhistogram.New(1, longest, digits), hdrhistogram.New(1, longest, digits)
	for k := range numKinds {
		t.due[k], t.service[k] = hdrhistogram.New(1, longest, digits), hdrhistogram.New(1, longest, digits)
	}
	return t
}

// record keeps a latency; one beyond what is measured counts as the longest.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d.Microseconds(), 1), longest))
}

// called counts a call. What was due and could not be sent counts from then on
// when it was due: a server that stalls is not asked meanwhile, and those who were
// to ask it have waited all the same.
func (t *tally) called(c called) {
	t.mu.Lock()
	defer t.mu.Unlock()
	record(t.due[c.kind], c.done-c.due)
	record(t.service[c.kind], c.done-c.sent)
	record(t.lag, c.sent-c.due)
	record(t.lately, c.done-c.due)
	s := t.at(c.done)
	s.Calls++
	switch {
	case c.status == 0 || c.status >= 500:
		t.failed[c.kind]++
		s.Failed++
	case c.status >= 400:
		t.refused[c.kind]++
	default:
		return
	}
	t.problems[problemKey{c.kind, c.status, c.code}]++
}

// odd counts an answer that is none although its status says so.
func (t *tally) odd(a act, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems[problemKey{kindOf[a], 200, what}]++
}

func (t *tally) came(at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived++
	t.at(at).Came++
}

// totals are how many have come, and how many orders were placed.
func (t *tally) totals() (came, placed int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.arrived, t.placed
}

// admitted counts somebody who is shown a token for the first time.
func (t *tally) admitted(at, came time.Duration, what told) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at(at).Admitted++
	t.passed = append(t.passed, passage{what, at - what.at, at - came})
}

// ordered counts an order, or a repeat that was told the order.
func (t *tally) ordered(at time.Duration, replayed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if replayed {
		t.replayed++
		return
	}
	t.placed++
	t.at(at).Ordered++
}

// at is the second of a time. The caller holds the mutex.
func (t *tally) at(at time.Duration) *second {
	n := int(max(at, 0) / time.Second)
	for len(t.seconds) <= n {
		t.seconds = append(t.seconds, second{})
	}
	return &t.seconds[n]
}

// close ends a second, with what is known at its end.
func (t *tally) close(at time.Duration, known second) second {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.at(at)
	s.Waiting, s.Holding, s.RoomWaiting, s.Granted = known.Waiting, known.Holding, known.RoomWaiting, known.Granted
	s.P99 = quantile(t.lately, 99)
	t.lately.Reset()
	return *s
}

func quantile(h *hdrhistogram.Histogram, percent float64) time.Duration {
	return time.Duration(h.ValueAtPercentile(percent)) * time.Microsecond
}
