package history

import (
	"maps"
	"slices"
	"strconv"
)

const second = 1_000_000 // in microseconds, as the journal has times

// lineage is a Life, walked through from its beginning.
type lineage struct {
	*Life
	index   int
	from    int // steps before it are the life before's, and have been judged there
	moments []*moment
	whole   bool               // the room began within the journal: everybody is known
	members map[string]*Member // as they are at its end
	start   map[string]*Member // as they were when it began to differ; made when asked for
}

// moment is one step, with what was before it.
type moment struct {
	*Step
	line *lineage
	at   int // its number among the steps of the life, from 0

	moves   []move
	fresh   bool // nothing is known of the time before it
	was     State
	gen     int64 // generation before it
	conf    *conf // settings that the script obeyed; nil: not known
	stepped bool  // it saw a step of the clock back, of more than a minute; who writes accepts it
	begins  bool  // everything before it is gone: a generation begins, or the room ends
	off     bool  // whom it lets through was taken, or entered, while the room was off
}

// move is what a step did to one member.
type move struct {
	member        string
	before, after *Member
}

// conf is what the scripts obey, in microseconds.
type conf struct {
	generation, version, sale, restorableFrom, began, batch, interval, tokenTTL, pickupTTL, processingTimeout, awayAfter,
	forgetAfter, capacity, settle, opensAt, admitsAt, closesAt, released int64
	paused, draining, off, direct, draw, lottery bool
	floors                                       [4]int64
	sharing                                      sharing
	stock                                        string // sku that bounds who is let in; empty: none
	overbook                                     int64  // in thousandths
}

func confOf(fields map[string]string) *conf {
	n := func(name string) int64 {
		v, _ := strconv.ParseInt(fields[name], 10, 64)
		return v
	}
	c := &conf{
		generation: n("generation"), version: n("version"), sale: n("sale"), restorableFrom: n("restorable_from"), began: n("began"),
		batch: n("batch"), interval: n("interval"), tokenTTL: n("token_ttl"), pickupTTL: n("pickup_ttl"),
		processingTimeout: n("processing_timeout"), awayAfter: n("away_after"), forgetAfter: n("forget_after"), capacity: n("capacity"),
		settle: n("settle"), admitsAt: n("admits_at"), closesAt: n("closes_at"), paused: n("paused") == 1, draining: n("draining") == 1,
		draw: n("draw") == 1, lottery: n("lottery") == 1,
	}
	c.sharing = sharing{lanes: n("lanes"), oneLine: n("one_line") == 1, maxWait: n("max_wait")}
	c.stock, c.overbook = fields["stock"], n("overbook")
	c.opensAt, c.released, c.off, c.direct = n("opens_at"), n("released"), n("off") == 1, n("direct") == 1
	for lane := range c.floors {
		c.sharing.weights[lane], c.sharing.boosts[lane] = max(n("weight"+strconv.Itoa(lane)), 1), n("boost"+strconv.Itoa(lane))
		c.floors[lane] = n("floor" + strconv.Itoa(lane))
	}
	return c
}

// replay walks through all lives.
func replay(lives []Life) []*lineage {
	lines := make([]*lineage, len(lives))
	for i := range lives {
		l := &lineage{Life: &lives[i], index: i, members: map[string]*Member{}}
		if i > 0 {
			l.from = min(lives[i-1].Kept, len(l.Steps))
		}
		l.walk()
		lines[i] = l
	}
	return lines
}

var unknown = &Member{} // who has not been heard of

