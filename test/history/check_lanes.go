package history

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// sharing is how the lanes of a room share what is let through.
type sharing struct {
	lanes   int64
	oneLine bool
	weights [4]int64
	boosts  [4]int64 // microseconds
	maxWait int64    // the same; 0: nobody is lifted
}

// boosts tells whether those who enter a lane overtake others.
func (m *moment) boosts(lane int) bool {
	return m.conf != nil && m.conf.sharing.oneLine && m.conf.sharing.boosts[lane&3] > 0
}

// given is the score that a new place in a lane is to have.
func (m *moment) given(lane int) int64 {
	if m.boosts(lane) {
		return max(m.was.Lasts[lane&3]+1, m.Now-m.conf.sharing.boosts[lane&3])
	}
	return m.lastPlace()
}

// ever tells whether settings of that kind were in force at any time.
func (j *judge) ever(is func(s *sharing) bool) bool {
	var last *conf
	for _, l := range j.lines {
		for _, m := range l.moments {
			if m.conf != nil && m.conf != last && is(&m.conf.sharing) {
				return true
			}
			last = m.conf
		}
	}
	return false
}

func boosted(s *sharing) bool   { return s.oneLine && s.boosts != [4]int64{} }
func oneLine(s *sharing) bool   { return s.oneLine }
func manyLanes(s *sharing) bool { return s.lanes > 1 }

// took is what one reserve took anew, in the order in which it did.
type took struct {
	lifted []move // before the lanes shared
	shared []move
}

// took reads the order from the reply: the first so many are lifts.
func (m *moment) took() (t took) {
	if m.Script != "reserve" {
		return t
	}
	byName := map[string]move{}
	for _, v := range m.moves {
		if v.after.Held != nil && (v.before.Held == nil || v.before.Held.Step != v.after.Held.Step) {
			byName[v.member] = v
		}
	}
	lifts, _ := m.value("lifts").(int64)
	list, _ := m.value("taken").([]any)
	for i := 0; i+2 < len(list); i += 3 {
		name, _ := list[i].(string)
		v, ok := byName[name]
		switch {
		case !ok: // told again, taken before
		case int64(i/3) < lifts:
			t.lifted = append(t.lifted, v)
		default:
			t.shared = append(t.shared, v)
		}
	}
	return t
}

// walkCrowds goes through all steps of each life with everybody who waits after
// them; f is told of a new crowd by begins.
func (j *judge) walkCrowds(f func(l *lineage, m *moment, q *crowd)) {
	for _, l := range j.lines {
		q := newCrowd()
		for _, m := range l.moments {
			if m.begins {
				q = newCrowd()
			}
			for _, v := range m.moves {
				q.put(v.member, v.after)
			}
			f(l, m, q)
		}
	}
}

// I7, where lanes are one line: when somebody is taken in turn, nobody in any lane
// who has not gone silent stands in front of them. Of equal scores the lower lane
// is in front.
func oneLineInOrder(j *judge) {
	if !j.ever(oneLine) {
		return
	}
	j.walkCrowds(func(l *lineage, m *moment, q *crowd) {
		if m.Script != "reserve" || m.at < l.from || m.conf == nil || !m.conf.sharing.oneLine {
			return
		}
		shared := m.took().shared
		if len(shared) == 0 {
			return
		}
		last := slices.MaxFunc(shared, func(a, b move) int { return a.after.Held.compare(b.after.Held.Place) })
		for lane := range 4 {
			below := last.after.Held.Score
			if lane < last.after.Held.Lane {
				below++
			}
			if ahead := q.ahead(lane, below, func(w *Member) bool { return m.silent(w.Seen) }); ahead != "" {
				j.violate(fmt.Sprintf("%s was taken while %s, not silent, stood in front in the line of all lanes", last.member, ahead),
					j.step(m, last.member), fmt.Sprintf("%s: %s", ahead, j.member(q.at[ahead])))
			}
		}
	})
}

// compare orders places in one line.
func (p Place) compare(o Place) int {
	switch {
	case p.Score < o.Score, p.Score == o.Score && p.Lane < o.Lane:
		return -1
	case p == o:
		return 0
	}
	return 1
}

// shares counts, for each two lanes, what each was given since both have had
// somebody waiting: of[a][b] is what a was, beside b.
type shares struct{ of [4][4]int64 }

