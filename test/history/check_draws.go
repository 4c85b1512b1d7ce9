package history

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/linekeeper/linekeeper/draw"
)

// beyond is above all scores that a draw or a lottery gives.
const beyond = draw.Beyond

// The states of a draw, as the room has them.
const (
	drawClosed = 2
	drawListed = 3
)

func (c *conf) lots() bool { return c.draw || c.lottery }

// byLot tells whether the place that a step gives to who was before goes by lot:
// in a draw until its end is seen, in a lottery unless the member has been let
// through since, or has given up a place behind those by lot.
func (m *moment) byLot(before *Member) bool {
	switch {
	case m.conf == nil:
		return false
	case m.conf.draw:
		return m.was.Draw < drawClosed && m.Now < m.conf.admitsAt
	case m.conf.lottery:
		left, _ := strconv.ParseInt(before.outcome().Order, 10, 64)
		return before.kind() == nowhere || before.kind() == ended && before.outcome().Grant == "" && left < beyond
	}
	return false
}

// lastPlace is the score of who comes in order of arrival.
func (m *moment) lastPlace() int64 {
	last := max(m.was.Last+1, m.Now)
	if m.conf != nil && m.conf.lots() {
		last = max(last, beyond)
	}
	return last
}

// lottery tells whether places went by lot at all times.
func (j *judge) lottery() bool {
	for _, l := range j.lines {
		if slices.ContainsFunc(l.moments, func(m *moment) bool { return m.conf != nil && m.conf.lottery }) {
			return true
		}
	}
	return false
}

// plans are the draws and lotteries of the room, by their sale.
func (j *judge) plans() map[int64]draw.Plan {
	out := map[int64]draw.Plan{}
	for _, d := range j.Final.Draws {
		p, err := d.plan(j.Room.Name)
		if err != nil {
			j.violate(fmt.Sprintf("sale %d has no seed: %v", d.Sale, err))
			continue
		}
		out[d.Sale] = p
	}
	return out
}

// I7, where places go by lot: each is one of those that the seed of the sale
// gives its member, and moves no other score.
func placeByLot(j *judge) {
	plans := j.plans()
	j.eachMove(func(m *moment, v move) {
		if m.fresh || m.Script != "enter" || !newPlace(m, v) || !m.byLot(v.before) {
			return
		}
		p, known := plans[m.conf.sale]
		if !known {
			j.violate(fmt.Sprintf("%s entered by lot in sale %d, which has no seed", v.member, m.conf.sale), j.step(m, v.member))
			return
		}
		at := v.after.place()
		if first := p.First(v.member, at.Lane); at.Score < first || at.Score >= first+draw.Slots || m.State.Last != m.was.Last {
			j.violate(fmt.Sprintf("%s entered at %d; the seed gives %d to %d", v.member, at.Score, first, first+draw.Slots-1), j.step(m, v.member))
		}
	})
}

// I7: until the list of a draw is kept, everybody who is in line stays there,
// unless they leave.
func takenAfterTheList(j *judge) {
	j.eachMove(func(m *moment, v move) {
		if m.fresh || m.begins || m.conf == nil || !m.conf.draw || m.was.Draw == drawListed || v.before.kind() != waiting {
			return
		}
		if to := v.after.kind(); to == processing || to == away {
			j.violate(fmt.Sprintf("%s was %s before the draw was listed", v.member, to), j.step(m, v.member))
		}
	})
}

// I7: whoever was in line by lot from the end of a draw until it was listed is in
// the list, once, at their place; and nobody is who was not in line in that time.
// It is judged where nothing was lost before: who came back late may be missing.
func listIsWhole(j *judge) {
	for _, d := range j.Final.Draws {
		if !d.Listed {
			continue
		}
		report, err := draw.Verify(strings.NewReader(d.List), draw.Expect{})
		if err != nil || !report.Valid {
			j.violate(fmt.Sprintf("the list of sale %d does not verify: %v %+v", d.Sale, err, report.Checks))
		}
	}
	if len(j.lines) == 0 {
		return
	}
	l := j.lines[0]
	for i, m := range l.moments {
		if m.Script == "listed" && m.State.Draw == drawListed && m.was.Draw == drawClosed && l.whole && j.lossesBy(m.Before) == 0 {
			j.judgeList(l.moments[:i+1])
		}
	}
}

// judgeList judges the list that the last of these steps speaks of.
func (j *judge) judgeList(steps []*moment) {
	last := steps[len(steps)-1]
	plan, known := j.plans()[last.conf.sale]
	at := slices.IndexFunc(j.Final.Draws, func(d DrawRow) bool { return d.Sale == last.conf.sale })
	if !known || !j.Final.Draws[at].Listed {
		j.violate(fmt.Sprintf("sale %d was told to be listed, and has no list", last.conf.sale), j.step(last))
		return
	}
	line, stayed, seen := map[string]Place{}, map[string]Place(nil), map[string]bool{}
	for _, m := range steps {
		if m.begins {
			clear(line)
			stayed, seen = nil, map[string]bool{}
		}
		// The first step that sees the end gives no place by lot any more.
		if stayed == nil && m.State.Draw >= drawClosed {
			stayed = maps.Clone(line)
			for name, place := range line {
				seen[listed(plan, name, place)] = true
			}
		}
		for _, v := range m.moves {
			place := v.after.place()
			inLine := v.after.kind() == waiting && place.Score < beyond
			if was, there := stayed[v.member]; there && (!inLine || place != was) {
				delete(stayed, v.member)
			}
			delete(line, v.member)
			if inLine {
				line[v.member] = place
				seen[listed(plan, v.member, place)] = true
			}
		}
	}
	list := j.Final.Draws[at].List
	for name, place := range stayed {
		if strings.Count(list, listed(plan, name, place)) != 1 {
			j.violate(fmt.Sprintf("%s was in line at %d from the end of the draw on, and is not in the list", name, place.Score), j.step(last))
		}
	}
	for line := range strings.Lines(list) {
		found, _, entrant := strings.Cut(line, `,"rank":`)
		if entrant && !seen[found] {
			j.violate("the list has somebody who was not in line at that place when the draw ended: "+found, j.step(last))
		}
	}
}

// listed is how the line of a member begins.
func listed(p draw.Plan, member string, at Place) string {
	return fmt.Sprintf(`{"entrant":%q,"lane":%d,"score":%d`, p.Entrant(member).String(), at.Lane, at.Score)
}
