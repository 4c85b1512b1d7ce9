package history

import (
	"fmt"
	"strings"
	"time"
)

// Rooms of several lanes, as plays begin with them.
var (
	threeToSeven = []string{"lanes=2", "weight0=3", "weight1=7"}
	oneMinute    = []string{"lanes=3", "one_line=1", "boost1=60000000", "boost2=60000000"}
	tenSeconds   = []string{"lanes=2", "weight0=1", "weight1=1", "max_wait=10000000", "batch=4"}
)

var lanePlays = []play{
	{
		check: "I7 who enters later stands behind", name: "in a lane of a boosted room", start: oneMinute,
		bad: func(s *stage) {
			s.entersLane(1, "ann")
			s.state.Lasts[1] = 0 // what the lane was given last is forgotten
			s.entersLane(1, "bob")
		},
		good: func(s *stage) {
			s.entersLane(0, "ann")
			s.entersLane(1, "bob", "cy") // ahead of ann: that is the boost
		},
		also: []string{"I7 a new place is behind all others"},
	},
	{
		check: "I7 who enters later stands behind", name: "in a lane of a boosted room, but in another sale", start: oneMinute,
		bad:  func(s *stage) { s.entersAnew("3") },
		good: func(s *stage) { s.entersAnew("4") },
	},
	{
		check: "I7 a new place is behind all others", name: "of a boosted lane", start: oneMinute,
		bad: func(s *stage) {
			s.enterLane(1, "ann")
			s.state.Lasts[1] += 5 * second
			s.enterLane(1, "bob")
		},
		good: func(s *stage) { s.enterLane(1, "ann", "bob") },
	},
	{
		check: "I7 one line is served in its order", start: oneMinute,
		bad: func(s *stage) {
			s.enterLane(0, "ann")
			s.enterLane(1, "vip")
			s.take(0, nil, "ann")
		},
		good: func(s *stage) {
			s.enterLane(0, "ann")
			s.enterLane(1, "vip")
			s.take(0, nil, "vip", "ann")
		},
	},
	{
		check: "I7 one line is served in its order", name: "the lower lane first of equal scores", start: oneMinute,
		bad:  func(s *stage) { s.equals("cy", "bob") },
		good: func(s *stage) { s.equals("bob", "cy") },
	},
	{
		check: "I7 one line is served in its order", name: "but for who is lifted",
		start: append([]string{"max_wait=10000000"}, oneMinute...),
		bad:   func(s *stage) { s.waitAndTake(0, nil) },
		good:  func(s *stage) { s.waitAndTake(1, []string{"ann"}) },
	},
	{
		check: "I7 lanes share by their weights", start: threeToSeven,
		bad:  func(s *stage) { s.share("ababab") }, // one by one, as if all weighed the same
		good: func(s *stage) { s.share("abbabbabbbabbabbabbb") },
	},
	{
		check: "I7 lanes share by their weights", name: "and an idle one saves no credit", start: threeToSeven,
		bad: func(s *stage) {
			s.share("a a a a a") // the other lane is empty meanwhile
			s.share("bbbbbabb")
		},
		good: func(s *stage) {
			s.share("a a a a a")
			s.share("abbabbab")
		},
	},
	{
		check: "I7 a lift is due, once a day and for half at most", name: "due", start: tenSeconds,
		bad: func(s *stage) {
			s.enterLane(0, "ann")
			s.pass(9 * time.Second)
			s.take(1, []string{"ann"}, "ann")
		},
		good: func(s *stage) {
			s.enterLane(0, "ann")
			s.pass(11 * time.Second)
			s.take(1, []string{"ann"}, "ann")
		},
	},
	{
		check: "I7 a lift is due, once a day and for half at most", name: "of the first lane", start: tenSeconds,
		bad: func(s *stage) {
			s.enterLane(1, "ann")
			s.pass(11 * time.Second)
			s.take(1, []string{"ann"}, "ann")
		},
		good: func(s *stage) {
			s.enterLane(1, "ann")
			s.pass(11 * time.Second)
			s.take(0, nil, "ann")
		},
	},
	{
		check: "I7 a lift is due, once a day and for half at most", name: "once a day", start: tenSeconds,
		bad:  func(s *stage) { s.liftTwice(time.Hour) },
		good: func(s *stage) { s.liftTwice(24 * time.Hour) },
	},
	{
		check: "I7 a lift is due, once a day and for half at most", name: "half", start: tenSeconds,
		bad: func(s *stage) {
			s.enterLane(0, "ann", "bob", "cy")
			s.pass(11 * time.Second)
			s.take(3, []string{"ann", "bob", "cy"}, "ann", "bob", "cy")
		},
		good: func(s *stage) {
			s.enterLane(0, "ann", "bob", "cy")
			s.pass(11 * time.Second)
			s.take(2, []string{"ann", "bob"}, "ann", "bob", "cy")
		},
	},
	{
		check: "I7 a lift is due, once a day and for half at most", name: "half of all, where the room is off", start: append(tenSeconds, "off=1"),
		bad:  func(s *stage) { s.liftOfTen(6) },
		good: func(s *stage) { s.liftOfTen(5) },
	},
	{
		check: "I7 a lift is due, once a day and for half at most", name: "half, with those released by hand", start: append(tenSeconds, "released=5"),
		bad:  func(s *stage) { s.liftOfTen(5) },
		good: func(s *stage) { s.liftOfTen(4) },
	},
}

