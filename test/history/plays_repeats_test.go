package history

var repeatPlays = []play{
	{
		check: "I5 a repeat gets the same order",
		bad:   func(s *stage) { sameKey(s, false) },
		good:  func(s *stage) { sameKey(s, true) },
	},
	{
		check: "I5 a repeat gets the same order", name: "and never another answer",
		bad:  func(s *stage) { again(s, "", "1xs", Fail, "sold-out") },
		good: func(s *stage) { again(s, "", "1xs", OK, "200") },
	},
	{
		check: "I5 a repeat gets the same order", name: "not that it is in progress",
		bad:  func(s *stage) { again(s, "", "1xs", Fail, "order-in-progress") },
		good: func(s *stage) { again(s, "", "1xs", Fail, "unavailable") },
	},
	{
		check: "I5 a repeat gets the same order", name: "other content is refused",
		bad:  func(s *stage) { again(s, "", "2xs", OK, "200") },
		good: func(s *stage) { again(s, "", "2xs", Fail, "entry-token-consumed") },
		also: []string{"I4 what was acknowledged is there", "I13 claims and orders are linearizable"},
	},
	{
		check: "I5 a repeat gets the same order", name: "other content of the same key is refused by the key",
		bad:  func(s *stage) { again(s, "k", "2xs", Fail, "entry-token-consumed") },
		good: func(s *stage) { again(s, "k", "2xs", Fail, "idempotency-mismatch") },
	},
	{
		check: "I5 one of several executes",
		bad:   func(s *stage) { atOnce(s, false) },
		good:  func(s *stage) { atOnce(s, true) },
		also:  []string{"I13 claims and orders are linearizable"},
	},
	{
		check: "I5 a refusal because of an order has one",
		bad: func(s *stage) {
			s.admit("ann")
			s.fails("ann", "k", "1xs", "sold-out")
			s.fails("ann", "k", "2xs", "idempotency-mismatch") // the refused attempt is remembered
		},
		good: func(s *stage) {
			s.admit("ann")
			s.orders("ann", "o1", "k")
			s.fails("ann", "k", "2xs", "idempotency-mismatch")
			s.consume("ann", "o1")
		},
	},
	{
		check: "I13 claims and orders are linearizable",
		bad:   func(s *stage) { foundAndPlaced(s, true) },
		good:  func(s *stage) { foundAndPlaced(s, false) },
	},
}

// sameKey is a key that comes again with a new grant.
func sameKey(s *stage, same bool) {
	s.admit("ann")
	s.orders("ann", "o1", "k")
	s.consume("ann", "o1")
	s.pass(theMinute)
	s.admit("ann")
	if !same {
		s.orders("ann", "o2", "k")
		s.consume("ann", "o2")
		return
	}
	op, e := s.ordering("ann", "k", "1xs")
	s.claim("ann", "o2")
	s.release("ann")
	e.Type, e.Code, e.OrderID, e.Replayed = OK, "200", "o1", true
	s.answer(op, e)
}

// again is a second call with the token of an order that is there.
func again(s *stage, key, content string, class Type, code string) {
	s.admit("ann")
	s.orders("ann", "o1", key)
	op, e := s.ordering("ann", key, content)
	e.Type, e.Code = class, code
	if class == OK {
		e.OrderID, e.Replayed = "o1", true
	}
	s.answer(op, e)
	s.consume("ann", "o1")
}

// atOnce are two calls that both get the one order.
func atOnce(s *stage, second bool) {
	s.admit("ann")
	other, _ := s.ordering("ann", "k", "1xs")
	s.orders("ann", "o1", "k")
	e := Event{F: Order, Type: OK, Code: "200", Member: "ann", OrderID: "o1", Replayed: second}
	s.answer(other, e)
	s.consume("ann", "o1")
}

// foundAndPlaced are a call that places an order and one that finds it, one
// after the other.
func foundAndPlaced(s *stage, foundFirst bool) {
	s.admit("ann")
	s.claim("ann", "o1")
	s.commit("ann", "o1", "", 1)
	for i := range 2 {
		op, e := s.ordering("ann", "", "1xs")
		e.Type, e.Code, e.OrderID, e.Replayed = OK, "200", "o1", (i == 0) == foundFirst
		s.answer(op, e)
	}
	s.consume("ann", "o1")
}
