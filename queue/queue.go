// Package queue is the vocabulary of the waiting line: rooms, lanes, places,
// where a member stands, and the grant that lets one member place one order.
//
// # States
//
//	NOT_ENTERED --enter--> WAITING --reserve--> processing --issue--> READY --claim--> CLAIMED --consume--> CONSUMED
//	                        |   ^                  |                  |   ^              |
//	                        |   +--- returned -----+                  |   +-- release ---+
//	                        |   +------------- heard ---------- AWAY <+ not picked up in time (place kept)
//	                        +--- silent near the front ----------^
//
// A member is in at most one of these at a time. A processing member shows as
// WAITING with rank 0, an AWAY member as WAITING: neither is a state that a
// client has to know.
//
// # Promises
//
// Entering again never changes a score. Within a lane nobody is taken while
// somebody who came earlier, and has not gone silent, still waits. No set of
// schedulers lets more through than the batch per interval allows, or more
// than the capacity in. A crash at any point leaves a member at the old place
// or with a grant. A grant is held by one order attempt at a time, and ends
// by a comparison with Redis time, not by anything having to run.
//
// The package holds types and arithmetic only; it imports no driver. Package
// redisstore keeps the state, and packages that use a line declare the few
// methods that they call.
package queue

import (
	"time"
)

// MaxLanes is how many lanes a room can have.
const MaxLanes = 4

// Status is what a member is told about where they stand.
type Status string

// The five answers a member can get. Section "States" of the package comment
// has the arrows between them.
const (
	NotEntered Status = "NOT_ENTERED"
	Waiting    Status = "WAITING"
	Ready      Status = "READY"
	Claimed    Status = "CLAIMED"
	Consumed   Status = "CONSUMED"
)

// Outcome is how a member's last stay in a room ended.
type Outcome string

// An Outcome is remembered for the room's doneTtlSeconds.
const (
	OutcomeExpired   Outcome = "EXPIRED"   // the grant ran out after it was picked up
	OutcomeLeft      Outcome = "LEFT"      // the member gave the place up
	OutcomeForgotten Outcome = "FORGOTTEN" // away for too long
	OutcomeEvicted   Outcome = "EVICTED"   // refused or removed by the operator
	OutcomeReset     Outcome = "RESET"     // the operator flushed the room
	OutcomeConsumed  Outcome = "CONSUMED"  // an order was placed
)

// Place is where somebody stands: a lane, by its index in the room's
// settings, and a score that is unique and strictly rising in the lane; in the
// room too, where no lane is boosted.
type Place struct {
	Lane int
	// Score is microseconds of Redis time at enter less the lane's boost, or one
	// above the last score; by lot, below Beyond.
	Score int64
}

// EnteredAt is when the place was made, to the microsecond; earlier by the boost
// of a lane that has one, and nonsense of a place that was drawn.
func (p Place) EnteredAt() time.Time { return time.UnixMicro(p.Score) }

// Grant is the right of one member to place one order.
type Grant struct {
	ID         string // 128 random bits in the text form of a UUID; never used twice
	Room       string
	Member     string
	Sale       int64
	Generation int64
	Place      Place     // where the member stood
	IssuedAt   time.Time // whole seconds in a token, microseconds in Redis
	Expiry     time.Time // fixed at pick-up, in whole seconds
	Picked     bool      // handed to the member at least once
	KeyID      string    // the key that signs its entry token; chosen at pick-up
	Open       bool      // given while Redis was out of reach: no place, and Redis knows nothing of it
}

// Entry is what somebody enters with.
type Entry struct {
	Lane  int
	Lot   Lot       // where places go by lot; the zero one else
	Grant string    // a fresh id, for who need not wait; empty: none is asked for
	Asked time.Time // when Grant was asked for, by the clock of Redis
}

// Standing is where one member is right now.
type Standing struct {
	Status     Status
	Generation int64
	Sale       int64
	Place      Place   // of WAITING, READY and CLAIMED
	Rank       int64   // how many stand ahead in the lane, or in the line where lanes are one; the first has 0
	Total      int64   // members in the lane or that line, at least Rank+1 while WAITING
	InLane     int64   // how many stand ahead in the lane, whether it is part of one line or not
	Lifted     bool    // taken out of this place by the longest-wait promise; false while WAITING in a lane
	Grant      Grant   // of READY and CLAIMED
	Outcome    Outcome // beside NOT_ENTERED, while remembered
	OrderID    string  // of CONSUMED
	Ended      int64   // when the last stay did, in microseconds of Redis time; 0 unless that is remembered
	New        bool    // this call of Enter made the place, or of Restore brought it back
	Passed     bool    // brought back behind others who have been let through meanwhile
}

// Spent is a grant that an order has used up.
type Spent struct {
	Member string
	Grant  string
	Order  string
}

// Step names one call of a scheduler: a room takes it only from the newest
// term it has seen, and only once.
type Step struct {
	Generation int64
	Term       int64
	Leader     string
	Seq        int64
}

// Candidate is a member taken from a lane and not yet granted.
type Candidate struct {
	Member string
	Place  Place
}

// Take bounds one reserve call.
type Take struct {
	// Keep is the lowest seq of this leader's term whose members stay in
	// processing; what older calls took goes back to its place.
	Keep int64
	// Effective is the batch in force, at most the operator's.
	Effective int
	// Max is how many this call may take, at most 500.
	Max int
	// Zone is how far the room's day is ahead of UTC, in seconds.
	Zone int
	// Stock is a reading that the room has not been told yet; nil: none. It counts
	// for ten seconds.
	Stock *StockReading
}

// Reservation is what one reserve call took, or how long to wait.
type Reservation struct {
	Taken      []Candidate
	Lifted     []string      // of them, whom the longest-wait promise took for the first time
	More       bool          // call again at once: there is more to take
	Wait       time.Duration // otherwise: sleep this long
	Version    int64         // of the settings in force
	Watermarks []int64       // per lane, the highest score ever granted in this generation
	Consumed   int64         // orders that have ended grants in this generation
	LastScore  int64         // the newest score given in this generation, drawn ones aside
	Draw       DrawState     // of a draw that keeps the room waiting; DrawClosed: its list is to be made
}

// Decision is what becomes of one candidate: a grant, or a refusal when Grant
// is empty.
type Decision struct {
	Member string
	Grant  string
}

// Issued counts what one issue call did.
type Issued struct {
	Granted int // grants there are now; each was charged to the rate once
	Refused int // ended as EVICTED
	Gone    int // not in processing with this step any more
}

// Reaped counts what one reap call moved, and whether more is due.
type Reaped struct {
	Returned  int // processing to the old place
	Lapsed    int // claims past their lease
	Expired   int // grants
	Away      int // grants not picked up and members gone silent
	Forgotten int
	More      bool
}

// Lost is a place that a member shows a ticket for and the room has lost.
type Lost struct {
	Generation int64 // the room's, as the caller knows it
	Member     string
	Ticket     int64 // generation of the ticket
	Place      Place
	Issued     time.Time // when the ticket was signed: the member had the place then
	Floor      int64     // highest score Postgres knows to be admitted in the lane
	LostToken  bool      // the member's grant of the lost generation has been voided
}
