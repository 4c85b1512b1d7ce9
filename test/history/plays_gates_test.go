package history

import "time"

var gatePlays = []play{
	{
		check: "I7 who is let straight in passes nobody", start: []string{"direct=1"},
		bad: func(s *stage) {
			s.enter("ann")
			s.straight("bob")
		},
		good: func(s *stage) {
			s.straight("bob")
			s.enter("ann")
		},
	},
	{
		check: "I7 who is let straight in passes nobody", name: "nor anybody who may come back", start: []string{"direct=1"},
		bad: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
			s.straight("bob")
		},
		good: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
			s.issue("ann")
			s.straight("bob")
		},
	},
	{
		check: "I10 whoever grants charges the rate", name: "also enter", start: []string{"direct=1"},
		bad: func(s *stage) {
			tat := s.state.Tat
			s.straight("ann")
			s.last().State.Tat, s.state.Tat = tat, tat
		},
		good: func(s *stage) { s.straight("ann") },
	},
	{
		check: "I10 no window is over its rate", name: "with those let straight in", start: []string{"direct=1"},
		bad: func(s *stage) {
			s.straight("ann")
			s.straight("bob")
			s.straight("cy")
		},
		good: func(s *stage) {
			s.straight("ann")
			s.straight("bob")
			s.pass(500 * time.Millisecond)
			s.straight("cy")
		},
	},
	{
		check: "I10 no window is over its rate", name: "but for a room that is off",
		bad:  func(s *stage) { s.offThenMore(false) },
		good: func(s *stage) { s.offThenMore(true) },
		also: []string{"I8 everybody is counted once"},
	},
	{
		check: "I11 no step goes above capacity", name: "nor by entering", start: []string{"direct=1", "capacity=1"},
		bad: func(s *stage) {
			s.straight("ann")
			s.straight("bob")
		},
		good: func(s *stage) {
			s.straight("ann")
			s.enter("bob")
		},
	},
	{
		check: "I10 by hand no more than was released", start: []string{"released=2"},
		bad: func(s *stage) {
			s.facts.Released = 2
			s.byHand(3)
		},
		good: func(s *stage) {
			s.facts.Released = 2
			s.byHand(2)
		},
	},
	{
		check: "I10 by hand no more than was released", name: "by any operator", start: []string{"released=2"},
		bad:  func(s *stage) { s.byHand(2) },
		good: func(s *stage) { s.facts.Released = 2; s.byHand(2) },
	},
	{
		check: "I10 by hand no more than was released", name: "and each once", start: []string{"released=2"},
		bad: func(s *stage) {
			s.facts.Released = 2
			s.byHand(2)
			s.pass(5 * time.Second)
			s.state.ReleasedUsed = 0 // it has not been kept that they have gone
			s.byHand(2)
		},
		good: func(s *stage) {
			s.facts.Released = 2
			s.byHand(1)
			s.pass(5 * time.Second)
			s.byHand(1)
		},
	},
	{
		check: "I10 by hand no more than was released", name: "until the line is empty", start: []string{"released=5"},
		bad: func(s *stage) {
			s.enter("ann")
			s.reserveLapsing(5)
		},
		good: func(s *stage) { s.reserveLapsing(5) },
	},
	{
		check: "I15 who was let straight in has one turn", start: []string{"direct=1"},
		bad:  func(s *stage) { s.straightThenLost("0") },
		good: func(s *stage) { s.straightThenLost("1") },
	},
	{
		check: "I15 the barred are granted nothing", name: "nor let straight in", start: []string{"direct=1"},
		bad: func(s *stage) {
			s.facts.Barred = []Barring{{Member: "ann", Mono: s.mono}}
			s.pass(time.Millisecond)
			s.entersStraight("ann")
		},
		good: func(s *stage) {
			op := s.ask(Event{F: Enter, Member: "ann"})
			s.facts.Barred = []Barring{{Member: "ann", Mono: s.mono}}
			s.pass(time.Millisecond)
			s.straight("ann")
			s.answer(op, Event{F: Enter, Type: OK, Code: "201", Status: "READY", Score: s.state.Last})
		},
	},
	{
		check: "I19 status moves along the arrows", name: "straight in where the room says so", start: []string{"direct=1", "paused=1"},
		bad:  func(s *stage) { s.straight("ann") },
		good: func(s *stage) { s.enter("ann") },
	},
}

func (s *stage) entersStraight(name string) {
	op := s.ask(Event{F: Enter, Member: name})
	s.straight(name)
	s.answer(op, Event{F: Enter, Type: OK, Code: "201", Status: "READY", Score: s.state.Last})
}

// byHand lets n through whom an operator has released.
func (s *stage) byHand(n int) {
	var names []string
	for i := range n {
		names = append(names, string(rune('a'+i))+str(s.seq))
	}
	s.enter(names...)
	s.reserve(names...)
	tat := s.state.Tat
	s.state.ReleasedUsed += int64(n)
	s.stats["released"] += int64(n)
	step := s.issue(names...)
	step.State.Tat, s.state.Tat = tat, tat
}

// reserveLapsing is a reserve that takes nobody, and lets what was released lapse.
func (s *stage) reserveLapsing(n int64) {
	s.state.ReleasedUsed += n
	s.reserve()
}

// offThenMore is a room that passes ten while it is off, or says that it was.
func (s *stage) offThenMore(off bool) {
	if off {
		s.configure("off=1")
	}
	names := []string{"a", "b", "c", "d", "e"}
	s.enter(names...)
	s.reserve(names...)
	tat := s.state.Tat
	s.stats["passed_off"] += int64(len(names))
	step := s.issue(names...)
	if off {
		step.State.Tat, s.state.Tat = tat, tat
	}
}

// straightThenLost is somebody who was let straight in, and comes back to the
// place after a loss of all data.
func (s *stage) straightThenLost(lostToken string) {
	s.straight("ann")
	s.pickup("ann")
	at := s.grant("ann").Place.Score
	s.lose(0, false)
	s.gen = 8
	s.set("generation=8", "began="+str(s.now), "floor0="+str(at-1))
	s.begin("create")
	s.step("restore", []string{"8", "ann", "7", "0", str(at), str(at - 1), lostToken}, s.ok(), map[string]Member{"ann": inLane(at)})
}
