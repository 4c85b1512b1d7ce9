package history

// Step is one entry of a room's journal: one run of a script that changed
// something, or refused a step, written by Redis in the same moment. Times and
// scores are microseconds.
type Step struct {
	Script string   // enter, reserve, ...
	Mode   string   // of configure: update, create or drop
	Time   int64    // the clock of Redis as it was read
	Now    int64    // the same, kept from running back
	Args   []string // what the script was given, without the time
	Reply  []any    // verbatim: strings, int64, and lists of these; nil after an error
	Err    string   // why the script broke off; empty if it did not

	Members    map[string]Member // those whom the script has written about, as they are after it
	State      State
	Sizes      Sizes
	Stats      map[string]int64
	Generation int64
	Conf       map[string]string // the settings after it; of configure only

	// The step was taken after After and before Before, by the clock of the
	// clients. 0: not known.
	After, Before int64
}

// Word is the first word of the reply, empty after an error.
func (s *Step) Word() string {
	if len(s.Reply) == 0 {
		return ""
	}
	w, _ := s.Reply[0].(string)
	return w
}

// Member is where one member stands, in all the keys of the room. The zero
// Member is known nowhere.
type Member struct {
	Lanes []int // that hold the member; more than one is a fault
	Score int64 // in the lane
	Seen  int64 // last heard; 0: the room does not listen

	Away      int64  // since when; 0: not AWAY
	AwayPlace *Place // beside it

	Processing int64 // deadline; 0: not processing
	Held       *Hold // beside it

	Ready   int64  // expiry, by the index; 0: not in it
	Claimed int64  // end of the lease, by the index; 0: not in it
	Grant   *Grant // beside one of the two

	Done    int64    // when the last stay ended; 0: not remembered
	Outcome *Outcome // beside it
}

// Place is a place in a lane.
type Place struct {
	Lane  int
	Score int64
}

// Hold is a place whose member is processing, and the step that took it.
type Hold struct {
	Place
	Step string // term:leader:seq
}

// Grant is a grant as the room keeps it.
type Grant struct {
	ID             string
	Place          Place
	Issued, Expiry int64
	Picked         bool
	Key            string // empty: not signed yet
	Claim          string // empty: not claimed
}

// Outcome is how the last stay of a member ended.
type Outcome struct {
	Word  string // EXPIRED, LEFT, ...
	Grant string // empty: none
	Order string // empty: none
}

// State is what the scripts of a room remember.
type State struct {
	Time, Last, Tat              int64
	Term                         int64
	Leader                       string
	Seq, Eff                     int64
	ListenSince, HeardAt, StepAt int64
	Tidied                       int64 // outcomes of places up to it may have been forgotten
	ReleasedUsed                 int64 // of those released by hand
	Draw                         int64 // 0 or 1 open, 2 closed, 3 listed
	Watermarks                   [4]int64
	Lasts                        [4]int64 // the highest score given, per lane
	Stock                        StockTold
}

// StockTold is the last reading of stock that a room was told. The zero
// StockTold is none.
type StockTold struct {
	SKU                string
	Left, Consumed, At int64
}

// Sizes are the sizes of the room's sets.
type Sizes struct{ Waiting, Away, Processing, Ready, Claimed, Done int64 }

// Life is what a room did until data were lost: all steps since its journal
// began, those included that it shares with the life before.
type Life struct {
	Steps []Step
	// Lost says that the life ended with a loss. Its first Kept steps outlived
	// that, and are the first steps of the next life too; what was done after
	// them was undone. After a total loss Kept is 0.
	Lost bool
	Kept int
	// Truncated says that more may have been done, and undone by the loss, than
	// Steps has: between Read, when the life was last read whole, and Noticed,
	// when it was found to be over. Both are times of Now.
	Truncated     bool
	Read, Noticed int64
}
