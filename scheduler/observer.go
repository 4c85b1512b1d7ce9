package scheduler

import (
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Observer is told what a scheduler does, for metrics and the transition log.
// Any field may be nil. The functions are called one at a time and must not
// block: ticks wait for them.
type Observer struct {
	// Led is called when this process begins to lead, and with false when it no
	// longer does. The term changes also while leading; it is 0 with the lock
	// off, where each tick has a term of its own.
	Led func(term int64, leads bool)
	// Ticked is called after each call of Reserve and, where somebody was taken,
	// of Issue.
	Ticked func(Tick)
	// Issued is called when Issue has answered.
	Issued func(Admission)
	// Reaped is called when Reap has answered.
	Reaped func(room string, counts queue.Reaped)
	// Lost is called when a room's state went back below what it had told, and when
	// Redis has nothing of it any more and a new generation has begun.
	Lost func(room string)
}

// Tick is how one tick of a room, or one part of a long tick, went.
type Tick struct {
	Room    string
	Late    time.Duration // how long after it was due it began
	Took    time.Duration
	Granted int
	Err     error // nil also when there was nobody to take
}

// Admission is what one Issue call was asked, and did. Candidates and
// Decisions go in pairs; where Counts.Gone is above 0 some had moved on.
type Admission struct {
	Room       string
	Lanes      []string // names, by the index in a place
	Step       queue.Step
	Candidates []queue.Candidate
	Decisions  []queue.Decision
	Counts     queue.Issued
	Boosts     []time.Duration // by which lane's places are earlier than their members; nil: none
	Lifted     int             // candidates whom the longest-wait promise took
}

func (o Observer) led(term int64, leads bool) {
	if o.Led != nil {
		o.Led(term, leads)
	}
}

func (o Observer) ticked(t Tick) {
	if o.Ticked != nil {
		o.Ticked(t)
	}
}

func (o Observer) issued(a Admission) {
	if o.Issued != nil {
		o.Issued(a)
	}
}

func (o Observer) reaped(room string, counts queue.Reaped) {
	if o.Reaped != nil {
		o.Reaped(room, counts)
	}
}

func (o Observer) lost(room string) {
	if o.Lost != nil {
		o.Lost(room)
	}
}
