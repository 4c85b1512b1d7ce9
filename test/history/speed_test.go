package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// longHistory is one of so many rounds, in each of which a member goes the
// whole way, told of each step of it.
func longHistory(t testing.TB, rounds int) History {
	s := newStage(t)
	for i := range rounds {
		name, id := fmt.Sprintf("m%d", i%5000), fmt.Sprintf("o%d", i)
		s.enters(name)
		s.told(name, Event{Status: "WAITING", Score: s.members[name].Score, Rank: 0, Total: 1})
		s.reserve(name)
		s.issue(name)
		s.pickup(name)
		s.orders(name, id, "")
		s.consume(name, id)
		s.told(name, Event{Status: "CONSUMED", OrderID: id})
		s.pass(time.Second / 2)
	}
	s.facts.Stock = nil
	return s.history()
}

// The product of events and steps must not show: a run of a minute has a
// hundred thousand of both.
func TestALongHistoryIsJudgedInSeconds(t *testing.T) {
	h := longHistory(t, 7_200)
	require.Greater(t, len(h.Events)+len(h.Journal[0].Steps), 100_000)
	begun := time.Now()
	res := Examine(h)
	took := time.Since(begun)
	require.Empty(t, res.Violations)
	require.Less(t, took, 10*time.Second, "a judgement in seconds takes a third of that, on one core")
	t.Logf("%d calls and %d steps in %v", res.Calls, res.Steps, took)
}

func BenchmarkExamine(b *testing.B) {
	h := longHistory(b, 7_200)
	for b.Loop() {
		Examine(h)
	}
}
