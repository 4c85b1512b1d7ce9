package history

import (
	"bytes"
	"strconv"

	"github.com/linekeeper/linekeeper/draw"
)

// drawPlays are of a room that draws for a minute.
var drawPlays = []play{
	{
		check: "I7 a place by lot is where the seed puts it",
		bad:   func(s *stage) { s.drawing(); s.drawAt("ann", s.lot("bob")) },
		good:  func(s *stage) { s.drawing(); s.drawAt("ann", s.lot("ann")+3) },
	},
	{
		check: "I7 a place by lot is where the seed puts it", name: "and moves no other score",
		bad: func(s *stage) {
			s.drawing()
			s.state.Last++
			s.drawAt("ann", s.lot("ann"))
		},
		good: func(s *stage) { s.drawing(); s.drawAt("ann", s.lot("ann")) },
	},
	{
		check: "I7 a new place is behind all others", name: "once a draw is over",
		bad: func(s *stage) {
			s.drawing()
			s.pass(theMinute)
			s.close()
			s.drawAt("late", s.lot("late"))
		},
		good: func(s *stage) {
			s.drawing()
			s.pass(theMinute)
			s.close()
			s.enter("late")
		},
	},
	{
		check: "I7 nobody is taken before the draw is listed",
		bad: func(s *stage) {
			s.drewUntilClosed("ann")
			s.reserve("ann")
		},
		good: func(s *stage) {
			s.drewUntilClosed("ann")
			s.list("ann")
			s.reserve("ann")
		},
	},
	{
		check: "I7 the list has everybody who took part",
		bad: func(s *stage) {
			s.drewUntilClosed("ann", "bob")
			s.list("ann")
		},
		good: func(s *stage) {
			s.drewUntilClosed("ann", "bob")
			s.leave("bob")
			s.list("ann")
		},
	},
	{
		check: "I7 the list has everybody who took part", name: "and nobody else",
		bad: func(s *stage) {
			s.drewUntilClosed("ann")
			s.list("ann", "eve")
		},
		good: func(s *stage) {
			s.drewUntilClosed("ann")
			s.list("ann")
		},
	},
	{
		check: "I7 the list has everybody who took part", name: "and is the one that was promised",
		bad: func(s *stage) {
			s.drewUntilClosed("ann")
			s.list("ann")
			d := &s.final.Draws[0]
			d.List = string(bytes.Replace([]byte(d.List), []byte(`"rank":0`), []byte(`"rank":1`), 1))
		},
		good: func(s *stage) {
			s.drawing()
			s.pass(theMinute)
			s.close()
			s.list()
		},
	},
}

// drawing makes the room one that draws for a minute from now.
func (s *stage) drawing() {
	s.set("draw=1", "admits_at="+str(s.now+60*second))
	s.begin("create")
	seed := draw.NewSeed()
	s.final.Draws = []DrawRow{{Sale: 3, Seed: seed.Reveal(), Order: draw.Uniform, Lanes: []draw.Lane{{Name: "standard", Weight: 1}}}}
}

func (s *stage) plan() draw.Plan {
	p, err := s.final.Draws[0].plan("r")
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// lot is the first place that the seed gives a member.
func (s *stage) lot(name string) int64 { return s.plan().First(name, 0) }

// drawAt is a member who enters by lot.
func (s *stage) drawAt(name string, score int64) {
	s.step("enter", []string{name, "0", "3", strconv.FormatInt(score, 10)}, s.ok(), map[string]Member{name: inLane(score)})
}

// close is the first step that sees the end of the draw.
func (s *stage) close() {
	s.state.Draw = drawClosed
	s.state.Last = max(s.state.Last, beyond)
	s.reap(nil)
}

// list keeps the list of these, and says so.
func (s *stage) list(names ...string) {
	var placed []draw.Placed
	for _, name := range names {
		score := s.members[name].Score
		if score == 0 {
			score = s.lot(name)
		}
		placed = append(placed, draw.Placed{Member: name, Score: score})
	}
	l, err := s.plan().List(placed)
	if err != nil {
		s.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		s.Fatal(err)
	}
	s.final.Draws[0].Listed, s.final.Draws[0].List = true, text.String()
	s.state.Draw = drawListed
	s.step("listed", []string{"3"}, s.ok(), nil)
}

// drewUntilClosed is a draw in which these have taken part, and which is over.
func (s *stage) drewUntilClosed(members ...string) {
	s.drawing()
	for _, m := range members {
		s.drawAt(m, s.lot(m))
	}
	s.pass(theMinute)
	s.close()
}
