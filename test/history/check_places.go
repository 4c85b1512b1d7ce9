package history

import (
	"cmp"
	"fmt"
	"slices"
)

// befores goes through the steps that a life has for itself, with everybody as
// they were before each.
func (l *lineage) befores(f func(m *moment, before map[string]*Member)) {
	at := map[string]*Member{}
	for _, m := range l.moments {
		if m.begins {
			clear(at)
		}
		if m.at >= l.from {
			f(m, at)
		}
		for _, v := range m.moves {
			at[v.member] = v.after
		}
	}
}

// overBy tells that the grant of a member has ended by time alone: no claim
// holds it, and it is past its expiry. A lease that is over holds nothing.
func (m *Member) overBy(now int64) bool {
	return m.Grant != nil && m.Grant.Expiry <= now && (m.Grant.Claim == "" || m.Claimed <= now)
}

// newPlace tells that the step gave the member a place that is not the one
// before: the first, or one after a stay that has ended.
func newPlace(m *moment, v move) bool {
	if v.after.kind() != waiting && !v.straightIn(m) {
		return false
	}
	switch v.before.kind() {
	case nowhere, ended:
		return true
	case ready, claimed:
		return m.Script == "enter" && v.before.overBy(m.Now) && v.before.Grant.Picked
	}
	return false
}

// I6, by the journal: whatever becomes of a member, the place stays the same
// until it ends.
func placeKeepsScore(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if !v.before.kind().placed() || !v.after.kind().placed() || newPlace(m, v) {
			return
		}
		if was, is := v.before.place(), v.after.place(); was != is {
			j.violate(fmt.Sprintf("%s stood in lane %d at %d, and now in lane %d at %d", v.member, was.Lane, was.Score, is.Lane, is.Score),
				j.step(m, v.member))
		}
	})
}

// I6, across a loss: a ticket's place is given back exactly where the rules of
// section 9 say, so that nobody has to enter anew who need not.
func restoredAsTicketSays(j *judge) {
	for _, l := range j.lines {
		l.befores(func(m *moment, before map[string]*Member) {
			if m.Script != "restore" || m.conf == nil || m.Word() != "OK" && m.Word() != "GONE" {
				return
			}
			name := m.arg(1)
			who := before[name]
			if who == nil {
				if !l.whole {
					return
				}
				who = unknown
			}
			want := m.mayRestore(who)
			after, moved := m.Members[name]
			switch {
			case want && m.Word() == "GONE":
				j.violate(fmt.Sprintf("%s has a good ticket for %s, and was not let back", name, m.arg(4)), j.step(m, name), j.floors(m))
			case !want && m.Word() == "OK":
				j.violate(fmt.Sprintf("%s was let back to %s, which the ticket does not prove", name, m.arg(4)), j.step(m, name), j.floors(m))
			case want && who.kind() == nowhere && (!moved || after.place() != Place{int(m.number(3)), m.number(4)}):
				j.violate(fmt.Sprintf("%s was let back to another place than the ticket's", name), j.step(m, name))
			case want && who.kind() == nowhere && m.number(4) < m.was.Watermarks[m.number(3)&3]:
				j.deviate("came back behind others who had been let through: " + j.step(m, name))
			}
		})
	}
}

// mayRestore is what restore should answer: true is OK.
func (m *moment) mayRestore(who *Member) bool {
	switch who.kind() {
	case waiting, processing, away:
		return true
	case ready, claimed:
		// One that nobody fetched sends its member back to the place.
		return !who.overBy(m.Now) || !who.Grant.Picked
	case ended:
		return false
	}
	of, lane, score, age := m.number(2), m.number(3), m.number(4), m.number(4)
	if m.conf.lots() && score < beyond {
		if m.conf.lottery {
			return false // entering again gives the same place
		}
		age = m.number(7)
	}
	if lane < 0 || lane > 3 || of < m.conf.restorableFrom || of > m.gen {
		return false
	}
	if of == m.gen {
		return score > max(m.was.Watermarks[lane], m.number(5)) && age > m.was.Tidied
	}
	return m.Now < m.conf.began+m.conf.forgetAfter && (score > m.conf.floors[lane] || m.arg(6) == "1")
}

func (j *judge) floors(m *moment) string {
	return fmt.Sprintf("generation %d, restorable from %d, began %s, floors %v, watermarks %v, outcomes forgotten up to %d", m.gen, m.conf.restorableFrom,
		j.redis(m.conf.began), m.conf.floors, m.was.Watermarks, m.was.Tidied)
}

// I7, as clients see it: who had a place before somebody else asked for one
// stands in front of them, whatever process each asked. Where a boost has been in
// force that is so within each lane, and within each sale: a boosted lane begins
// again with a sale, at the time of Redis less the boost.
func laterStandsBehind(j *judge) {
	if j.lottery() {
		return
	}
	if !j.ever(boosted) {
		j.judgeEnters(func(*call) bool { return true })
		return
	}
	type line struct {
		lane string
		sale int64
	}
	sales := j.sales()
	of := func(c *call) line { return line{c.Lane, sales[scored{c.Member, c.Score}]} }
	var lines []line
	for i := range j.calls {
		if c := &j.calls[i]; c.F == Enter && !slices.Contains(lines, of(c)) {
			lines = append(lines, of(c))
		}
	}
	for _, l := range lines {
		j.judgeEnters(func(c *call) bool { return of(c) == l })
	}
}

