package queue

import "time"

// Snapshot is a room as one script saw it: everything that people who wait are
// shown about the room, and what operators watch.
type Snapshot struct {
	Room           string
	Generation     int64
	Sale           int64
	RestorableFrom int64
	Version        int64
	Rules          Rules
	Settings       []byte // as the operator wrote them, JSON
	Began          time.Time
	Now            time.Time // Redis time of the snapshot
	Lanes          []LaneSnapshot
	Away           int64
	Processing     int64
	Ready          int64
	Claimed        int64
	Done           int64
	Counters       map[string]int64 // entered, restored, passed, consumed, expired, left, forgotten, evicted, lifted, steps, unused, passed_off, released; and per lane admittedN, goneN, backN
	Term           int64
	Leader         string
	TickedAt       time.Time // when a scheduler last reserved; zero if never
	MemoryFull     bool      // entry is closed because Redis nears its memory limit
	Stock          StockSnapshot
	Health         Health // of all processes together, while the room is adaptive
	Tuning         Tuning // of an adaptive room
	Draw           DrawState
	ToRelease      int64 // released by hand, and not let through yet
}

// LaneSnapshot is one lane of a Snapshot.
type LaneSnapshot struct {
	Waiting   int64
	HeadScore int64 // of the first in line; 0 when nobody waits
	Watermark int64 // highest score ever granted in this generation
	Admitted  int64 // grants issued in this generation
	Passed    int64 // who stood in line and went without a grant, less those who came back
	Marks     []Mark
}

// State says what the room is doing at now, a time from Redis.
func (s Snapshot) State(now time.Time) RoomState {
	state := s.Rules.State(now, s.Began, s.Generation > s.RestorableFrom)
	if s.SoldOut() {
		return s.soldOut(state, now)
	}
	return state
}

// InForce is the batch in force: the operator's, or that of an adaptive room's
// last round. 0: an adaptive room has had none yet.
func (s Snapshot) InForce() int {
	if !s.Rules.Adaptive {
		return s.Rules.Batch
	}
	return min(s.Tuning.Batch, s.Rules.Batch)
}

// Waiting is how many stand in line, over all lanes.
func (s Snapshot) Waiting() int64 {
	var n int64
	for _, l := range s.Lanes {
		n += l.Waiting
	}
	return n
}
