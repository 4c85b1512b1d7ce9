package queue

import "time"

// State is where a member is, in the words of the picture of states: finer than
// the Status that the member is told.
type State string

// The states of a member.
const (
	StateNotEntered State = "NOT_ENTERED"
	StateWaiting    State = "WAITING"
	StateAway       State = "AWAY" // a place that is kept; the member is told WAITING
	StateProcessing State = "PROCESSING"
	StateReady      State = "READY"
	StateClaimed    State = "CLAIMED"
	StateConsumed   State = "CONSUMED"
)

// Placed tells whether somebody in this state has a place or a grant.
func (s State) Placed() bool {
	return s != "" && s != StateNotEntered && s != StateConsumed
}

// Sight is one member as somebody else sees them. What a state does not have is
// zero.
type Sight struct {
	State   State
	Now     time.Time // by the clock of Redis
	Sale    int64
	Place   Place     // where Placed
	Rank    int64     // of WAITING
	Total   int64     // of WAITING: who stands in that line
	Since   time.Time // of AWAY
	Expiry  time.Time // of READY and CLAIMED
	Lease   time.Time // of CLAIMED: when the running order lets go at the latest
	Outcome Outcome   // of NOT_ENTERED, while remembered
	OrderID string    // of CONSUMED
	Ended   time.Time // of CONSUMED, and where there is an Outcome
}
