package history

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// play is a history that one check refuses, and a neighbour of it that passes.
type play struct {
	check string
	name  string // where a check has several plays
	bad   func(s *stage)
	good  func(s *stage)
	also  []string // other checks that rightly see the same thing
	start []string // settings
}

// broken are the names of the checks that refuse a history, each once.
func broken(h History) []string {
	var names []string
	for _, v := range Check(h) {
		if !slices.Contains(names, v.Check) {
			names = append(names, v.Check)
		}
	}
	return names
}

func TestEachCheckRefusesWhatBreaksItsPromise(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, p := range plays() {
		have[p.check] = true
		t.Run(strings.TrimSpace(p.check+" "+p.name), func(t *testing.T) {
			t.Parallel()
			good := newStage(t, p.start...)
			p.good(good)
			for _, v := range Check(good.history()) {
				t.Errorf("nothing is wrong with this history: %s", v)
			}
			bad := newStage(t, p.start...)
			p.bad(bad)
			want := append([]string{p.check}, p.also...)
			got := broken(bad.history())
			if !slices.Contains(got, p.check) {
				t.Fatalf("the check has not seen what is wrong; refused by %q", got)
			}
			require.ElementsMatch(t, want, got, "%v", Check(bad.history()))
		})
	}
	for _, name := range Checks() {
		require.True(t, have[name], "the check %q has never been seen to fail", name)
	}
}

func plays() []play {
	return slices.Concat(orderPlays, repeatPlays, placePlays, lanePlays, countPlays, stockPlays, ratePlays, openPlays, grantPlays, arrowPlays,
		toldPlays, gatePlays, drawPlays)
}

// wholeWay is a history in which all goes well, and much happens.
func wholeWay(s *stage) {
	s.enters("ann")
	s.enters("bob")
	s.pass(time.Second)
	s.enters("cy")
	s.told("cy", Event{Status: "WAITING", Score: s.members["cy"].Score, Rank: 2, Total: 3})
	s.reserve("ann", "bob")
	s.issue("ann", "bob")
	s.pickup("ann")
	s.told("ann", Event{Status: "READY", Score: s.grant("ann").Place.Score, Grant: s.grant("ann").ID, Expires: s.grant("ann").Expiry})
	s.orders("ann", "o1", "k1")
	s.consume("ann", "o1")
	s.told("ann", Event{Status: "CONSUMED", OrderID: "o1"})
	s.pass(11 * time.Second)
	s.reap(map[string]Member{"bob": {Away: s.now, AwayPlace: &Place{0, s.grant("bob").Place.Score}}})
	s.reserve("cy")
	s.issue("cy")
	s.pickup("cy")
	s.pass(10 * time.Second)
	s.step("standing", []string{"bob"}, s.ok(), map[string]Member{"bob": inLane(s.members["bob"].AwayPlace.Score)})
	s.told("bob", Event{Status: "WAITING", Score: s.members["bob"].Score, Rank: 0, Total: 1})
	s.pass(11 * time.Second)
	s.reap(map[string]Member{"cy": s.gone("EXPIRED", s.grant("cy").ID, "")})
	s.enters("cy")
	s.leave("cy")
	s.leave("bob")
}

func TestAHistoryInWhichAllGoesWellPasses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	wholeWay(s)
	h := s.history()
	res := Examine(h)
	require.Empty(t, res.Violations)
	require.Empty(t, res.Deviations)
	require.Equal(t, len(s.steps), res.Steps)
	require.Equal(t, len(s.events)/2, res.Calls)
	require.Zero(t, res.Unknowns)
}
