package history

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// deviations are the names of the checks that a loss has excused, each once.
func deviations(h History) []string {
	var names []string
	for _, d := range Examine(h).Deviations {
		names = append(names, d.Check)
	}
	return names
}

const lossItself = "I8 a loss has a cause"

// What a loss may explain is told as a deviation, and the same thing beside the
// loss is a violation.
func TestALossExcusesOnlyWhatItCanHaveDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check  string
		within func(s *stage) // begins, loses, and ends
		beside func(s *stage) // the same, with the loss elsewhere
	}{
		{
			check:  "I20 no order without a claim",
			within: func(s *stage) { unreadClaim(s, true) },
			beside: func(s *stage) { unreadClaim(s, false) },
		},
		{
			check:  "I3 an order's grant was issued to its member",
			within: func(s *stage) { unreadGrant(s, true) },
			beside: func(s *stage) { unreadGrant(s, false) },
		},
		{
			check: "I6 the score told is the place's",
			within: func(s *stage) {
				op := s.ask(Event{F: Poll, Member: "ann"})
				s.lose(len(s.steps), true)
				s.answer(op, Event{F: Poll, Type: OK, Status: "WAITING", Score: 5, Rank: 0, Total: 1})
			},
			beside: func(s *stage) {
				s.lose(len(s.steps), true)
				s.told("ann", Event{Status: "WAITING", Score: 5, Rank: 0, Total: 1})
			},
		},
		{
			check:  "I7 who enters later stands behind",
			within: func(s *stage) { lowerScore(s, true) },
			beside: func(s *stage) { lowerScore(s, false) },
		},
		{
			check: "I19 rank rises only by those who came back",
			within: func(s *stage) {
				s.enter("ann", "bob")
				rank(s, "bob", 0)
				s.lose(len(s.steps), true)
				rank(s, "bob", 1)
			},
			beside: func(s *stage) {
				s.lose(len(s.steps), true)
				s.enter("ann", "bob")
				rank(s, "bob", 0)
				rank(s, "bob", 1)
			},
		},
	} {
		t.Run(c.check, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			c.within(s)
			for _, v := range Check(s.history()) {
				require.Equal(t, "I19", v.Promise, "a loss explains this: %s", v)
			}
			require.Contains(t, deviations(s.history()), c.check)
			require.Contains(t, deviations(s.history()), lossItself)
			s = newStage(t)
			c.beside(s)
			require.Contains(t, broken(s.history()), c.check)
		})
	}
}

// unreadClaim is an order whose claim nobody has read.
func unreadClaim(s *stage, lost bool) {
	s.admit("ann")
	op, e := s.ordering("ann", "", "1xs")
	s.commit("ann", "o1", "", 1)
	if lost {
		s.lose(len(s.steps), true)
	}
	e.Type, e.Code, e.OrderID = OK, "201", "o1"
	s.answer(op, e)
	if !lost {
		s.lose(len(s.steps), true)
	}
	s.consume("ann", "o1")
}

// unreadGrant is an order whose grant, and all of its way, nobody has read.
func unreadGrant(s *stage, lost bool) {
	op := s.ask(Event{F: Poll, Member: "ann"})
	if lost {
		s.lose(len(s.steps), true)
	}
	s.answer(op, Event{F: Poll, Type: OK, Code: "200", Grant: "g"})
	e := Event{F: Order, Member: "ann", Grant: "g", Content: "1xs"}
	op = s.ask(e)
	s.members["ann"] = Member{Grant: &Grant{ID: "g"}}
	s.commit("ann", "o1", "", 1)
	delete(s.members, "ann")
	s.step("claim", []string{"ann", "g", "o1", "15000000"}, s.ok(), nil)
	s.step("consume", []string{"ann", "g", "o1"}, s.ok(), nil)
	if !lost {
		s.lose(len(s.steps), true)
	}
	e.Type, e.Code, e.OrderID = OK, "201", "o1"
	s.answer(op, e)
}

// lowerScore is a room that gives a score below one that it gave before.
func lowerScore(s *stage, lost bool) {
	s.enters("ann")
	if lost {
		s.lose(len(s.steps)-1, true) // and the clock stands still
	}
	s.enters("bob")
	if !lost {
		s.events[len(s.events)-1].Score -= 10
		s.lose(len(s.steps), true)
	}
}

func TestAWrongThatTwoLivesShareIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.enter("ann", "bob")
	s.reserve("bob")
	s.lose(len(s.steps), true)
	s.enter("cy")
	s.lose(len(s.steps)-1, true)
	require.Len(t, Check(s.history()), 1)
}

func TestStepsThatALossUndidAreJudgedInTheirLife(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.enter("ann", "bob")
	s.reserve("bob")
	s.lose(1, true)
	require.Equal(t, []string{"I7 the first in line is taken first"}, broken(s.history()))
}

func TestAJournalThatBeginsLateAccusesNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	wholeWay(s)
	h := s.history()
	for cut := range len(s.steps) {
		h.Journal[0].Steps = s.steps[cut:]
		res := Examine(h)
		require.Empty(t, res.Violations, "without the first %d steps", cut)
		require.Equal(t, cut > 0, len(res.Deviations) > 0, "what is not judged is said")
	}
	h.Journal = nil
	require.Empty(t, Check(h), "a release build keeps no journal")
}

func TestTheManyAreTold(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for i := range 20 {
		name := fmt.Sprint("m", i)
		s.enter(name)
		s.told(name, Event{Status: "WAITING", Score: s.members[name].Score, Rank: 1, Total: 0})
	}
	got := Check(s.history())
	require.Len(t, got, most)
	require.Contains(t, got[most-1].Slice, "(and 15 more violations of this check)")
	require.Regexp(t, `^I19 the total is above the rank: m0 has rank 1 of 0\n\top 1 poll by m0 at , \+[0-9.]+s to \+[0-9.]+s: ok 200 `, got[0].String())
}

func TestPorcupineDrawsWhatItRefuses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	foundAndPlaced(s, true)
	h := s.history()
	h.Pictures = t.TempDir() + "/pictures"
	got := Check(h)
	require.Len(t, got, 1)
	path, named := strings.CutPrefix(got[0].Slice[len(got[0].Slice)-1], "picture: ")
	require.True(t, named)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(b), "spend")
}

func TestAnUnknownOutcomeExcusesOnlyAnOrderOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	uncertain(s, Unknown, "timeout")
	require.Empty(t, Check(s.history()))
	s = newStage(t)
	uncertain(s, Unknown, "timeout")
	s.final.Orders[0].Content, s.final.Orders[0].Items = "2xs", []Item{{"s", 2}}
	s.final.Products[0].Stock--
	require.Contains(t, broken(s.history()), "I4 a failed attempt left no order", "nobody has asked for two")
}
