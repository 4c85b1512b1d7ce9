package history

import (
	"fmt"
	"slices"
)

// I12: of steps, those of the newest term and leader alone act; a step of an
// older one is told so. A step that names another generation is told GEN.
func overtakenChangesNothing(j *judge) {
	for _, l := range j.lines {
		var term int64 // the newest that has reserved
		var leader string
		for _, m := range l.moments {
			if m.begins {
				term, leader = m.State.Term, m.State.Leader
			}
			scheduled := m.Script == "reserve" || m.Script == "issue"
			if scheduled && !m.fresh && m.at >= l.from && m.Err == "" {
				j.judgeFence(m, term, leader)
			}
			if m.Script == "reserve" && m.acted() && m.term() >= term {
				term, leader = m.term(), m.leader()
			}
		}
	}
}

// acted tells that a step was not refused.
func (m *moment) acted() bool {
	return !slices.Contains([]string{"", "STALE", "GEN", "INIT"}, m.Word())
}

func (j *judge) judgeFence(m *moment, term int64, leader string) {
	if m.was.Term > term {
		term, leader = m.was.Term, m.was.Leader
	}
	why, want := "", ""
	switch {
	case m.gen > 0 && m.number(0) != m.gen:
		why, want = fmt.Sprintf("of generation %d in generation %d", m.number(0), m.gen), "GEN"
	case m.term() < term:
		why, want = fmt.Sprintf("of term %d after term %d", m.term(), term), "STALE"
	case m.term() == term && leader != "" && m.leader() != leader:
		why, want = fmt.Sprintf("of %s in the term of %s", m.leader(), leader), "STALE"
	case m.Script == "reserve" && m.term() == m.was.Term && m.seq() < m.was.Seq:
		why, want = fmt.Sprintf("number %d after number %d", m.seq(), m.was.Seq), "STALE"
	default:
		return
	}
	moved := slices.ContainsFunc(m.moves, func(v move) bool { return !v.before.same(v.after) })
	if m.Word() != want || moved || m.State != m.was {
		j.violate(fmt.Sprintf("a step %s was taken", why), j.step(m, m.names()...), fmt.Sprintf("before %+v", m.was), fmt.Sprintf("after %+v", m.State))
	}
}

// I13: a claim that lives keeps all others out, until its own order releases or
// consumes it; claiming again under one name does not lengthen the lease.
func oneLiveClaim(j *judge) {
	j.eachMove(func(m *moment, v move) {
		held := v.before.claimID() != "" && v.before.Claimed > m.Now
		if !held || m.begins {
			return
		}
		if v.after.grantID() == v.before.grantID() && v.after.claimID() == v.before.claimID() {
			if v.after.Claimed > v.before.Claimed {
				j.violate(fmt.Sprintf("the lease of %s was lengthened", v.member), j.step(m, v.member))
			}
			return
		}
		if m.Script != "release" && m.Script != "consume" {
			j.violate(fmt.Sprintf("the live claim %s of %s was ended by %s", v.before.claimID(), v.member, m.Script), j.step(m, v.member))
		}
	})
	j.eachMoment(func(m *moment) {
		if m.Script != "claim" || m.Word() != "OK" {
			return
		}
		for _, v := range m.moves {
			if v.after.claimID() != m.arg(2) {
				j.violate(fmt.Sprintf("the claim %s was granted, and %s holds the grant", m.arg(2), v.after.claimID()), j.step(m, v.member))
			}
		}
	})
}

// I13: what names a grant, a claim or a place acts on that one, or on nothing.
func matchingIDs(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if v.before.same(v.after) || m.begins {
			return
		}
		if want := m.mistaken(v); want != "" {
			j.violate(fmt.Sprintf("%s changed %s, who has another %s", m.Script, v.member, want), j.step(m, v.member))
		}
	})
}

