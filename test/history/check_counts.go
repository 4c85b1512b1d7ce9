package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// outcomes are the counters of those who are no longer in a room.
var outcomes = []string{"consumed", "expired", "left", "forgotten", "evicted"}

// I8, by the room's own sizes and counters, and the change of each counter by
// who has moved.
func conservation(j *judge) {
	for _, l := range j.lines {
		var was map[string]int64
		for _, m := range l.moments {
			if m.begins {
				was = nil
			}
			if m.at >= l.from && m.Generation > 0 {
				j.conserve(m)
				if was != nil || m.begins {
					j.counted(m, was)
				}
			}
			was = m.Stats
		}
	}
}

func (j *judge) conserve(m *moment) {
	s := m.Sizes
	inside := s.Waiting + s.Away + s.Processing + s.Ready + s.Claimed
	var gone int64
	for _, name := range outcomes {
		gone += m.Stats[name]
	}
	if m.Stats["entered"] != inside+gone {
		j.violate(fmt.Sprintf("%d have entered; %d are inside and %d have ended", m.Stats["entered"], inside, gone),
			j.step(m, m.names()...), fmt.Sprintf("sizes %+v stats %v", s, m.Stats))
	}
}

// counted compares what a step added to the counters with whom it moved.
func (j *judge) counted(m *moment, was map[string]int64) {
	want := map[string]int64{}
	for _, v := range m.moves {
		if !m.line.whole && v.before == unknown {
			return // nobody knows where they came from
		}
		from, to := v.before.kind(), v.after.kind()
		if newPlace(m, v) {
			want["entered"]++
			if m.Script == "restore" {
				want["restored"]++
			}
			if from.placed() {
				want["expired"]++ // the stay before it has ended in the same step
			}
		}
		if to == ended && from != ended {
			want[strings.ToLower(v.after.outcome().Word)]++
		}
		if to == ended && from == ended && v.before.outcome() != v.after.outcome() {
			want[strings.ToLower(v.before.outcome().Word)]--
			want[strings.ToLower(v.after.outcome().Word)]++
		}
	}
	want["released"] = m.byHand()
	if m.off {
		want["passed_off"] = m.granted()
	}
	for _, name := range append([]string{"entered", "restored", "released", "passed_off"}, outcomes...) {
		if got := m.Stats[name] - was[name]; got != want[name] {
			j.violate(fmt.Sprintf("the counter %s rose by %d, and by who has moved it is %d", name, got, want[name]), j.step(m, m.names()...))
		}
	}
}

// names are whom the step touched, a dozen at most.
func (m *moment) names() []string {
	var out []string
	for _, v := range m.moves[:min(len(m.moves), 12)] {
		out = append(out, v.member)
	}
	return out
}

// sizesOf counts what one member adds to the sizes of the sets.
func sizesOf(m *Member) Sizes {
	one := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	return Sizes{
		Waiting: int64(len(m.Lanes)), Away: one(m.Away > 0), Processing: one(m.Processing > 0), Ready: one(m.Ready > 0),
		Claimed: one(m.Claimed > 0), Done: one(m.Done > 0),
	}
}

func (s Sizes) plus(o Sizes, sign int64) Sizes {
	return Sizes{
		s.Waiting + sign*o.Waiting, s.Away + sign*o.Away, s.Processing + sign*o.Processing, s.Ready + sign*o.Ready,
		s.Claimed + sign*o.Claimed, s.Done + sign*o.Done,
	}
}

// I8, by counting heads: the sets are as large as the members in them, and a
// step moves nobody but those it names.
func sizesAgree(j *judge) {
	for _, l := range j.lines {
		if !l.whole {
			continue
		}
		var have Sizes
		for _, m := range l.moments {
			if m.begins {
				have = Sizes{}
			}
			for _, v := range m.moves {
				before := v.before
				if m.begins {
					before = unknown
				}
				have = have.plus(sizesOf(before), -1).plus(sizesOf(v.after), 1)
			}
			if have != m.Sizes && m.at >= l.from {
				j.violate(fmt.Sprintf("the sets hold %+v, and by all who have moved it is %+v", m.Sizes, have), j.step(m, m.names()...))
				have = m.Sizes // told once
			}
		}
	}
}