// idle begins the count anew for a lane that has nobody left.
func (s *shares) idle(lane int) {
	for other := range 4 {
		s.of[lane][other], s.of[other][lane] = 0, 0
	}
}

// I7, where lanes share by weight: over any stretch in which two lanes have
// somebody waiting, what they are given for each unit of weight differs by a turn
// of each at most. So an idle lane has saved no credit, and no lane starves. What
// is counted is who is taken in turn: lifts come before the lanes share.
func lanesShare(j *judge) {
	if !j.ever(manyLanes) {
		return
	}
	var s shares
	var rule *sharing
	var at *lineage
	j.walkCrowds(func(l *lineage, m *moment, q *crowd) {
		now := m.confAfter()
		if at != l || m.begins || now == nil || rule == nil || *rule != now.sharing {
			s = shares{}
		}
		if at, rule = l, nil; now != nil {
			rule = &now.sharing
		}
		if m.Script != "reserve" || m.conf == nil || rule.oneLine {
			return
		}
		for _, v := range m.took().shared {
			for other := range 4 {
				s.of[v.after.Held.Lane&3][other]++
			}
		}
		for lane := range 4 {
			if q.ahead(lane, math.MaxInt64, func(w *Member) bool { return m.silent(w.Seen) }) == "" {
				s.idle(lane)
			}
		}
		if m.at >= l.from {
			j.judgeShares(m, &s, rule)
		}
	})
}

func (j *judge) judgeShares(m *moment, s *shares, rule *sharing) {
	for a := range 4 {
		for b := range a {
			wa, wb := float64(rule.weights[a]), float64(rule.weights[b])
			if off := float64(s.of[a][b])/wa - float64(s.of[b][a])/wb; math.Abs(off) > 1/wa+1/wb+1e-9 {
				j.violate(fmt.Sprintf("with somebody waiting in both, lane %d of weight %.0f was given %d and lane %d of weight %.0f %d",
					b, wb, s.of[b][a], a, wa, s.of[a][b]), j.step(m))
				s.idle(a) // each fault once
			}
		}
	}
}

// I7: whom the longest-wait promise takes before the lanes share is of the first
// lane, has waited for longer than is promised, and was not lifted out of another
// place on the same day of the room; and they are half at most of what the call
// may take, and one of one.
func liftsKept(j *judge) {
	for _, l := range j.lines {
		days := map[string]string{}
		for _, m := range l.moments {
			if m.begins || m.accepted() { // a day may come again with the clock
				clear(days)
			}
			if m.Script == "reserve" && m.conf != nil {
				j.judgeLifts(l, m, days)
			}
		}
	}
}

func (j *judge) judgeLifts(l *lineage, m *moment, days map[string]string) {
	fresh, _ := m.value("lifted").([]any)
	day := time.UnixMicro(m.Now).UTC().Add(time.Duration(m.number(7)) * time.Second).Format(time.DateOnly)
	wrong := func(format string, args ...any) {
		if m.at >= l.from {
			j.violate(fmt.Sprintf(format, args...), j.step(m))
		}
	}
	for _, f := range fresh {
		name, _ := f.(string)
		if days[name] == day {
			wrong("%s was lifted twice on %s", name, day)
		}
		days[name] = day
	}
	lifted := m.took().lifted
	for _, v := range lifted {
		if waited := m.Now - v.after.Held.Score; m.conf.sharing.maxWait == 0 || v.after.Held.Lane != 0 || waited <= m.conf.sharing.maxWait {
			wrong("%s was lifted out of lane %d after %.1f s; promised is %.1f s", v.member, v.after.Held.Lane, float64(waited)/second,
				float64(m.conf.sharing.maxWait)/second)
		}
	}
	if may := max(m.mayTake()/2, 1); int64(len(lifted)) > may {
		wrong("%d were lifted by a call that may lift %d", len(lifted), may)
	}
}

// mayTake is how many a reserve may take at most: a batch, and what is left of
// those released by hand; in a room that is off everybody in line.
func (m *moment) mayTake() int64 {
	n := min(m.number(5), m.conf.batch) + max(m.conf.released-m.was.ReleasedUsed, 0)
	if m.conf.isOff() {
		n = m.Sizes.Waiting
		for _, v := range m.moves {
			if v.before.kind() == waiting && v.after.kind() != waiting {
				n++
			}
		}
	}
	return min(n, m.number(6))
}
