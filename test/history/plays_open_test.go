package history

import "time"

// openPlays are of rooms that let nobody through for a while, and of batches
// smaller than the operator's.
var openPlays = []play{
	{
		check: "I10 nobody is taken while the room lets nobody through", name: "before admitsAt",
		start: []string{"admits_at=1764500005000000"},
		bad:   func(s *stage) { takenAfter(s, 4*time.Second) },
		good:  func(s *stage) { takenAfter(s, 5*time.Second) },
	},
	{
		check: "I10 nobody is taken while the room lets nobody through", name: "from closesAt on",
		start: []string{"closes_at=1764500005000000"},
		bad:   func(s *stage) { takenAfter(s, 5*time.Second) },
		good:  func(s *stage) { takenAfter(s, 4*time.Second) },
	},
	{
		check: "I10 nobody is taken while the room lets nobody through", name: "paused",
		bad:  func(s *stage) { takenUnder(s, "paused=1") },
		good: func(s *stage) { takenUnder(s, "paused=0") },
	},
	{
		check: "I10 nobody is taken while the room lets nobody through", name: "after closesAt, unless it drains",
		start: []string{"closes_at=1764500000000000"},
		bad:   func(s *stage) { takenUnder(s, "draining=0") },
		good:  func(s *stage) { takenUnder(s, "draining=1") },
	},
	{
		check: "I10 nobody is taken while the room lets nobody through", name: "after a loss",
		start: []string{"settle=10000000"},
		bad:   func(s *stage) { takenAfter(s, 9*time.Second) },
		good:  func(s *stage) { takenAfter(s, 10*time.Second) },
	},
	{
		check: "I10 the batch in force is within the operator's",
		bad:   func(s *stage) { worksWith(s, theBatch+1) },
		good:  func(s *stage) { worksWith(s, theBatch) },
	},
	{
		check: "I10 the batch in force is within the operator's", name: "and one at least",
		bad:  func(s *stage) { worksWith(s, 0) },
		good: func(s *stage) { worksWith(s, 1) },
	},
}

func takenAfter(s *stage, d time.Duration) {
	s.enter("ann")
	s.pass(d)
	s.reserve("ann")
}

// takenUnder puts a setting in force, and takes a member.
func takenUnder(s *stage, setting string) {
	s.enter("ann")
	s.set(setting, "version=2")
	s.update()
	s.reserve("ann")
}

// worksWith is a tick with a batch that takes nobody.
func worksWith(s *stage, batch int64) {
	s.enter("ann")
	s.reserve()
	s.state.Eff = batch
	s.last().State.Eff = batch
}
