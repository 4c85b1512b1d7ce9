package history

import "time"

// bound are the settings of a room that s bounds, with nothing over.
var bound = []string{"stock=s", "overbook=1000"}

var stockPlays = []play{
	{
		check: "I11 no step goes above the stock", start: bound,
		bad:  func(s *stage) { letIn(s, 1, "ann", "bob") },
		good: func(s *stage) { letIn(s, 2, "ann", "bob") },
	},
	{
		check: "I11 no step goes above the stock", name: "less what has been consumed since", start: bound,
		bad:  func(s *stage) { oneSold(s, 2, 0) },
		good: func(s *stage) { oneSold(s, 3, 0) },
	},
	{
		check: "I11 no step goes above the stock", name: "and not before", start: bound,
		bad:  func(s *stage) { oneSold(s, 1, 1) },
		good: func(s *stage) { oneSold(s, 2, 1) },
	},
	{
		check: "I11 no step goes above the stock", name: "times the factor", start: []string{"stock=s", "overbook=1999"},
		bad:  func(s *stage) { letIn(s, 1, "ann", "bob") },
		good: func(s *stage) { letIn(s, 2, "ann", "bob") },
	},
	{
		check: "I11 no step goes above the stock", name: "that was read lately", start: bound,
		bad:  func(s *stage) { oldReading(s, 11*time.Second) },
		good: func(s *stage) { oldReading(s, 10*time.Second) },
	},
	{
		check: "I11 no step goes above the stock", name: "of the room's own product", start: bound,
		bad: func(s *stage) {
			s.enter("ann")
			s.state.Stock = StockTold{SKU: "other", Left: 9, At: s.now}
			s.reserve("ann")
		},
		good: func(s *stage) { letIn(s, 9, "ann") },
	},
	{
		check: "I11 no step goes above the stock", name: "counted from what the room still knows", start: bound,
		bad: func(s *stage) {
			s.enter("ann")
			s.state.Stock = StockTold{SKU: "s", Left: 9, Consumed: 1, At: s.now}
			s.reserve("ann")
		},
		good: func(s *stage) { letIn(s, 9, "ann") },
	},
	{
		check: "I11 who holds a grant finds a piece", start: bound,
		bad: func(s *stage) { soldOut(s, 0) },
		good: func(s *stage) {
			s.facts.Supplies = []Supply{{"s", -10, s.mono}}
			soldOut(s, -10)
		},
	},
	{
		check: "I11 who holds a grant finds a piece", name: "whatever is put in", start: bound,
		bad: func(s *stage) {
			s.facts.Supplies = []Supply{{"s", 10, s.mono}}
			soldOut(s, 10)
		},
		good: func(s *stage) {
			letIn(s, 9, "ann")
			s.issue("ann")
			s.pickup("ann")
			s.orders("ann", "o1", "")
			s.consume("ann", "o1")
		},
	},
	{
		check: "I11 who holds a grant finds a piece", name: "whose lease has not ended", start: bound,
		bad:  func(s *stage) { soldOut(s, 0) },
		good: func(s *stage) { lapsedAndSoldOut(s) },
	},
	{
		check: "I11 who holds a grant finds a piece", name: "unless people are let in beyond it", start: bound,
		bad: func(s *stage) { soldOut(s, 0) },
		good: func(s *stage) {
			s.set("overbook=1001", "version=2")
			s.update()
			soldOut(s, 0)
		},
	},
}

// tell is a reading of what is left, with what had been consumed before it.
func (s *stage) tell(left, consumed int64) {
	s.state.Stock = StockTold{SKU: "s", Left: left, Consumed: consumed, At: s.now}
}

// letIn takes people by a reading.
func letIn(s *stage, left int64, names ...string) {
	s.enter(names...)
	s.tell(left, 0)
	s.reserve(names...)
}

// oneSold takes two people when one order has been consumed.
func oneSold(s *stage, left, before int64) {
	s.tell(9, 0)
	s.admit("ann")
	s.orders("ann", "o1", "")
	s.consume("ann", "o1")
	s.pass(time.Second)
	s.enter("bob", "cy")
	s.tell(left, before)
	s.reserve("bob", "cy")
}

// oldReading takes somebody some time after a reading.
func oldReading(s *stage, age time.Duration) {
	s.enter("ann")
	s.tell(9, 0)
	s.pass(age)
	s.reserve("ann")
}

// soldOut has somebody with a grant refused for want of stock.
func soldOut(s *stage, supplied int64) {
	s.final.Products[0].Stock += supplied
	letIn(s, 9, "ann")
	s.issue("ann")
	s.pickup("ann")
	op, e := s.ordering("ann", "", "1xs")
	s.claim("ann", "o1")
	s.release("ann")
	e.Type, e.Code = Fail, "sold-out"
	s.answer(op, e)
}

// lapsedAndSoldOut is an order whose lease ends before it learns of the stock.
func lapsedAndSoldOut(s *stage) {
	letIn(s, 9, "ann")
	s.issue("ann")
	s.pickup("ann")
	op, e := s.ordering("ann", "", "1xs")
	s.claim("ann", "o1")
	s.pass(15 * time.Second)
	g := s.grant("ann")
	g.Claim = ""
	s.reap(map[string]Member{"ann": {Ready: g.Expiry, Grant: &g}})
	e.Type, e.Code = Fail, "sold-out"
	s.answer(op, e)
}