// I8: what Redis holds at the end is what the last step has left.
func nothingMovesElsewhere(j *judge) {
	if len(j.lines) == 0 || !j.Facts.Quiesced || !j.Final.Redis.Begun {
		return
	}
	l := j.lines[len(j.lines)-1]
	if !l.whole || l.Lost {
		return
	}
	names := maps.Clone(j.Final.Redis.Members)
	for name, m := range l.members {
		if _, there := names[name]; !there {
			names[name] = *m
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		is := j.Final.Redis.Members[name]
		should := l.members[name]
		if should == nil {
			should = unknown
		}
		// Outcomes are forgotten at any time.
		a, b := stayOf(&is), stayOf(should)
		if (a.kind.placed() || b.kind.placed()) && !a.alike(b) {
			j.violate(fmt.Sprintf("%s is %s at the end, and no step has done that", name, j.member(&is)), "the last step left "+j.member(should))
		}
	}
}

// I8: the journal goes back only where the run has lost data, or risked it.
func lossHasCause(j *judge) {
	lost, made := 0, 0
	for _, l := range j.lines {
		if l.Lost {
			lost++
			j.deviate(fmt.Sprintf("life %d: of %d steps %d are left", l.index, len(l.Steps), l.Kept))
		}
	}
	for _, f := range j.Facts.Losses {
		if f.Kind != Flush {
			made++
		}
	}
	if lost > made {
		j.violate(fmt.Sprintf("the room has lost data %d times, and the run has made or risked %d losses", lost, made))
	}
}

// I9: whoever a step has touched is in one place, and in all keys of it.
func onePlaceEach(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if what := v.after.torn(); what != "" {
			j.violate(fmt.Sprintf("%s is %s", v.member, what), j.step(m, v.member))
		}
	})
}

// torn says what is wrong with a member's keys.
func (m *Member) torn() string {
	var in []string
	for _, p := range []struct {
		name string
		is   bool
	}{
		{"away", m.Away > 0}, {"processing", m.Processing > 0}, {"ready", m.Ready > 0}, {"claimed", m.Claimed > 0}, {"done", m.Done > 0},
	} {
		if p.is {
			in = append(in, p.name)
		}
	}
	for _, lane := range m.Lanes {
		in = append(in, fmt.Sprintf("lane%d", lane))
	}
	switch {
	case len(in) > 1:
		return "in " + strings.Join(in, " and in ") + " at once"
	case (m.Away > 0) != (m.AwayPlace != nil):
		return "half AWAY"
	case (m.Processing > 0) != (m.Held != nil):
		return "half processing"
	case (m.Ready > 0 || m.Claimed > 0) != (m.Grant != nil):
		return "half in possession of a grant"
	case m.Grant != nil && (m.Grant.Claim != "") != (m.Claimed > 0):
		return "half CLAIMED"
	case (m.Done > 0) != (m.Outcome != nil):
		return "half ended"
	}
	return ""
}

// I11: a step that raises what is inside leaves it within capacity, unless the
// room is off. Both are
// counted at the time of the step, as reserve counts them.
func withinCapacity(j *judge) {
	j.eachRise(func(m *moment, inside int64) {
		if m.conf.capacity > 0 && inside > m.conf.capacity && !m.conf.isOff() {
			j.violate(fmt.Sprintf("%d are let in at once; the capacity is %d", inside, m.conf.capacity), j.step(m, m.names()...))
		}
	})
}

// eachRise goes through the steps that raise what is inside, ready + claimed +
// processing, with how many are inside after them.
func (j *judge) eachRise(f func(m *moment, inside int64)) {
	for _, l := range j.lines {
		inside := map[string]*Member{}
		for _, m := range l.moments {
			if m.begins {
				clear(inside)
			}
			var more int64
			for _, v := range m.moves {
				more += v.after.live(m.Now) - v.before.live(m.Now)
				if v.after.Ready > 0 || v.after.Claimed > 0 || v.after.Processing > 0 {
					inside[v.member] = v.after
				} else {
					delete(inside, v.member)
				}
			}
			if more <= 0 || m.at < l.from || m.conf == nil {
				continue
			}
			var n int64
			for _, who := range inside {
				n += who.live(m.Now)
			}
			f(m, n)
		}
	}
}