// scored is a place as clients know it.
type scored struct {
	member string
	score  int64
}

// sales says in which sale each place was given.
func (j *judge) sales() map[scored]int64 {
	sales := map[scored]int64{}
	j.eachMove(func(m *moment, v move) {
		if m.Script == "enter" && m.conf != nil && newPlace(m, v) {
			sales[scored{v.member, v.after.place().Score}] = m.conf.sale
		}
	})
	return sales
}

// judgeEnters compares the enters that are of one line.
func (j *judge) judgeEnters(of func(*call) bool) {
	var had, made []*call
	for i := range j.calls {
		c := &j.calls[i]
		if c.F == Enter && c.class == OK && c.Score > 0 && of(c) {
			had = append(had, c)
			if c.code == "201" {
				made = append(made, c)
			}
		}
	}
	slices.SortFunc(had, func(a, b *call) int { return cmp.Compare(a.over, b.over) })
	// Of those who were in by then, the one furthest behind; those of before each
	// loss apart, because the room may have forgotten the last scores that it gave.
	front := map[int]*call{}
	next := 0
	for _, b := range made { // in the order of their beginnings
		for ; next < len(had) && had[next].over < b.begun; next++ {
			after := j.lossesBy(had[next].over)
			if front[after] == nil || had[next].Score > front[after].Score {
				front[after] = had[next]
			}
		}
		for _, a := range front {
			if a.Score >= b.Score {
				j.excuse(j.lossDuring(a.over, b.over), fmt.Sprintf("%s entered before %s asked, and stands behind", a.Member, b.Member),
					j.call(a), j.call(b))
			}
		}
	}
}

// I7, by the journal: a new score is above all that the room has given, and is
// the time of Redis wherever that is. In a boosted lane it is above all that the
// lane has been given, and that time less the boost.
func newPlaceIsLast(j *judge) {
	j.eachMoment(func(m *moment) {
		if m.fresh || m.Mode == "drop" {
			return
		}
		if m.State.Last < m.was.Last {
			j.violate(fmt.Sprintf("the last score went back from %d to %d", m.was.Last, m.State.Last), j.step(m))
		}
		for _, v := range m.moves {
			if m.Script != "enter" || !newPlace(m, v) {
				continue
			}
			if m.byLot(v.before) {
				continue // see placeByLot
			}
			lane, is := v.after.place().Lane, v.after.place().Score
			want := m.given(lane)
			if is != want || m.State.Last != max(m.was.Last, want) || m.boosts(lane) && m.State.Lasts[lane&3] != want {
				j.violate(fmt.Sprintf("%s entered at %d; by the clock of Redis and the places given it is %d", v.member, is, want),
					j.step(m, v.member))
			}
		}
	})
}

// I7: when somebody is taken, nobody in the lane who has not gone silent stands
// in front of them.
func firstIsTakenFirst(j *judge) {
	j.walkCrowds(func(l *lineage, m *moment, q *crowd) {
		if m.Script != "reserve" || m.at < l.from || m.conf == nil {
			return
		}
		for lane, last := range m.taken() {
			ahead := q.ahead(lane, last.after.Held.Score, func(w *Member) bool { return m.silent(w.Seen) })
			if ahead != "" {
				j.violate(fmt.Sprintf("%s was taken while %s, not silent, stood in front", last.member, ahead),
					j.step(m, last.member), fmt.Sprintf("%s: %s, heard %s", ahead, j.member(q.at[ahead]), j.redis(q.at[ahead].Seen)))
			}
		}
	})
}

// taken is, per lane, the last of those whom the step took.
func (m *moment) taken() map[int]move {
	var out map[int]move
	for _, v := range m.moves {
		if v.after.Held == nil || v.before.Held != nil && v.before.Held.Step == v.after.Held.Step {
			continue
		}
		if out == nil {
			out = map[int]move{}
		}
		lane := v.after.Held.Lane
		if last, any := out[lane]; !any || last.after.Held.Score < v.after.Held.Score {
			out[lane] = v
		}
	}
	return out
}

// I7: only who had been listened for, and was not heard for the whole time in
// which the room could hear, goes AWAY from a lane.
func awayWasSilent(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if v.before.kind() != waiting || v.after.kind() != away || m.conf == nil {
			return
		}
		if !m.silent(v.before.Seen) {
			j.violate(fmt.Sprintf("%s went AWAY at %s; last heard %s, silence counts from %s, for %.0f s", v.member, j.redis(m.Now),
				j.redis(v.before.Seen), j.redis(m.since()), float64(m.conf.awayAfter)/second), j.step(m, v.member))
		}
	})
}