// mistaken says what of a step's ids is not the member's whom it changed.
func (m *moment) mistaken(v move) string {
	grant := v.before.grantID()
	if named, one := m.about(); one && named != v.member {
		return "name"
	}
	switch m.Script {
	case "release":
		if grant != m.arg(1) || v.before.claimID() != m.arg(2) {
			return "grant or claim"
		}
	case "consume":
		o := v.before.outcome()
		if m.consumes(v.member, grant) && grant != "" {
			return ""
		}
		if !m.consumes(v.member, o.Grant) || o.Word != "EXPIRED" && o.Word != "LEFT" {
			return "grant"
		}
	case "claim":
		if v.after.claimID() == m.arg(2) && grant != m.arg(1) {
			return "grant"
		}
	case "pickup":
		if v.after.Grant != nil && v.after.Grant.Claim == v.before.claimID() && grant != m.arg(1) && !equal(v.before.Grant, v.after.Grant) {
			return "grant"
		}
	case "leave":
		left := v.after.kind() == ended && v.after.outcome().Word == m.arg(2)
		if left && m.arg(1) != "" && v.before.place().Score != m.number(1) {
			return "place"
		}
	}
	return ""
}

// about is whom a script of one member is about.
func (m *moment) about() (member string, one bool) {
	switch m.Script {
	case "enter", "standing", "pickup", "claim", "release", "leave":
		return m.arg(0), true
	case "restore":
		return m.arg(1), true
	}
	return "", false
}

// consumes tells whether a step names the grant of a member.
func (m *moment) consumes(member, grant string) bool {
	for i := 0; i+2 < len(m.Args); i += 3 {
		if m.Args[i] == member && m.Args[i+1] == grant {
			return true
		}
	}
	return false
}

// I14: a claim that ends without an order leaves the grant as it was, or
// EXPIRED if that is over.
func grantGivenBack(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if v.before.kind() != claimed || v.before.Grant == nil || v.after.claimID() == v.before.claimID() || m.begins {
			return
		}
		expiry, over := v.before.Grant.Expiry, v.before.Grant.Expiry <= m.Now
		switch v.after.kind() {
		case ready:
			if g := v.after.Grant; v.after.grantID() != v.before.grantID() || v.after.Ready != g.Expiry || g.Expiry != expiry && !(m.pulls() && g.Expiry < expiry) {
				j.violate(fmt.Sprintf("%s got a grant back that does not end when it did", v.member), j.step(m, v.member))
			} else if m.Script == "release" && over {
				j.violate(fmt.Sprintf("%s got a grant back that is over", v.member), j.step(m, v.member))
			}
		case ended:
			if w := v.after.outcome().Word; w == "EXPIRED" && !over {
				j.violate(fmt.Sprintf("%s lost a grant that is not over", v.member), j.step(m, v.member))
			}
		}
	})
}

// I14: what is released is known to have failed. The claim has the id of the
// order that it could become.
func onlyFailuresReleased(j *judge) {
	j.eachMoment(func(m *moment) {
		if m.Script != "release" || m.Word() != "READY" && m.Word() != "EXPIRED" {
			return
		}
		if o := j.rows[m.arg(2)]; o != nil && !o.Void {
			j.violate(fmt.Sprintf("the claim of order %s was released, and the order is there", o.ID), j.step(m, m.arg(0)), row(o))
		}
	})
}

// I15: who has ended has a place again only by entering, and the outcome
// changes only when the order of that very grant turns up.
func endedStaysEnded(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if v.before.kind() != ended || m.begins {
			return
		}
		was, is := v.before.outcome(), v.after.outcome()
		switch to := v.after.kind(); {
		case to == ended && was != is:
			late := m.Script == "consume" && (was.Word == "EXPIRED" || was.Word == "LEFT") && is.Word == "CONSUMED" &&
				is.Grant == was.Grant && is.Grant != ""
			if !late {
				j.violate(fmt.Sprintf("%s had ended %s, and has now ended %s", v.member, was.Word, is.Word), j.step(m, v.member))
			}
		case (to == waiting || to == ready) && m.Script == "enter", to == ended, to == nowhere:
		default:
			j.violate(fmt.Sprintf("%s had ended %s, and is %s without entering", v.member, was.Word, to), j.step(m, v.member))
		}
	})
}

