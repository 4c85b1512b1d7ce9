package history

import "time"

var grantPlays = []play{
	{
		check: "I12 an overtaken step changes nothing",
		bad:   func(s *stage) { oldTerm(s, true) },
		good:  func(s *stage) { oldTerm(s, false) },
	},
	{
		check: "I12 an overtaken step changes nothing", name: "at issue",
		bad: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
			s.newTerm()
			s.reserve()
			s.term--
			s.seq--
			s.issue("ann")
		},
		good: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
			s.newTerm()
			s.reserve()
			s.term--
			s.seq--
			s.step("issue", s.stepArgs("ann", "g"), []any{"STALE", "generation", "7", "term", "2"}, nil)
		},
	},
	{
		check: "I12 an overtaken step changes nothing", name: "of the same leader",
		bad: func(s *stage) {
			s.enter("ann", "bob")
			s.reserve("ann")
			s.seq -= 2
			s.reserve("bob")
		},
		good: func(s *stage) {
			s.enter("ann", "bob")
			s.reserve("ann")
			s.reserve("bob")
		},
	},
	{
		check: "I12 an overtaken step changes nothing", name: "of another generation",
		bad: func(s *stage) {
			s.enter("ann")
			s.reserve("ann").Args[0] = "6"
		},
		good: func(s *stage) {
			s.enter("ann")
			s.step("reserve", []string{"6", "1", "a", "1", "1", "2", "500"}, []any{"GEN", "generation", "7"}, nil)
		},
	},
	{
		check: "I13 one live claim per grant",
		bad:   func(s *stage) { secondClaim(s, 14*time.Second) },
		good:  func(s *stage) { secondClaim(s, 15*time.Second) },
	},
	{
		check: "I13 one live claim per grant", name: "for as long as it began",
		bad: func(s *stage) {
			s.admit("ann")
			s.claim("ann", "c1")
			s.pass(time.Second)
			s.claim("ann", "c1")
		},
		good: func(s *stage) {
			s.admit("ann")
			s.claim("ann", "c1")
			s.claim("ann", "c1")
		},
	},
	{
		check: "I13 only matching ids act",
		bad:   func(s *stage) { lateCleanup(s, true) },
		good:  func(s *stage) { lateCleanup(s, false) },
		also:  []string{"I13 claims and orders are linearizable"},
	},
	{
		check: "I13 only matching ids act", name: "at release",
		bad: func(s *stage) {
			secondClaim(s, 15*time.Second)
			s.release("ann")
			s.last().Args[2] = "c1" // the first attempt's release, late
		},
		good: func(s *stage) {
			secondClaim(s, 15*time.Second)
			s.release("ann")
		},
	},
	{
		check: "I13 only matching ids act", name: "at leave",
		bad:  func(s *stage) { lateLeave(s, true) },
		good: func(s *stage) { lateLeave(s, false) },
	},
	{
		check: "I14 a claim that ends gives the grant back",
		bad:   func(s *stage) { giveBack(s, 5*second) },
		good:  func(s *stage) { giveBack(s, 0) },
		also:  []string{"I17 an expiry is fixed once"},
	},
	{
		check: "I14 a claim that ends gives the grant back", name: "or EXPIRED when it is over",
		bad:  func(s *stage) { endClaim(s, 19*time.Second) },
		good: func(s *stage) { endClaim(s, 20*time.Second) },
		also: []string{"I19 status moves along the arrows"},
	},
	{
		check: "I14 only a definite failure is released",
		bad:   func(s *stage) { unknownCommit(s, true) },
		good:  func(s *stage) { unknownCommit(s, false) },
	},
	{
		check: "I15 ended stays ended",
		bad: func(s *stage) {
			s.enter("ann")
			s.leave("ann")
			s.state.Last++
			s.step("standing", []string{"ann"}, s.ok(), map[string]Member{"ann": inLane(s.state.Last)})
		},
		good: func(s *stage) {
			s.enter("ann")
			s.leave("ann")
			s.enter("ann")
		},
		also: []string{"I19 status moves along the arrows"},
	},
	{
		check: "I15 ended stays ended", name: "unless the order of that grant turns up",
		bad:  func(s *stage) { turnsUp(s, "EVICTED") },
		good: func(s *stage) { turnsUp(s, "LEFT") },
		also: []string{"I13 only matching ids act"},
	},
	{
		check: "I15 a grant never comes back",
		bad:   func(s *stage) { grantedTwice(s, -1) },
		good:  func(s *stage) { grantedTwice(s, 0) },
	},
	{
		check: "I15 the barred are granted nothing",
		bad: func(s *stage) {
			s.enter("ann")
			s.facts.Barred = []Barring{{Member: "ann", Mono: s.mono}}
			s.reserve("ann")
			s.issue("ann")
		},
		good: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
			s.facts.Barred = []Barring{{Member: "ann", Mono: s.mono}}
			s.issue("ann") // had been looked up by then
		},
	},
	{
		check: "I17 no claim after expiry",
		bad: func(s *stage) {
			s.admit("ann")
			s.pass(20 * time.Second)
			s.claim("ann", "c1")
		},
		good: func(s *stage) {
			s.admit("ann")
			s.pass(19 * time.Second)
			s.claim("ann", "c1")
		},
	},
	{
		check: "I17 an expiry is fixed once",
		bad: func(s *stage) {
			s.admit("ann")
			s.pass(time.Second)
			g := s.grant("ann")
			g.Expiry += second
			s.step("pickup", []string{"ann", g.ID, "k"}, s.ok(), map[string]Member{"ann": {Ready: g.Expiry, Grant: &g}})
		},
		good: func(s *stage) {
			s.admit("ann")
			s.pass(time.Second)
			s.pickup("ann")
		},
	},
	{
		check: "I17 an expiry is fixed once", name: "as the client is told",
		bad:  func(s *stage) { toldTwice(s, second) },
		good: func(s *stage) { toldTwice(s, 0) },
	},
}

