package history

import (
	"fmt"
	"slices"
)

// stay is a time in which nothing about a member changed that an answer would
// show, between two times of Now: it began after from and was over before to.
type stay struct {
	kind     kind
	score    int64
	grant    string
	outcome  Outcome
	from, to int64
}

func stayOf(m *Member) stay {
	s := stay{kind: m.kind(), score: m.place().Score, grant: m.grantID()}
	if s.kind == ended {
		s.outcome = m.outcome()
	}
	return s
}

func (s stay) alike(o stay) bool {
	return s.kind == o.kind && s.score == o.score && s.grant == o.grant && s.outcome == o.outcome
}

// whereabouts are the stays of all members, in order, over all lives: what a
// loss undid was true until then.
func (j *judge) whereabouts() map[string][]stay {
	if j.stays != nil {
		return j.stays
	}
	j.stays = map[string][]stay{}
	for i, l := range j.lines {
		if i > 0 {
			j.comeBack(j.lines[i-1], l)
		}
		for _, m := range l.judged() {
			if m.begins {
				for name := range j.stays {
					j.stand(name, unknown, m.After, m.Before)
				}
			}
			for _, v := range m.moves {
				j.stand(v.member, v.after, m.After, m.Before)
			}
		}
	}
	return j.stays
}

// stand notes that a member is somewhere else from a step on.
func (j *judge) stand(name string, m *Member, after, before int64) {
	list := j.stays[name]
	if list == nil {
		list = []stay{{kind: nowhere, to: never}}
	}
	if s := stayOf(m); !list[len(list)-1].alike(s) {
		if before > 0 {
			list[len(list)-1].to = before
		}
		s.from, s.to = after, never
		list = append(list, s)
	}
	j.stays[name] = list
}

// comeBack puts everybody where the loss has left them: where the steps that
// both lives share had put them.
func (j *judge) comeBack(was, is *lineage) {
	for name := range was.members {
		before := is.atStart(name)
		j.stand(name, before, was.Life.Read, was.Noticed)
	}
}

// atStart is where a member was when the life began to differ from the one
// before it.
func (l *lineage) atStart(name string) *Member {
	if l.start == nil {
		l.start = map[string]*Member{}
		for _, m := range l.moments[:l.from] {
			if m.begins {
				clear(l.start)
			}
			for _, v := range m.moves {
				l.start[v.member] = v.after
			}
		}
	}
	if m := l.start[name]; m != nil {
		return m
	}
	return unknown
}

// fits tells whether some stay of the member lies within the call and is as it
// was told.
func (j *judge) fits(c *call, as func(stay) bool) bool {
	list := j.whereabouts()[c.Member]
	if list == nil {
		return as(stay{kind: nowhere})
	}
	for _, s := range list {
		if s.from <= c.over && s.to >= c.begun && as(s) {
			return true
		}
	}
	return false
}

// judgeTold compares an answer with the journal.
func (j *judge) judgeTold(c *call, what string, as func(stay) bool) {
	if j.fits(c, as) {
		return
	}
	var slice []string
	for _, s := range j.whereabouts()[c.Member] {
		if s.from <= c.over && s.to >= c.begun {
			slice = append(slice, fmt.Sprintf("%s was %s at %d grant %q outcome %v", c.Member, s.kind, s.score, s.grant, s.outcome))
		}
	}
	j.excuse(j.lossDuring(c.begun, c.over), fmt.Sprintf("%s was told %s", c.Member, what), append([]string{j.call(c)}, slice...)...)
}

// I6, as clients see it.
func scoreTold(j *judge) {
	if !j.journaled() {
		return
	}
	for i := range j.calls {
		c := &j.calls[i]
		if c.told() && c.Score > 0 {
			j.judgeTold(c, fmt.Sprintf("a place at %d", c.Score), func(s stay) bool { return s.kind.placed() && s.score == c.Score })
		}
	}
}

// I19, as clients see it: the status told is the state in which the member was
// at some moment of the call.
func toldIsTrue(j *judge) {
	if !j.journaled() {
		return
	}
	for i := range j.calls {
		c := &j.calls[i]
		if !c.told() || j.toldByPostgres(c) {
			continue
		}
		what := c.Status
		if c.Outcome != "" {
			what += " " + c.Outcome
		}
		j.judgeTold(c, what, c.agrees)
	}
}

// agrees tells whether an answer is what a member in a stay is told.
func (c *call) agrees(s stay) bool {
	switch c.Status {
	case "WAITING":
		return s.kind == waiting || s.kind == processing || s.kind == away
	case "READY":
		return s.kind == ready && (c.Grant == "" || c.Grant == s.grant)
	case "CLAIMED":
		return s.kind == claimed && (c.Grant == "" || c.Grant == s.grant)
	case "CONSUMED":
		return s.kind == ended && s.outcome.Word == "CONSUMED" && (c.OrderID == "" || c.OrderID == s.outcome.Order)
	case "NOT_ENTERED":
		return s.kind == nowhere && c.Outcome == "" || s.kind == ended && s.outcome.Word == c.Outcome
	}
	return false
}

