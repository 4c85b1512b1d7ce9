package room

// Exclusion says how operators keep one member out of a room.
type Exclusion struct {
	Blocked bool `json:"blocked"` // from every sale, until they are let in again
	Evicted bool `json:"evicted"` // from the sale that runs
}

// Subject is a member whom a call of an operator is about, and where they stood
// when the call came. The audit keeps it as it is.
type Subject struct {
	Member string `json:"member"`
	// State, Lane and Score are empty where the member held no place.
	State string `json:"state,omitempty"`
	Lane  string `json:"lane,omitempty"`
	Score int64  `json:"score,omitempty"`
}

// Bar is one member who is kept out of one room.
type Bar struct {
	Room, Member string
	Sale         int64 // 0: every sale
}
