package history

import "time"

var orderPlays = []play{
	{
		check: "I1 one order per grant",
		bad:   func(s *stage) { overtake(s, false) },
		good:  func(s *stage) { overtake(s, true) },
		also:  []string{"I13 claims and orders are linearizable"},
	},
	{
		check: "I2 one order per member and sale",
		bad: func(s *stage) {
			s.facts.OneOrder = true
			twice(s)
		},
		good: twice,
	},
	{
		check: "I3 an order's grant was issued to its member",
		bad: func(s *stage) {
			s.admit("ann")
			op, e := s.ordering("ann", "", "1xs")
			e.Grant = "stray"
			s.events[len(s.events)-1].Grant = "stray"
			s.step("claim", []string{"ann", "stray", "o1", "15000000"}, s.ok(), nil)
			s.commit("ann", "o1", "", 1)
			s.final.Orders[0].Grant, s.final.Outbox[0].Grant = "stray", "stray"
			s.step("consume", []string{"ann", "stray", "o1"}, s.ok(), nil)
			e.Type, e.Code, e.OrderID = OK, "201", "o1"
			s.answer(op, e)
		},
		good: func(s *stage) {
			s.admit("ann")
			s.orders("ann", "o1", "")
			s.consume("ann", "o1")
		},
		also: []string{"I13 claims and orders are linearizable"},
	},
	{
		check: "I4 what was acknowledged is there",
		bad: func(s *stage) {
			s.admit("ann")
			op, e := s.ordering("ann", "", "1xs")
			s.claim("ann", "o1")
			e.Type, e.Code, e.OrderID = OK, "201", "o1"
			s.answer(op, e) // COMMIT had been answered with ROLLBACK
		},
		good: func(s *stage) {
			s.admit("ann")
			s.orders("ann", "o1", "")
			s.consume("ann", "o1")
		},
	},
	{
		check: "I4 what was acknowledged is there", name: "for a member who is told of it later",
		bad:  func(s *stage) { consumed(s, "o2") },
		good: func(s *stage) { consumed(s, "o1") },
		also: []string{"I19 what is told is where they are"},
	},
	{
		check: "I4 a failed attempt left no order",
		bad:   func(s *stage) { uncertain(s, Fail, "unavailable") },
		good:  func(s *stage) { uncertain(s, Unknown, "order-outcome-unknown") },
		also:  []string{"I13 claims and orders are linearizable"},
	},
	{
		check: "I4 a failed attempt left no order", name: "however it was classed",
		bad:  func(s *stage) { uncertain(s, Unknown, "unavailable") },
		good: func(s *stage) { uncertain(s, Unknown, "internal") },
		also: []string{"I13 claims and orders are linearizable"},
	},
	{
		check: "I4 a refused token never pays",
		bad: func(s *stage) {
			s.admit("ann")
			s.fails("ann", "", "1xs", "entry-token-invalid")
		},
		good: func(s *stage) {
			s.admit("ann")
			s.fails("ann", "", "1xs", "entry-token-invalid")
			s.void("ann", s.grant("ann").ID)
		},
	},
	{
		check: "I4 a refused token never pays", name: "not even late",
		bad: func(s *stage) {
			s.admit("ann")
			s.fails("ann", "", "1xs", "entry-token-invalid")
			s.orders("ann", "o1", "")
			s.consume("ann", "o1")
		},
		good: func(s *stage) {
			s.admit("ann")
			s.fails("ann", "", "1xs", "sold-out")
			s.orders("ann", "o1", "")
			s.consume("ann", "o1")
		},
		also: []string{"I13 claims and orders are linearizable"},
	},
	{
		check: "I4 stock adds up",
		bad: func(s *stage) {
			wholeWay(s)
			s.final.Products[0].Stock--
		},
		good: wholeWay,
	},
	{
		check: "I16 one event per order",
		bad: func(s *stage) {
			wholeWay(s)
			s.final.Outbox = nil
		},
		good: wholeWay,
	},
	{
		check: "I16 one event per order", name: "of its grant",
		bad: func(s *stage) {
			s.facts.Quiesced = false
			wholeWay(s)
			s.final.Outbox[0].Grant, s.final.Outbox[0].Status = "other", "pending"
		},
		good: func(s *stage) {
			s.facts.Quiesced = false
			wholeWay(s)
			s.final.Outbox[0].Status = "pending"
		},
	},
	{
		check: "I16 one event per order", name: "that ends",
		bad: func(s *stage) {
			wholeWay(s)
			s.final.Outbox[0].Status = "pending" // the cursor had gone past it
		},
		good: func(s *stage) {
			wholeWay(s)
			s.final.Outbox[0].Status = "dead"
		},
	},
	{
		check: "I16 done is delivered",
		bad: func(s *stage) {
			s.admit("ann")
			s.orders("ann", "o1", "")
			s.facts.Quiesced = false
		},
		good: func(s *stage) {
			s.admit("ann")
			s.orders("ann", "o1", "")
			s.facts.Quiesced = false
			s.final.Outbox[0].Status = "pending"
		},
	},
	{
		check: "I18 the exact token alone",
		bad:   func(s *stage) { forged(s, OK) },
		good:  func(s *stage) { forged(s, Fail) },
		also:  []string{"I13 claims and orders are linearizable"},
	},
	{
		check: "I18 the exact token alone", name: "of the member",
		bad:  func(s *stage) { answeredWith(s, "bob") },
		good: func(s *stage) { answeredWith(s, "ann") },
		also: []string{"I1 one order per grant", "I5 a repeat gets the same order"},
	},
	{
		check: "I18 the exact token alone", name: "of the generation",
		bad: func(s *stage) {
			wholeWay(s)
			s.final.Orders[0].Generation--
		},
		good: wholeWay,
	},
	{
		check: "I20 no order without a claim",
		bad:   func(s *stage) { claimless(s, "another") },
		good:  func(s *stage) { claimless(s, "o1") },
		also:  []string{"I13 claims and orders are linearizable"},
	},
}

