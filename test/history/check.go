package history

import (
	"fmt"
	"strings"
)

// Violation is a promise that a history breaks.
type Violation struct {
	Promise string   // I1 ...
	Check   string   // which of Checks has found it
	Text    string   // who, when, what
	Slice   []string // the smallest part of the history that shows it, in order
}

// String is the violation with its slice, a line each.
func (v Violation) String() string {
	return v.Check + ": " + v.Text + "\n\t" + strings.Join(v.Slice, "\n\t")
}

// Deviation is what a loss of data explains, or what could not be judged. It
// is no violation, and not nothing.
type Deviation struct {
	Check string
	Text  string // the first of them
	Count int
}

// Result is the judgement of one history.
type Result struct {
	Violations []Violation
	Deviations []Deviation
	Calls      int // of clients
	Unknowns   int // calls of which nobody knows the outcome
	Steps      int // of scripts, each once
}

// rule is one check.
type rule struct {
	promise, name string
	run           func(*judge)
}

// rules are all checks, in the order in which they run.
var rules = []rule{
	{"I1", "one order per grant", oneOrderPerGrant},
	{"I2", "one order per member and sale", oneOrderPerMember},
	{"I3", "an order's grant was issued to its member", issuedToItsMember},
	{"I4", "what was acknowledged is there", acknowledgedIsThere},
	{"I4", "a failed attempt left no order", failedLeftNothing},
	{"I4", "a refused token never pays", refusedNeverPays},
	{"I4", "stock adds up", stockAddsUp},
	{"I5", "a repeat gets the same order", sameKeySameOrder},
	{"I5", "one of several executes", oneExecutes},
	{"I5", "a refusal because of an order has one", refusedBecauseOfAnOrder},
	{"I6", "a place keeps its score", placeKeepsScore},
	{"I6", "the score told is the place's", scoreTold},
	{"I6", "a lost place comes back as its ticket says", restoredAsTicketSays},
	{"I7", "who enters later stands behind", laterStandsBehind},
	{"I7", "a new place is behind all others", newPlaceIsLast},
	{"I7", "the first in line is taken first", firstIsTakenFirst},
	{"I7", "one line is served in its order", oneLineInOrder},
	{"I7", "lanes share by their weights", lanesShare},
	{"I7", "a lift is due, once a day and for half at most", liftsKept},
	{"I7", "nobody goes AWAY who was not silent", awayWasSilent},
	{"I7", "who is let straight in passes nobody", straightInPassesNobody},
	{"I7", "a place by lot is where the seed puts it", placeByLot},
	{"I7", "nobody is taken before the draw is listed", takenAfterTheList},
	{"I7", "the list has everybody who took part", listIsWhole},
	{"I8", "everybody is counted once", conservation},
	{"I8", "sizes are those of the members", sizesAgree},
	{"I8", "nothing moves but in a step", nothingMovesElsewhere},
	{"I8", "a loss has a cause", lossHasCause},
	{"I9", "one place each", onePlaceEach},
	{"I10", "no window is over its rate", windowsWithinRate},
	{"I10", "whoever grants charges the rate", issueCharges},
	{"I10", "nobody is taken while the room lets nobody through", takenOnlyWhileOpen},
	{"I10", "the batch in force is within the operator's", batchWithinOperators},
	{"I10", "by hand no more than was released", releasedByHand},
	{"I11", "no step goes above capacity", withinCapacity},
	{"I11", "no step goes above the stock", withinStock},
	{"I11", "who holds a grant finds a piece", holderFindsPiece},
	{"I12", "an overtaken step changes nothing", overtakenChangesNothing},
	{"I13", "one live claim per grant", oneLiveClaim},
	{"I13", "only matching ids act", matchingIDs},
	{"I13", "claims and orders are linearizable", linearizable},
	{"I14", "a claim that ends gives the grant back", grantGivenBack},
	{"I14", "only a definite failure is released", onlyFailuresReleased},
	{"I15", "ended stays ended", endedStaysEnded},
	{"I15", "a grant never comes back", grantNeverComesBack},
	{"I15", "the barred are granted nothing", barredGetNothing},
	{"I15", "who was let straight in has one turn", oneTurnStraightIn},
	{"I16", "one event per order", oneEventPerOrder},
	{"I16", "done is delivered", doneIsDelivered},
	{"I17", "no claim after expiry", noClaimAfterExpiry},
	{"I17", "an expiry is fixed once", expiryFixedOnce},
	{"I18", "the exact token alone", exactTokenAlone},
	{"I19", "status moves along the arrows", arrowsKept},
	{"I19", "what is told is where they are", toldIsTrue},
	{"I19", "rank rises only by those who came back", rankRises},
	{"I19", "the total is above the rank", totalAboveRank},
	{"I20", "no order without a claim", noOrderWithoutClaim},
}

// Checks lists the names of all checks; each begins with its promise.
func Checks() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.promise + " " + r.name
	}
	return names
}

// Check judges a history by every promise.
func Check(h History) []Violation { return Examine(h).Violations }

// Examine is Check, with what is no violation and what was looked at.
func Examine(h History) Result {
	j := newJudge(h)
	for _, r := range rules {
		j.rule, j.found = r, 0
		r.run(j)
		j.closeRule()
	}
	res := Result{Violations: j.violations, Deviations: j.deviations, Calls: len(j.calls)}
	for i := range j.calls {
		if j.calls[i].class == Unknown {
			res.Unknowns++
		}
	}
	for _, l := range j.lines {
		res.Steps += len(l.moments) - l.from
	}
	return res
}

// most is how many violations of one check are told in full.
const most = 5

func (j *judge) violate(text string, slice ...string) {
	j.found++
	if j.found <= most {
		j.violations = append(j.violations, Violation{j.rule.promise, j.rule.promise + " " + j.rule.name, text, slice})
	}
}

// closeRule says how many more there were.
func (j *judge) closeRule() {
	if more := j.found - most; more > 0 {
		last := &j.violations[len(j.violations)-1]
		last.Slice = append(last.Slice, fmt.Sprintf("(and %d more violations of this check)", more))
	}
}

// deviate counts what a loss explains.
func (j *judge) deviate(text string) {
	name := j.rule.promise + " " + j.rule.name
	for i := range j.deviations {
		if j.deviations[i].Check == name {
			j.deviations[i].Count++
			return
		}
	}
	j.deviations = append(j.deviations, Deviation{name, text, 1})
}