// liftOfTen takes ten who have waited too long, so many of them by their lift.
func (s *stage) liftOfTen(lifts int64) {
	names := strings.Split("abcdefghij", "")
	s.enterLane(0, names...)
	s.pass(11 * time.Second)
	s.take(lifts, names[:lifts], names...)
}

// enterLane is enter by any lane, as its boost has it.
func (s *stage) enterLane(lane int, names ...string) {
	c := confOf(s.conf)
	for _, name := range names {
		score := max(s.state.Last+1, s.now)
		if c.sharing.oneLine && c.sharing.boosts[lane] > 0 {
			score = max(s.state.Lasts[lane]+1, s.now-c.sharing.boosts[lane])
		}
		s.state.Last, s.state.Lasts[lane] = max(s.state.Last, score), score
		s.step("enter", []string{name, fmt.Sprint(lane)}, s.ok(), map[string]Member{name: {Lanes: []int{lane}, Score: score}})
	}
}

// entersLane is enterLane as clients do it.
func (s *stage) entersLane(lane int, names ...string) {
	for _, name := range names {
		e := Event{Type: OK, Code: "201", Status: "WAITING", Rank: -1, Total: -1, Lane: fmt.Sprint("lane", lane)}
		op := s.ask(Event{F: Enter, Member: name})
		s.enterLane(lane, name)
		e.Score = s.members[name].Score
		s.answer(op, e)
	}
}

// entersAnew has one enter, and another after a step back of the clock and a flush,
// which begins a generation of that sale.
func (s *stage) entersAnew(sale string) {
	s.entersLane(1, "ann")
	s.now -= 30 * second
	s.gen++
	s.set("sale="+sale, "generation="+str(s.gen), "restorable_from="+str(s.gen), "began="+str(s.now))
	s.begin("create")
	s.entersLane(1, "bob")
}

// take is reserve with a whole reply: of the members the first so many are lifts,
// and some of these are told as new.
func (s *stage) take(lifts int64, fresh []string, names ...string) {
	step := s.reserve(names...)
	taken, lifted := []any{}, []any{}
	for _, name := range names {
		place := s.members[name].Held
		taken = append(taken, name, int64(place.Lane), str(place.Score))
	}
	for _, name := range fresh {
		lifted = append(lifted, name)
	}
	step.Args = append(step.Args[:5], s.conf["batch"], "500", "0")
	step.Reply = append(s.ok(), "taken", taken, "lifts", lifts, "lifted", lifted)
}

// equals has two enter at the same score and be taken one by one.
func (s *stage) equals(first, second string) {
	s.enterLane(1, "bob")
	s.enterLane(2, "cy")
	s.take(0, nil, first)
	s.take(0, nil, second)
}

// waitAndTake takes somebody of the first lane who has waited for long, past a VIP.
func (s *stage) waitAndTake(lifts int64, fresh []string) {
	s.enterLane(0, "ann")
	s.pass(11 * time.Second)
	s.enterLane(1, "vip")
	s.take(lifts, fresh, "ann")
}

// share has members enter and be taken one by one: a of the first lane, b of the
// second, with somebody of both left where the order has no spaces.
func (s *stage) share(order string) {
	var names []string
	lane := map[rune]int{'a': 0, 'b': 1}
	rest := []string{"a", "b"}
	for i, r := range order {
		if r == ' ' {
			rest = []string{"a"}
			continue
		}
		names = append(names, fmt.Sprintf("%c%d-%d", r, i, len(s.steps)))
		s.enterLane(lane[r], names[len(names)-1])
	}
	for i, r := range rest {
		rest[i] = fmt.Sprintf("%s-rest-%d", r, len(s.steps))
		s.enterLane(lane[rune(r[0])], rest[i])
	}
	for _, name := range names {
		s.pass(time.Second)
		s.take(0, nil, name)
	}
	for _, name := range rest {
		s.leave(name)
	}
}

// liftTwice lifts somebody out of two places, some time apart.
func (s *stage) liftTwice(apart time.Duration) {
	s.enterLane(0, "ann")
	s.pass(11 * time.Second)
	s.take(1, []string{"ann"}, "ann")
	s.leave("ann")
	s.pass(apart)
	s.enterLane(0, "ann")
	s.pass(11 * time.Second)
	s.take(1, []string{"ann"}, "ann")
}