// toldByPostgres tells answers about members whom Redis does not know: the order
// that a lost token has paid for, the bar of an operator, the end of a sale.
func (j *judge) toldByPostgres(c *call) bool {
	switch {
	case c.F == Enter && c.Status == "NOT_ENTERED" && c.Outcome == "":
		return true // a ticket first, of a room that wants one: Redis was not asked
	case c.Status == "CONSUMED":
		o := j.rows[c.OrderID]
		return j.anyGap() && o != nil && !o.Void && o.Member == c.Member
	case c.Outcome == "EVICTED":
		return j.barred(c.Member)
	case c.Outcome == "RESET":
		return j.resets()
	}
	return false
}

// barred tells whether an operator has ever excluded the member.
func (j *judge) barred(member string) bool {
	for _, b := range j.Facts.Barred {
		if b.Member == member {
			return true
		}
	}
	for _, e := range j.Final.Exclusions {
		if e.Member == member {
			return true
		}
	}
	return false
}

// resets tells whether a sale has ended in the history.
func (j *judge) resets() bool {
	for _, f := range j.Facts.Losses {
		if f.Kind == Flush {
			return true
		}
	}
	return false
}

// I19: somebody's rank rises by no more than came back to places in front.
func rankRises(j *judge) {
	back := j.comebacks()
	last := map[string]*call{}
	for i := range j.calls {
		c := &j.calls[i]
		if !c.told() || c.Status != "WAITING" || c.Rank < 0 || c.Score == 0 {
			continue
		}
		p := last[c.Member]
		switch {
		case p == nil || p.Score != c.Score || p.over <= c.begun && c.Rank <= p.Rank:
			last[c.Member] = c
			continue
		case p.over >= c.begun: // at once: there is no order between the two
			continue
		}
		since := j.shownFirst(p)
		var came int64
		for _, b := range back {
			if b.aheadOf(c.Member, c.Score) && b.after <= c.over && b.before >= since {
				came++
			}
		}
		if c.Rank-p.Rank > came && !j.liftedAt(p) {
			j.excuse(j.lossDuring(p.begun, c.over),
				fmt.Sprintf("the rank of %s rose by %d, and %d came back in front", c.Member, c.Rank-p.Rank, came), j.call(p), j.call(c))
		}
		last[c.Member] = c
	}
}

// liftedAt tells whether an answer may be of somebody whom the longest wait had
// taken out of one line, past others in front: whoever is returned from there
// stands behind them again.
func (j *judge) liftedAt(c *call) bool {
	lifts := func(s *sharing) bool { return s.oneLine && s.maxWait > 0 }
	return j.ever(lifts) && slices.ContainsFunc(j.whereabouts()[c.Member], func(s stay) bool {
		return s.kind == processing && s.from <= c.over && s.to >= c.begun
	})
}

// shownFirst is from when on an answer hid who came back: a member who is
// processing is told rank 0, whoever is in front by then.
func (j *judge) shownFirst(c *call) int64 {
	since := c.begun
	for _, s := range j.whereabouts()[c.Member] {
		if s.kind == processing && s.from <= c.over && s.to >= c.begun {
			since = min(since, s.from)
		}
	}
	return since
}

// comeback is a member who got an old place back, or a new one ahead of others by
// a boost, between two times of Now.
type comeback struct {
	member               string
	score, after, before int64
}

// aheadOf tells whether it stands before another place. After a loss while the
// clock of Redis was set back, a new place can have the score of an old one;
// Redis orders these by the member.
func (b comeback) aheadOf(member string, score int64) bool {
	return b.score < score || b.score == score && b.member < member
}

func (j *judge) comebacks() []comeback {
	var out []comeback
	j.eachMove(func(m *moment, v move) {
		if v.after.kind() != waiting || v.before.kind() == waiting || m.Script == "enter" && newPlace(m, v) && !m.boosts(v.after.place().Lane) && !(m.conf != nil && m.conf.lottery) {
			return
		}
		b := comeback{v.member, v.after.Score, m.After, m.Before}
		if b.before == 0 {
			b.before = never
		}
		out = append(out, b)
	})
	return out
}

// I19: the number shown as waiting counts the one who is told, and all in front.
func totalAboveRank(j *judge) {
	for i := range j.calls {
		c := &j.calls[i]
		if c.told() && c.Status == "WAITING" && c.Rank >= 0 && c.Total < c.Rank+1 {
			j.violate(fmt.Sprintf("%s has rank %d of %d", c.Member, c.Rank, c.Total), j.call(c))
		}
	}
}