// I15: the id of a grant is never used again, nor for two.
func grantNeverComesBack(j *judge) {
	for _, l := range j.lines {
		holder := map[string]string{}
		over := map[string]*moment{}
		for _, m := range l.moments {
			for _, v := range m.moves {
				was, is := v.before.grantID(), v.after.grantID()
				if was == is {
					continue
				}
				if was != "" {
					delete(holder, was)
					over[was] = m
				}
				if is == "" {
					continue
				}
				if m.at >= l.from && over[is] != nil {
					j.violate(fmt.Sprintf("grant %s had ended, and %s has it", is, v.member), j.step(over[is], v.member), j.step(m, v.member))
				}
				if who := holder[is]; who != "" && m.at >= l.from {
					j.violate(fmt.Sprintf("%s and %s have the one grant %s", who, v.member, is), j.step(m, v.member))
				}
				holder[is] = v.member
			}
		}
	}
}

// I15: whoever was barred when a step took them is refused by that step.
func barredGetNothing(j *judge) {
	if len(j.Facts.Barred) == 0 {
		return
	}
	for _, l := range j.lines {
		taken := map[string]*moment{}
		for _, m := range l.moments {
			for _, v := range m.moves {
				if v.after.Held != nil && (v.before.Held == nil || *v.before.Held != *v.after.Held) {
					taken[v.member] = m
				}
				if m.at >= l.from && v.straightIn(m) && j.barredBeforeEntering(v.member, m) {
					j.violate(fmt.Sprintf("%s was barred before entering, and was let straight in", v.member), j.step(m, v.member))
					continue
				}
				if m.at < l.from || v.after.Grant == nil || v.before.grantID() == v.after.Grant.ID || taken[v.member] == nil || v.straightIn(m) {
					continue
				}
				if b := j.barredWhen(v.member, taken[v.member], m); b {
					j.violate(fmt.Sprintf("%s was barred before being taken, and got a grant", v.member), j.step(taken[v.member], v.member), j.step(m, v.member))
				}
			}
		}
	}
}

func (j *judge) barredWhen(member string, taken, granted *moment) bool {
	return slices.ContainsFunc(j.Facts.Barred, func(b Barring) bool {
		return b.Member == member && taken.surelyAfter(b.Mono) && (b.Until == 0 || granted.surelyBefore(b.Until))
	})
}

// I17: nothing is claimed once it is over.
func noClaimAfterExpiry(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if v.after.claimID() == "" || v.after.claimID() == v.before.claimID() {
			return
		}
		if m.Now >= v.after.Grant.Expiry {
			j.violate(fmt.Sprintf("%s claimed at %s a grant that was over at %s", v.member, j.redis(m.Now), j.redis(v.after.Grant.Expiry)), j.step(m, v.member))
		}
	})
}

// I17: a grant's end changes once, when it is picked up, and then no more; after
// a step of the clock back it may be brought closer. What a client was told of
// it stays true.
func expiryFixedOnce(j *judge) {
	j.eachMove(func(m *moment, v move) {
		was, is := v.before.Grant, v.after.Grant
		if was == nil || is == nil || was.ID != is.ID {
			return
		}
		switch {
		case was.Picked && !is.Picked:
			j.violate(fmt.Sprintf("the grant of %s was picked up, and is no more", v.member), j.step(m, v.member))
		case was.Expiry == is.Expiry:
		case m.Script == "pickup" && !was.Picked && (m.conf == nil || is.Expiry == (m.Now+m.conf.tokenTTL)/second*second):
		case m.Script == "pickup" && was.Picked && was.Key == "" && is.Expiry == was.Expiry/second*second:
			// Claimed with a token whose pick-up was lost: signed anew, in whole seconds.
		case m.pulls() && is.Expiry < was.Expiry:
		default:
			j.violate(fmt.Sprintf("the grant of %s ended at %s, and now ends at %s", v.member, j.redis(was.Expiry), j.redis(is.Expiry)), j.step(m, v.member))
		}
	})
	told := map[string]*call{}
	for i := range j.calls {
		c := &j.calls[i]
		if c.class != OK || c.Expires == 0 || c.Grant == "" {
			continue
		}
		if p := told[c.Grant]; p != nil && p.Expires != c.Expires {
			j.excuse(j.anyGap() || j.Facts.TimeSteps > 0, fmt.Sprintf("the token of grant %s was told to end at two times", c.Grant), j.call(p), j.call(c))
			continue
		}
		told[c.Grant] = c
	}
}
