package history

import (
	"fmt"
	"math"
)

// isOff tells settings under which everybody passes.
func (c *conf) isOff() bool { return c.off && !c.paused && !c.draining }

// noteOff tells whether the step lets people through whom the rate does not
// concern, and keeps, in free, the steps that have taken such.
func (m *moment) noteOff(free map[string]bool) {
	off := m.conf != nil && m.conf.isOff()
	switch m.Script {
	case "enter":
		m.off = off
	case "reserve":
		for _, v := range m.moves {
			if v.after.Held != nil && (v.before.Held == nil || v.before.Held.Step != v.after.Held.Step) {
				free[v.after.Held.Step] = off
			}
		}
	case "issue":
		m.off = free[fmt.Sprintf("%d:%s:%d", m.term(), m.leader(), m.seq())]
	}
}

// byHand is how many of those whom the step let through were released by hand.
func (m *moment) byHand() int64 {
	if m.Script != "issue" || m.off {
		return 0
	}
	return min(max(m.State.ReleasedUsed-m.was.ReleasedUsed, 0), m.granted())
}

// byRate is how many grants of the step the rate has to bear.
func (m *moment) byRate() int64 {
	if m.off {
		return 0
	}
	return m.granted() - m.byHand()
}

// straightIn tells a member to whom enter has given a grant.
func (v move) straightIn(m *moment) bool {
	return m.Script == "enter" && v.after.Grant != nil && v.after.grantID() != v.before.grantID()
}

// I7: enter gives a grant only while nobody stands in line, nor has been taken
// from it and may come back.
func straightInPassesNobody(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if v.straightIn(m) && m.Sizes.Waiting+m.Sizes.Processing > 0 {
			j.violate(fmt.Sprintf("%s was let straight in while %d waited and %d were being let through", v.member, m.Sizes.Waiting, m.Sizes.Processing),
				j.step(m, v.member))
		}
	})
}

// shut says why enter may not let somebody straight in.
func (m *moment) shut(v move) string {
	c := m.conf
	over := v.before.kind() == nowhere || v.before.kind() == ended || v.before.overBy(m.Now) && v.before.Grant.Picked
	switch {
	case !over:
		return "though the place before was not over"
	case c == nil || c.isOff():
		return ""
	case !c.direct:
		return "in a room that lets nobody straight in"
	case c.paused || c.draining:
		return "while paused or draining"
	case m.Now < max(c.opensAt, c.admitsAt) || c.closesAt > 0 && m.Now >= c.closesAt:
		return "outside its times"
	case m.gen > c.restorableFrom && m.Now < c.began+c.settle:
		return "while lost places come back"
	}
	return ""
}

// I10: what is let through beyond the rate has been released by an operator, and
// each release counts once. What is left of one lapses only with an empty line.
func releasedByHand(j *judge) {
	for _, l := range j.lines {
		var n int64
		for _, m := range l.moments {
			used := m.State.ReleasedUsed - m.was.ReleasedUsed
			if m.fresh || m.begins {
				continue
			}
			n += max(m.Stats["released"]-l.statsBefore(m)["released"], m.byHand())
			if m.at < l.from || m.conf == nil {
				continue
			}
			lapses := m.Script == "reserve" && m.Sizes.Waiting+m.Sizes.Processing == 0
			switch {
			case used == 0:
			case m.State.ReleasedUsed > m.conf.released:
				j.violate(fmt.Sprintf("%d have gone by hand; %d were released", m.State.ReleasedUsed, m.conf.released), j.step(m))
			case used < 0 || m.Script != "issue" && !lapses || m.Script == "issue" && used > m.granted():
				j.violate(fmt.Sprintf("%s took %d off those released", m.Script, used), j.step(m))
			}
		}
		if n > j.Facts.Released {
			j.violate(fmt.Sprintf("%d were let through by hand, and operators have released %d", n, j.Facts.Released))
		}
	}
}

// statsBefore are the counters before a step.
func (l *lineage) statsBefore(m *moment) map[string]int64 {
	if m.at == 0 {
		return nil
	}
	return l.moments[m.at-1].Stats
}

// turn is a place that was let straight in.
type turn struct {
	member string
	Place
}

// I15: whoever was let straight in, and has fetched the grant, gets that place
// back after a loss only if the token of it is worth nothing any more. Postgres
// has never heard of the place, so no floor stands in the way.
func oneTurnStraightIn(j *judge) {
	grants, fetched := map[string]bool{}, map[turn]*moment{}
	j.eachMove(func(m *moment, v move) {
		if v.straightIn(m) {
			grants[v.after.Grant.ID] = true
		}
		if g := v.after.Grant; g != nil && g.Picked && grants[g.ID] {
			fetched[turn{v.member, g.Place}] = m
		}
		if k := v.after.kind(); m.Script != "restore" && (k == waiting || k == away) {
			delete(fetched, turn{v.member, v.after.place()}) // the room has forgotten that it was fetched
		}
		if m.Script != "restore" || v.after.kind() != waiting || v.before.kind().placed() || m.arg(6) == "1" {
			return
		}
		if before := fetched[turn{v.member, v.after.place()}]; before != nil {
			j.violate(fmt.Sprintf("%s had been let straight in, and has the place a second time", v.member), j.step(before, v.member), j.step(m, v.member))
		}
	})
}

// barredBeforeEntering tells that the member was barred before any call was made
// that can have taken the step: who is let straight in is asked about first.
func (j *judge) barredBeforeEntering(member string, m *moment) bool {
	first := int64(math.MaxInt64)
	for i := range j.calls {
		if c := &j.calls[i]; c.F == Enter && c.Member == member && (m.Before == 0 || c.begun <= m.Before) && c.effect >= m.After {
			first = min(first, c.begun)
		}
	}
	if first == math.MaxInt64 {
		return false // nobody has recorded it
	}
	for _, b := range j.Facts.Barred {
		if b.Member == member && b.Mono < first && (b.Until == 0 || m.surelyBefore(b.Until)) {
			return true
		}
	}
	return false
}