// newTerm is a leader of a higher term.
func (s *stage) newTerm() { s.term++ }

func oldTerm(s *stage, acts bool) {
	s.enter("ann", "bob")
	s.newTerm()
	s.reserve("ann")
	s.term--
	if acts {
		s.reserve("bob")
		return
	}
	s.step("reserve", s.stepArgs("1", "2", "500"), []any{"STALE", "generation", "7", "term", "2"}, nil)
}

func secondClaim(s *stage, after time.Duration) {
	s.admit("ann")
	s.claim("ann", "c1")
	s.pass(after)
	s.claim("ann", "c2")
}

// lateCleanup is a relay that resumes when its grant has long expired and the
// member has the next one.
func lateCleanup(s *stage, byMember bool) {
	s.admit("ann")
	first := s.grant("ann").ID
	s.orders("ann", "o1", "")
	s.pass(25 * time.Second)
	s.reap(map[string]Member{"ann": s.gone("EXPIRED", first, "")})
	s.admit("ann")
	var changes map[string]Member
	if byMember {
		changes = map[string]Member{"ann": s.gone("CONSUMED", first, "o1")}
	}
	s.step("consume", []string{"ann", first, "o1"}, []any{"OK", "generation", "7", "words", []any{"NONE"}}, changes)
}

func lateLeave(s *stage, acts bool) {
	s.enter("ann")
	old := str(s.members["ann"].Score)
	s.leave("ann")
	s.enter("ann")
	if acts {
		s.leave("ann")
		s.last().Args[1] = old
		return
	}
	s.step("leave", []string{"ann", old, "LEFT"}, []any{"NONE", "generation", "7"}, nil)
}

func giveBack(s *stage, longer int64) {
	s.admit("ann")
	s.claim("ann", "c1")
	g := s.grant("ann")
	g.Claim, g.Expiry = "", g.Expiry+longer
	s.step("release", []string{"ann", g.ID, "c1"}, []any{"READY", "generation", "7"}, map[string]Member{"ann": {Ready: g.Expiry, Grant: &g}})
}

func endClaim(s *stage, after time.Duration) {
	s.admit("ann")
	s.pass(10 * time.Second)
	s.claim("ann", "c1")
	s.pass(after - 10*time.Second)
	g := s.grant("ann").ID
	s.step("release", []string{"ann", g, "c1"}, []any{"EXPIRED", "generation", "7"}, map[string]Member{"ann": s.gone("EXPIRED", g, "")})
}

func unknownCommit(s *stage, release bool) {
	s.admit("ann")
	op, e := s.ordering("ann", "", "1xs")
	s.claim("ann", "o1")
	s.commit("ann", "o1", "", 1)
	if release {
		s.release("ann")
	}
	e.Type, e.Code = Unknown, "order-outcome-unknown"
	s.answer(op, e)
	s.consume("ann", "o1")
}

// turnsUp is an order that becomes known when its member has ended otherwise.
func turnsUp(s *stage, outcome string) {
	s.admit("ann")
	s.orders("ann", "o1", "")
	s.pass(16 * time.Second)
	g := s.grant("ann").ID
	s.step("leave", []string{"ann", str(s.grant("ann").Place.Score), outcome}, s.ok(), map[string]Member{"ann": s.gone(outcome, g, "")})
	s.step("consume", []string{"ann", g, "o1"}, []any{"OK", "generation", "7", "words", []any{"LATE"}},
		map[string]Member{"ann": s.gone("CONSUMED", g, "o1")})
}

// grantedTwice is a member whose first grant was not fetched.
func grantedTwice(s *stage, id int) {
	s.enter("ann")
	s.reserve("ann")
	s.issue("ann")
	s.pass(11 * time.Second)
	score := s.grant("ann").Place.Score
	s.step("standing", []string{"ann"}, s.ok(), map[string]Member{"ann": inLane(score)})
	s.reserve("ann")
	s.ids += id
	s.issue("ann")
}

func toldTwice(s *stage, longer int64) {
	s.admit("ann")
	g := s.grant("ann")
	for range 2 {
		s.told("ann", Event{Status: "READY", Score: g.Place.Score, Grant: g.ID, Expires: g.Expiry})
		g.Expiry += longer
	}
}
