package history

import "slices"

// judge is a history in the forms in which checks ask for it.
type judge struct {
	History
	calls   []call
	orders  []*call // those of calls that are orders
	lines   []*lineage
	rows    map[string]*OrderRow // by their id, void ones too
	paid    map[string]*OrderRow // by their grant, void ones left out
	voided  map[string]*OrderRow // by their grant
	issued  map[string][]issue   // by the grant
	keyed   map[scope]*OrderRow  // by member and Idempotency-Key
	byGrant map[string][]*call   // orders, by the grant that they showed
	known   map[string]*call     // who heard of a grant first
	stays   map[string][]stay    // where each member was
	gaps    []gap
	start   int64 // first time of Now
	epoch   int64 // first time of Redis

	rule       rule
	found      int
	violations []Violation
	deviations []Deviation
}

// scope is what an Idempotency-Key is unique in, within a room.
type scope struct{ member, key string }

// issue is a grant that was made.
type issue struct {
	member string
	m      *moment
}

// gap is a time of Now in which Redis has lost, or may have lost, what it did.
type gap struct {
	from, to int64
	unread   bool // steps may have been taken in it that nobody has read
}

func newJudge(h History) *judge {
	j := &judge{
		History: h, calls: callsOf(h.Events), lines: replay(h.Journal),
		rows: map[string]*OrderRow{}, paid: map[string]*OrderRow{}, voided: map[string]*OrderRow{}, issued: map[string][]issue{},
		keyed: map[scope]*OrderRow{}, byGrant: map[string][]*call{}, known: map[string]*call{},
	}
	j.indexCalls()
	j.indexRows()
	for _, l := range j.lines {
		for _, m := range l.judged() {
			j.noteIssued(m)
		}
	}
	j.findGaps()
	if len(j.calls) > 0 {
		j.start = j.calls[0].begun
	}
	if len(j.lines) > 0 && len(j.lines[0].moments) > 0 {
		j.epoch = j.lines[0].moments[0].Now
	}
	return j
}

func (j *judge) indexCalls() {
	for i := range j.calls {
		c := &j.calls[i]
		if c.F == Order {
			j.orders = append(j.orders, c)
			j.byGrant[c.Grant] = append(j.byGrant[c.Grant], c)
		}
		if old := j.known[c.Grant]; c.Grant != "" && (old == nil || c.over < old.over) {
			j.known[c.Grant] = c
		}
	}
}

func (j *judge) indexRows() {
	for i := range j.Final.Orders {
		o := &j.Final.Orders[i]
		j.rows[o.ID] = o
		switch {
		case o.Void:
			j.voided[o.Grant] = o
			continue
		case j.paid[o.Grant] == nil:
			j.paid[o.Grant] = o
		}
		if o.Key != "" {
			j.keyed[scope{o.Member, o.Key}] = o
		}
	}
}

func (j *judge) noteIssued(m *moment) {
	for _, v := range m.moves {
		if v.after.Grant != nil && v.before.grantID() != v.after.Grant.ID {
			j.issued[v.after.Grant.ID] = append(j.issued[v.after.Grant.ID], issue{v.member, m})
		}
	}
}

// findGaps takes the losses that the journal shows, and those that the run
// speaks of. A flush is none: the journal and the last score outlive it.
func (j *judge) findGaps() {
	for _, l := range j.lines {
		if l.Lost {
			j.gaps = append(j.gaps, gap{l.Life.Read, l.Noticed, l.Truncated})
		}
	}
	for _, f := range j.Facts.Losses {
		if f.Kind == Flush {
			continue
		}
		g := gap{from: f.Mono, to: max(f.Mono, f.MonoEnd), unread: true}
		for i := range j.gaps {
			// A loss that begins before it can be seen, as a split does, makes the
			// gap that it belongs to longer.
			if j.gaps[i].from <= g.to && g.from <= j.gaps[i].to {
				j.gaps[i].from = min(j.gaps[i].from, g.from)
			}
		}
		j.gaps = append(j.gaps, g)
	}
}

// lossDuring tells whether a loss lies, or begins or ends, between two times.
func (j *judge) lossDuring(from, to int64) bool {
	return slices.ContainsFunc(j.gaps, func(g gap) bool { return g.from <= to && from <= g.to })
}

// lossesBy counts the losses that had begun by a time.
func (j *judge) lossesBy(t int64) int {
	n := 0
	for _, g := range j.gaps {
		if g.from <= t {
			n++
		}
	}
	return n
}

// unreadDuring tells whether steps may have been taken between two times that
// nobody has read.
func (j *judge) unreadDuring(from, to int64) bool {
	return slices.ContainsFunc(j.gaps, func(g gap) bool { return g.unread && g.from <= to && from <= g.to })
}

// journaled tells whether there is a journal that begins with the room, so that
// what it does not have was not done. A release build has none.
func (j *judge) journaled() bool {
	if len(j.lines) > 0 && j.lines[0].whole {
		return true
	}
	j.deviate("not judged: the journal does not begin with the room")
	return false
}

// eachMove goes through all moves of all lives, each once. Of a room that was
// there before its journal those are left out of which only the end is known.
func (j *judge) eachMove(f func(m *moment, v move)) {
	for _, l := range j.lines {
		for _, m := range l.judged() {
			for _, v := range m.moves {
				if l.whole || v.before != unknown {
					f(m, v)
				}
			}
		}
	}
}

// eachMoment goes through all steps of all lives, each once.
func (j *judge) eachMoment(f func(m *moment)) {
	for _, l := range j.lines {
		for _, m := range l.judged() {
			f(m)
		}
	}
}