func (l *lineage) walk() {
	var conf *conf
	var was State
	var gen int64
	blank := true // nothing was in Redis so far
	free := map[string]bool{}
	l.moments = make([]*moment, len(l.Steps))
	for i := range l.Steps {
		s := &l.Steps[i]
		m := &moment{Step: s, line: l, at: i, fresh: i == 0, was: was, gen: gen, conf: conf}
		m.stepped = !m.fresh && was.Time > 0 && s.Time < was.Time-60*second
		m.begins = s.Script == "configure" && (s.Mode == "create" && (s.Generation != gen || i == 0) || s.Mode == "drop" && s.Generation == 0)
		if m.begins {
			clear(l.members)
			l.whole = l.whole || blank
		}
		blank = blank && s.Generation == 0
		l.apply(m)
		m.noteOff(free)
		switch {
		case m.begins && s.Mode == "drop":
			conf = nil
		case s.Script == "configure" && len(s.Conf) > 0:
			conf = confOf(s.Conf)
		case m.pulls() && conf != nil && conf.began > s.Now:
			pulled := *conf
			pulled.began = s.Now
			conf = &pulled
		}
		l.moments[i], was, gen = m, s.State, s.Generation
	}
}

// apply notes who has moved, in the order of their names.
func (l *lineage) apply(m *moment) {
	if len(m.Members) == 0 {
		return
	}
	m.moves = make([]move, 0, len(m.Members))
	for _, name := range slices.Sorted(maps.Keys(m.Members)) {
		before, after := l.members[name], m.Members[name]
		if before == nil {
			before = unknown
		}
		l.members[name] = &after
		m.moves = append(m.moves, move{name, before, &after})
	}
}

// judged are the steps that this life has for itself.
func (l *lineage) judged() []*moment { return l.moments[l.from:] }

// accepted tells that the clock of the room went back with this step.
func (m *moment) accepted() bool { return m.stepped && m.State.Time < m.was.Time && !m.begins }

// pulls tells that the step pulls times back that lie further ahead than their
// rule allows: reap does, for a while after a step of the clock back.
func (m *moment) pulls() bool { return m.Script == "reap" && (m.was.StepAt > 0 || m.stepped) }

// since is the moment from which silence counts, as a script that asks for
// listen_since sees it.
func (m *moment) since() int64 {
	if m.Now-m.was.HeardAt > 10*second {
		return m.Now
	}
	if m.deaf() {
		return m.Now
	}
	return m.was.ListenSince
}

func (m *moment) deaf() bool {
	return m.stepped || m.was.Time > 0 && m.Now-m.was.Time > 10*second
}

// silent tells whether a room may take somebody to have gone, by the entry that
// it has of them.
func (m *moment) silent(seen int64) bool {
	return seen > 0 && max(seen, m.since())+m.conf.awayAfter <= m.Now
}

// arg is an argument of the script, numbered from 0; empty where there is none.
func (m *moment) arg(i int) string {
	if i < 0 || i >= len(m.Args) {
		return ""
	}
	return m.Args[i]
}

func (m *moment) number(i int) int64 {
	n, _ := strconv.ParseInt(m.arg(i), 10, 64)
	return n
}

// value is a named value of the reply.
func (s *Step) value(name string) any {
	for i := 1; i+1 < len(s.Reply); i += 2 {
		if s.Reply[i] == name {
			return s.Reply[i+1]
		}
	}
	return nil
}

// words are the words of the reply, one for each thing asked for.
func (s *Step) words() []string {
	list, _ := s.value("words").([]any)
	out := make([]string, len(list))
	for i, w := range list {
		out[i], _ = w.(string)
	}
	return out
}

// granted is how many grants the step made.
func (m *moment) granted() int64 {
	var told, made int64
	if m.Script == "issue" {
		for _, w := range m.words() {
			if w == "NEW" {
				told++
			}
		}
	}
	for _, v := range m.moves {
		if v.after.Grant != nil && v.before.grantID() != v.after.Grant.ID {
			made++
		}
	}
	return max(told, made)
}

// term and leader of a step of a scheduler: reserve and issue name them alike.
func (m *moment) term() int64    { return m.number(1) }
func (m *moment) leader() string { return m.arg(2) }
func (m *moment) seq() int64     { return m.number(3) }

// by tells that the step was over before a time of Now, at least as far as one
// can know.
func (s *Step) surelyBefore(mono int64) bool { return s.Before != 0 && s.Before < mono }

// surelyAfter tells that the step was taken after a time of Now.
func (s *Step) surelyAfter(mono int64) bool { return s.After != 0 && s.After > mono }