// overtake is an order whose lease ends while its transaction runs: a second
// attempt claims, and must find the first one's order.
func overtake(s *stage, unique bool) {
	s.admit("ann")
	first, e := s.ordering("ann", "", "1xs")
	s.claim("ann", "o1")
	s.pass(16 * time.Second)
	g := s.grant("ann")
	g.Claim = ""
	s.reap(map[string]Member{"ann": {Ready: g.Expiry, Grant: &g}})
	second, _ := s.ordering("ann", "", "1xs")
	s.claim("ann", "o2")
	s.commit("ann", "o1", "", 1)
	e.Type, e.Code, e.OrderID = OK, "201", "o1"
	s.answer(first, e)
	if unique {
		e.Code, e.Replayed = "200", true
	} else {
		s.commit("ann", "o2", "", 1)
		e.OrderID = "o2"
	}
	s.answer(second, e)
	s.consume("ann", "o1")
}

func twice(s *stage) {
	for _, order := range []string{"o1", "o2"} {
		s.admit("ann")
		s.orders("ann", order, "")
		s.consume("ann", order)
		s.pass(time.Minute)
	}
}

// consumed is a member who learns from a poll what was ordered.
func consumed(s *stage, told string) {
	s.admit("ann")
	s.orders("ann", "o1", "")
	s.consume("ann", "o1")
	s.told("ann", Event{Status: "CONSUMED", OrderID: told})
}

// uncertain is an order that is there, and a client who got another answer.
func uncertain(s *stage, class Type, code string) {
	s.admit("ann")
	op, e := s.ordering("ann", "", "1xs")
	s.claim("ann", "o1")
	s.commit("ann", "o1", "", 1)
	e.Type, e.Code = class, code
	s.answer(op, e)
	s.consume("ann", "o1")
}

func forged(s *stage, class Type) {
	s.admit("ann")
	op, e := s.ordering("ann", "", "1xs")
	s.events[len(s.events)-1].Forged = true
	e.Type, e.Code = class, "entry-token-invalid"
	if class == OK {
		s.claim("ann", "o1")
		s.commit("ann", "o1", "", 1)
		e.Code, e.OrderID = "201", "o1"
	}
	s.answer(op, e)
	if class == OK {
		s.consume("ann", "o1")
	}
}

// answeredWith is a call with the grant of ann, answered with somebody's order.
func answeredWith(s *stage, whose string) {
	s.enter("ann", "bob")
	s.reserve("ann", "bob")
	s.issue("ann", "bob")
	s.orders("ann", "o-ann", "")
	s.orders("bob", "o-bob", "")
	op, e := s.ordering("ann", "", "1xs")
	e.Type, e.Code, e.OrderID, e.Replayed = OK, "200", "o-"+whose, true
	s.answer(op, e)
	s.consume("ann", "o-ann")
	s.consume("bob", "o-bob")
}

func claimless(s *stage, claim string) {
	s.admit("ann")
	op, e := s.ordering("ann", "", "1xs")
	s.claim("ann", claim)
	s.commit("ann", "o1", "", 1)
	e.Type, e.Code, e.OrderID = OK, "201", "o1"
	s.answer(op, e)
	s.consume("ann", "o1")
}
