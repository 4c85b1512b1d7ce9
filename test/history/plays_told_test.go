package history

import "time"

var arrowPlays = []play{
	{
		check: "I19 status moves along the arrows", name: "when it is time",
		bad:  func(s *stage) { giveUp(s, 4*time.Second) },
		good: func(s *stage) { giveUp(s, 5*time.Second) },
	},
	{
		check: "I19 status moves along the arrows", name: "of the script",
		bad: func(s *stage) {
			s.enter("ann")
			s.listening(20 * time.Second)
			s.listen("ann")
			s.listening(2 * theMinute)
			s.goAway("ann")
			s.last().Script, s.last().Args = "heard", []string{"ann"}
		},
		good: func(s *stage) {
			s.enter("ann")
			s.listening(20 * time.Second)
			s.listen("ann")
			s.listening(2 * theMinute)
			s.goAway("ann")
		},
	},
	{
		check: "I19 status moves along the arrows", name: "and nobody is forgotten early",
		bad:  func(s *stage) { forget(s, 55*time.Second) },
		good: func(s *stage) { forget(s, 60*time.Second) },
	},
	{
		check: "I19 status moves along the arrows", name: "and a leader keeps whom it keeps",
		bad:  func(s *stage) { keep(s, "1") },
		good: func(s *stage) { keep(s, "2") },
	},
	{
		check: "I19 status moves along the arrows", name: "and an unfetched grant is not EXPIRED",
		bad: func(s *stage) {
			unfetched(s)
			s.reap(map[string]Member{"ann": s.gone("EXPIRED", s.grant("ann").ID, "")})
		},
		good: func(s *stage) {
			unfetched(s)
			s.reap(map[string]Member{"ann": {Away: s.now, AwayPlace: &Place{0, s.grant("ann").Place.Score}}})
		},
	},
}

func giveUp(s *stage, after time.Duration) {
	s.enter("ann")
	s.reserve("ann")
	s.pass(after)
	s.reap(map[string]Member{"ann": inLane(s.members["ann"].Held.Score)})
}

func forget(s *stage, after time.Duration) {
	s.enter("ann")
	s.listening(20 * time.Second)
	s.listen("ann")
	s.listening(2 * theMinute)
	s.goAway("ann")
	s.listening(after)
	s.reap(map[string]Member{"ann": s.gone("FORGOTTEN", "", "")})
}

// keep is a second call of a leader, which keeps calls from keep on.
func keep(s *stage, keep string) {
	s.enter("ann")
	s.reserve("ann")
	score := s.members["ann"].Held.Score
	s.reserve()
	s.members["ann"] = inLane(score)
	s.last().Args[4] = keep
	s.last().Members = map[string]Member{"ann": inLane(score)}
	s.sizes = Sizes{Waiting: 1}
	s.last().Sizes = s.sizes
}

func unfetched(s *stage) {
	s.enter("ann")
	s.reserve("ann")
	s.issue("ann")
	s.pass(11 * time.Second)
}

var toldPlays = []play{
	{
		check: "I19 what is told is where they are",
		bad: func(s *stage) {
			s.enter("ann")
			s.told("ann", Event{Status: "READY"})
		},
		good: func(s *stage) {
			s.admit("ann")
			s.told("ann", Event{Status: "READY"})
		},
	},
	{
		check: "I19 what is told is where they are", name: "and how they ended",
		bad: func(s *stage) {
			s.enter("ann")
			s.leave("ann")
			s.told("ann", Event{Status: "NOT_ENTERED", Outcome: "EVICTED"})
		},
		good: func(s *stage) {
			s.enter("ann")
			s.leave("ann")
			s.told("ann", Event{Status: "NOT_ENTERED", Outcome: "LEFT"})
		},
	},
	{
		check: "I19 what is told is where they are", name: "at some moment of the call",
		bad: func(s *stage) {
			s.enter("ann")
			s.told("ann", Event{Status: "NOT_ENTERED"})
		},
		good: func(s *stage) {
			op := s.ask(Event{F: Poll, Member: "ann"})
			s.enter("ann")
			s.answer(op, Event{F: Poll, Type: OK, Code: "200", Status: "NOT_ENTERED"})
		},
	},
	{
		check: "I19 rank rises only by those who came back",
		bad: func(s *stage) {
			s.enter("ann", "bob")
			rank(s, "bob", 0)
			rank(s, "bob", 1)
		},
		good: func(s *stage) {
			s.enter("ann", "bob")
			s.reserve("ann")
			rank(s, "bob", 0)
			s.pass(6 * time.Second)
			s.reap(map[string]Member{"ann": inLane(s.members["ann"].Held.Score)})
			rank(s, "bob", 1)
		},
	},
	{
		check: "I19 the total is above the rank",
		bad: func(s *stage) {
			s.enter("ann")
			s.told("ann", Event{Status: "WAITING", Score: s.members["ann"].Score, Rank: 1, Total: 1})
		},
		good: func(s *stage) {
			s.enter("ann")
			s.told("ann", Event{Status: "WAITING", Score: s.members["ann"].Score, Rank: 1, Total: 2})
		},
	},
}

func rank(s *stage, name string, n int64) {
	s.told(name, Event{Status: "WAITING", Score: s.members[name].Score, Rank: n, Total: n + 1})
}
