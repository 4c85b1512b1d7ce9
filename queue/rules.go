package queue

import "time"

// RoomState is what a room is doing, for everybody to see.
type RoomState string

// The states of a room.
const (
	NotOpen  RoomState = "NOT_OPEN"  // before opensAt: nobody enters
	PreQueue RoomState = "PRE_QUEUE" // between opensAt and admitsAt: people enter, nobody is let through
	Open     RoomState = "OPEN"
	Paused   RoomState = "PAUSED"   // people enter, nobody is let through
	Draining RoomState = "DRAINING" // nobody enters, those in line are served
	SoldOut  RoomState = "SOLD_OUT" // nothing left of the room's product: nobody enters, nobody is let through
	Closed   RoomState = "CLOSED"   // after closesAt: nobody enters, nobody is let through
	Off      RoomState = "OFF"      // switched off: everybody passes, with a real token
	// FailedOpen is of a room whose Redis is out of reach: everybody passes, as its
	// operator has decided. No script answers it; it is what a process sees.
	FailedOpen RoomState = "FAILED_OPEN"

	Restoring RoomState = "RESTORING" // after a loss of Redis data: places come back, nobody is let through
)

// Rules are the settings that the scripts obey. A zero Capacity, MaxInFlight
// or time means that there is no such limit.
type Rules struct {
	Batch             int
	Interval          time.Duration
	TokenTTL          time.Duration
	PickupTTL         time.Duration
	ClaimLease        time.Duration
	ProcessingTimeout time.Duration
	AwayAfter         time.Duration
	ForgetAfter       time.Duration
	DoneTTL           time.Duration
	Settle            time.Duration
	Capacity          int
	MaxInFlight       int
	MaxWaiting        int
	Weights           []int           // one per lane, each at least 1
	OneLine           bool            // the lanes are served as one line, by score
	Boosts            []time.Duration // per lane, by how much earlier its members stand; nil: none is boosted
	MaxWait           time.Duration   // longest wait promised to the first lane; 0: none
	Zone              *time.Location  // of the room's day; nil: UTC. Not in Redis: schedulers pass its offset
	OpensAt           time.Time
	AdmitsAt          time.Time
	ClosesAt          time.Time
	Paused            bool
	Draining          bool
	OneOrder          bool   // one order per member and sale
	Stock             string // sku of the product whose stock bounds who is let in; empty: none does
	Overbook          int    // of that stock, in thousandths, 1000 or more; 0 where Stock is empty
	Adaptive          bool   // the batch follows how orders go
	Draw              bool   // places of those who come before AdmitsAt go by lot, to be verified
	Lottery           bool   // all places go by lot, as long as the sale lasts
	Off               bool   // everybody passes, unless Paused or Draining, or a draw has no list yet
	Direct            bool   // who enters while nobody waits is let through at once, by rate and capacity
	Eager             bool   // a place that comes free goes to the next at once
}

// Life is one generation of a room, as Postgres has it, with the rules in
// force: all that a scheduler needs to run the room.
type Life struct {
	Room           string
	Generation     int64 // 0: never begun
	Sale           int64
	RestorableFrom int64 // oldest generation whose tickets are good; equal to Generation: none are restored
	Version        int64 // of the settings
	Deleted        bool  // by an operator: what Redis has of it is to be removed
	Released       int64 // by hand, over the whole life of the room; a new generation begins with all of them spent
	Rules          Rules
	Lanes          []string // names, in the order of their index
	Settings       []byte   // the whole settings as JSON, for the processes that serve people
	Floors         []int64  // per lane, the highest score ever admitted in this sale, before this generation
	LastScore      int64    // the highest score known to have been given
	StockLeft      int64    // of Rules.Stock, as of this reading; 0 also where there is no such product
	Listed         bool     // the sale's draw is over and its list kept
}

// Progress is how far a room has come: what must survive a loss of Redis data,
// and is therefore kept in Postgres before any grant is issued.
type Progress struct {
	Room      string
	Sale      int64   // of the floors: those of an earlier sale count for nothing
	Floors    []int64 // per lane, the highest score admitted; never goes down within a sale
	LastScore int64   // the highest score given; never goes down
}

// State says what the room is doing at now, a time from Redis. began is when
// the generation began; restoring tells whether it follows a loss.
func (r Rules) State(now, began time.Time, restoring bool) RoomState {
	switch {
	case r.Off && !r.Paused && !r.Draining:
		return Off
	case restoring && now.Before(began.Add(r.Settle)):
		return Restoring
	case !r.OpensAt.IsZero() && now.Before(r.OpensAt):
		return NotOpen
	case !r.ClosesAt.IsZero() && !now.Before(r.ClosesAt) && !r.Draining:
		return Closed
	case r.Paused:
		return Paused
	case r.Draining:
		return Draining
	case !r.AdmitsAt.IsZero() && now.Before(r.AdmitsAt):
		return PreQueue
	default:
		return Open
	}
}

// ZoneOffset is how far the room's day is ahead of UTC at now, in seconds.
func (r Rules) ZoneOffset(now time.Time) int {
	if r.Zone == nil {
		return 0
	}
	_, seconds := now.In(r.Zone).Zone()
	return seconds
}

// Boost is by how much earlier than others the members of a lane stand.
func (r Rules) Boost(lane int) time.Duration {
	if lane < 0 || lane >= len(r.Boosts) {
		return 0
	}
	return r.Boosts[lane]
}

// Overtakable tells whether those who enter later may come to stand ahead of
// somebody in the lane: from a lane with more boost, or by lot.
func (r Rules) Overtakable(lane int) bool {
	if r.Lottery {
		return true
	}
	for _, boost := range r.Boosts {
		if boost > r.Boost(lane) {
			return true
		}
	}
	return false
}
