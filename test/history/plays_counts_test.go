package history

import "time"

var countPlays = []play{
	{
		check: "I8 everybody is counted once",
		bad: func(s *stage) {
			s.stats["entered"]++ // a second count for one who was in
			s.enter("ann")
		},
		good: func(s *stage) { s.enter("ann") },
	},
	{
		check: "I8 everybody is counted once", name: "by the counter of how they ended",
		bad: func(s *stage) {
			s.enter("ann")
			s.stats["left"]--
			s.stats["evicted"]++
			s.leave("ann")
		},
		good: func(s *stage) {
			s.enter("ann")
			s.leave("ann")
		},
	},
	{
		check: "I8 sizes are those of the members",
		bad: func(s *stage) {
			s.enter("ann")
			s.last().Sizes.Done++
		},
		good: func(s *stage) { s.enter("ann") },
	},
	{
		check: "I8 nothing moves but in a step",
		bad: func(s *stage) {
			s.enter("ann")
			s.members["eve"] = inLane(5)
		},
		good: func(s *stage) { s.enter("ann", "eve") },
	},
	{
		check: "I8 a loss has a cause",
		bad: func(s *stage) {
			s.enter("ann")
			s.lose(2, true)
			s.facts.Losses = nil
		},
		good: func(s *stage) {
			s.enter("ann")
			s.lose(2, true)
		},
	},
	{
		check: "I9 one place each",
		bad: func(s *stage) {
			s.enter("ann")
			m := s.members["ann"]
			m.Done, m.Outcome = s.now, &Outcome{"LEFT", "", ""}
			s.reap(map[string]Member{"ann": m})
		},
		good: func(s *stage) {
			s.enter("ann")
			s.leave("ann")
		},
	},
	{
		check: "I9 one place each", name: "and in all keys of it",
		bad: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
			m := s.members["ann"]
			m.Held = nil
			s.reap(map[string]Member{"ann": m})
		},
		good: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
			s.reap(map[string]Member{"ann": s.members["ann"]})
		},
		also: []string{"I6 a place keeps its score"},
	},
	{
		check: "I11 no step goes above capacity", start: []string{"capacity=1"},
		bad: func(s *stage) {
			s.enter("ann", "bob")
			s.reserve("ann", "bob")
		},
		good: func(s *stage) {
			s.enter("ann", "bob")
			s.reserve("ann")
		},
	},
	{
		check: "I11 no step goes above capacity", name: "counting who holds a grant", start: []string{"capacity=1"},
		bad:  func(s *stage) { oneMore(s, 9*time.Second) },
		good: func(s *stage) { oneMore(s, 10*time.Second) },
	},
}

// oneMore is taken while, or after, another's grant lives.
func oneMore(s *stage, d time.Duration) {
	s.enter("ann", "bob")
	s.reserve("ann")
	s.issue("ann")
	s.pass(d)
	s.reserve("bob")
}

var ratePlays = []play{
	{
		check: "I10 no window is over its rate",
		bad:   func(s *stage) { fourInARow(s, time.Second/2) },
		good:  func(s *stage) { fourInARow(s, time.Second) },
	},
	{
		check: "I10 no window is over its rate", name: "by the largest rate in force",
		bad: func(s *stage) {
			s.set("interval=2000000", "version=2")
			s.update()
			fourInARow(s, 9*time.Second/10)
		},
		good: func(s *stage) {
			fourInARow(s, time.Second)
			s.set("interval=2000000", "version=2")
			s.update()
		},
	},
	{
		check: "I10 no window is over its rate", name: "but for a step of the clock that was made", start: []string{"restorable_from=7"},
		bad:  func(s *stage) { stepBack(s, 0) },
		good: func(s *stage) { stepBack(s, 1) },
	},
	{
		check: "I10 whoever grants charges the rate",
		bad: func(s *stage) {
			s.enter("ann")
			s.state.Tat += 500_000
			s.reserve("ann")
		},
		good: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
		},
	},
	{
		check: "I10 whoever grants charges the rate", name: "and for all that it grants",
		bad: func(s *stage) {
			s.admit("ann")
			s.enter("bob")
			s.reserve("bob")
			s.state.Tat -= theInterval / theBatch // the budget is in a scheduler's memory
			s.issue("bob")
		},
		good: func(s *stage) { s.admit("ann", "bob") },
	},
}

// fourInARow are two batches, some time apart.
func fourInARow(s *stage, d time.Duration) {
	s.enter("ann", "bob", "cy", "dan")
	s.reserve("ann", "bob")
	s.issue("ann", "bob")
	s.pass(d)
	s.reserve("cy", "dan")
	s.issue("cy", "dan")
}

// update puts the settings in force, and moves the rate as the script does.
func (s *stage) update() {
	s.step("configure", []string{"update", "7", "2", "0"}, s.ok(), nil)
	s.last().Mode = "update"
	s.last().Conf = map[string]string{}
	for name, v := range s.conf {
		s.last().Conf[name] = v
	}
	m := &moment{Step: s.last(), was: s.state, conf: confOf(s.steps[0].Conf), gen: s.gen}
	s.state.Tat = m.charged()
	s.last().State = s.state
}

// stepBack is a room that accepts a step of the clock, and grants a batch anew.
func stepBack(s *stage, made int64) {
	s.facts.TimeSteps = made
	s.enter("ann", "bob", "cy", "dan")
	s.reserve("ann", "bob")
	s.issue("ann", "bob")
	s.pass(10 * time.Second)
	s.now -= 3600 * second
	s.state.Tat = s.now - theInterval // what base comes to
	s.reserve("cy", "dan")
	s.last().State.Tat = s.steps[len(s.steps)-2].State.Tat
	s.state.StepAt = s.now
	s.issue("cy", "dan")
}
