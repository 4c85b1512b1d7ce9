package history

import (
	"fmt"
	"slices"
)

// arrow is a way to move. Between the two, one script may go several arrows of
// architecture.md, section 2: it settles the member first.
type arrow struct{ from, to kind }

// arrows are the ways that each script may move a member. What settle does is
// in settled, and open to each script that settles.
var arrows = map[string][]arrow{
	"enter": {{nowhere, waiting}, {ended, waiting}, {away, waiting}, {ready, waiting}, {claimed, waiting},
		{nowhere, ready}, {ended, ready}, {ready, ready}, {claimed, ready}},
	"standing": {{away, waiting}, {ready, waiting}},
	"restore":  {{nowhere, waiting}, {away, waiting}, {ready, waiting}},
	"reserve":  {{waiting, processing}, {waiting, away}, {processing, waiting}, {processing, processing}},
	"issue":    {{processing, ready}, {processing, ended}},
	"reap":     {{waiting, away}, {away, ended}, {ended, nowhere}},
	"claim":    {{ready, claimed}, {claimed, claimed}},
	"release":  {{claimed, ready}, {claimed, ended}},
	"consume":  {{ready, ended}, {claimed, ended}, {ended, ended}},
	"leave":    {{waiting, ended}, {away, ended}, {processing, ended}, {ready, ended}, {claimed, ended}},
}

// settled are the arrows that time alone decides.
var settled = []arrow{
	{processing, waiting}, {claimed, ready}, {claimed, ended}, {ready, ended}, {ready, away},
}

// settles are the scripts that do what time has decided.
var settles = []string{"enter", "standing", "restore", "reap", "pickup", "claim", "leave"}

// I19, by the journal: each move goes along arrows that its script has, and at
// the time that they ask for.
func arrowsKept(j *judge) {
	j.eachMove(func(m *moment, v move) {
		from, to := v.before.kind(), v.after.kind()
		if m.begins || m.fresh {
			return
		}
		a := arrow{from, to}
		own := slices.Contains(arrows[m.Script], a)
		bySettling := slices.Contains(settles, m.Script) && slices.Contains(settled, a)
		if from == to && !own {
			return // nothing has moved: what has changed is for other checks
		}
		if !own && !bySettling {
			j.violate(fmt.Sprintf("%s: %s moved %s to %s, and has no such arrow", v.member, m.Script, from, to), j.step(m, v.member))
			return
		}
		if why := m.untimely(a, v); why != "" {
			j.violate(fmt.Sprintf("%s: %s moved %s to %s, %s", v.member, m.Script, from, to, why), j.step(m, v.member))
		}
	})
}

// untimely says why a move, along an arrow that there is, was not due.
func (m *moment) untimely(a arrow, v move) string {
	b := v.before
	switch {
	case v.straightIn(m):
		return m.shut(v)
	case a == arrow{processing, waiting} && m.Script != "reserve" && b.Processing > m.Now:
		return "before its deadline"
	case a == arrow{processing, waiting} || a == arrow{processing, processing}:
		return m.takenBack(v)
	case a == arrow{claimed, ready} && m.Script != "release" && b.Claimed > m.Now:
		return "before the end of the lease"
	case a == arrow{ready, away} && (b.Grant == nil || b.Grant.Expiry > m.Now || b.Grant.Picked):
		return "though it was picked up, or not over"
	case a == arrow{ready, waiting} || a == arrow{claimed, waiting}:
		if !b.overBy(m.Now) {
			return "before it was over"
		}
	case (a.from == ready || a.from == claimed) && a.to == ended:
		return m.endedEarly(v)
	case a == arrow{processing, ended}:
		want := map[string]string{"issue": "EVICTED", "leave": m.arg(2)}[m.Script]
		if got := v.after.outcome().Word; got != want {
			return "and called it " + got
		}
	case a == arrow{away, ended} && m.Script == "reap":
		if m.conf != nil && max(b.Away, m.since())+m.conf.forgetAfter > m.Now || v.after.outcome().Word != "FORGOTTEN" {
			return "before the room may forget"
		}
	}
	return ""
}

// takenBack judges what reserve returns: of other terms, and of calls that its
// leader no longer keeps.
func (m *moment) takenBack(v move) string {
	if m.Script != "reserve" || v.before.Held == nil || v.after.Held != nil && *v.after.Held == *v.before.Held {
		return ""
	}
	mine := fmt.Sprintf("%d:%s:", m.term(), m.leader())
	step := v.before.Held.Step
	if len(step) > len(mine) && step[:len(mine)] == mine {
		var seq int64
		if _, err := fmt.Sscan(step[len(mine):], &seq); err == nil && seq >= m.number(4) {
			return fmt.Sprintf("which step %s still keeps", step)
		}
	}
	return ""
}

// endedEarly judges the end of a grant: EXPIRED when it is over and was picked
// up, CONSUMED and LEFT by the scripts that say so.
func (m *moment) endedEarly(v move) string {
	switch w := v.after.outcome().Word; {
	case w == "EXPIRED" && v.before.overBy(m.Now) && v.before.Grant.Picked:
		return ""
	case w == "EXPIRED" && m.Script == "release" && v.before.Grant != nil && v.before.Grant.Expiry <= m.Now:
		return ""
	case w == "CONSUMED" && m.Script == "consume":
		return ""
	case m.Script == "leave" && w == m.arg(2) && (v.before.Claimed == 0 || v.before.Claimed <= m.Now):
		return ""
	default:
		return "and called it " + w
	}
}
