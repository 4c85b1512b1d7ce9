package history

// History is one run of one room: what clients asked and were told, what the
// room did, what is left, and what the run knows of its own doing.
type History struct {
	Room    Room
	Events  []Event
	Journal []Life
	Final   Final
	Facts   Facts
	// Pictures is a directory for porcupine's pictures of what it refuses.
	// Empty: none are drawn.
	Pictures string
}

// Room names the room. Its settings are in the journal.
type Room struct{ Name string }

// Facts are what only the run can know. The zero Facts claim the most: no
// losses, no steps of time, nobody barred, nothing released by hand.
type Facts struct {
	OneOrder  bool             // one order per member and sale, during the whole run
	FailOpen  bool             // orders may pass without a claim while Redis is away
	Released  int64            // how many operators have released by hand, as their audit has it
	TimeSteps int64            // steps back of the clock of Redis, of more than a minute, that the run has made
	Losses    []Loss           // of data, made or risked by the run
	Barred    []Barring        // of members, by operators
	Stock     map[string]int64 // per SKU, at the beginning; nil: not checked
	Supplies  []Supply         // changes of it by operators
	// Quiesced says that the load had ended, and every event and every call had
	// come to its end, before the final state was read.
	Quiesced bool
}

// Supply is stock that an operator has put in, or taken away.
type Supply struct {
	SKU  string
	N    int64 // below 0: taken away
	Mono int64 // when the operator began to do so
}

// LossKind is a way to lose what Redis had acknowledged.
type LossKind string

// The kinds of losses. A flush is an operator's, and loses no journal.
const (
	TotalLoss   LossKind = "total"
	PartialLoss LossKind = "partial"
	Flush       LossKind = "flush"
)

// Loss is a loss of data that the run has made, or risked, between two moments
// of Now: a failover may lose the last second or nothing.
type Loss struct {
	Kind    LossKind
	Mono    int64 // when it began
	MonoEnd int64 // when it was over; 0: at once
}

// Barring is a member whom an operator has blocked or evicted.
type Barring struct {
	Member string
	Mono   int64 // when the operator knew that it was so
	Until  int64 // when the operator began to take it back; 0: never
}
