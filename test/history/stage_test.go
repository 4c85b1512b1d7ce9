package history

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stage is a room on paper: histories are written on it by hand, step by step,
// as the scripts would leave them. What it is told to do wrong it does wrong.
type stage struct {
	testing.TB
	now  int64 // of Redis
	mono int64
	gen  int64

	members map[string]Member
	stats   map[string]int64
	sizes   Sizes
	state   State
	conf    map[string]string
	steps   []Step
	lives   []Life // those before
	term    int64
	seq     int64
	ids     int

	events []Event
	ops    int64
	final  Final
	facts  Facts
}

const (
	theBatch    = 2
	theInterval = second
)

// newStage is a room of 2 a second that has just begun, with 10 s for
// everything that has a time.
func newStage(t testing.TB, settings ...string) *stage {
	s := &stage{
		TB: t, now: 1_764_500_000_000_000, mono: 1_000, gen: 7, term: 1, members: map[string]Member{}, stats: map[string]int64{},
		conf: map[string]string{
			"generation": "7", "version": "1", "sale": "3", "restorable_from": "6", "began": "1764500000000000", "batch": strconv.Itoa(theBatch),
			"interval": strconv.Itoa(theInterval), "token_ttl": "20000000", "pickup_ttl": "10000000", "processing_timeout": "5000000",
			"away_after": "90000000", "forget_after": "60000000", "capacity": "0", "floor0": "1764499999000000", "lanes": "1",
		},
		facts: Facts{Quiesced: true, Stock: map[string]int64{"s": 10}},
	}
	s.set(settings...)
	s.final.Products = []Product{{"s", 10}}
	s.begin("create")
	return s
}

// set changes settings that the next step of configure puts in force.
func (s *stage) set(settings ...string) {
	for _, v := range settings {
		name, value, _ := strings.Cut(v, "=")
		s.conf[name] = value
	}
}

// begin begins a generation, or ends the room.
func (s *stage) begin(mode string) {
	clear(s.members)
	clear(s.stats)
	s.sizes = Sizes{}
	s.state = State{Time: s.now, Last: max(s.state.Last, s.now), Tat: s.now - theInterval, ListenSince: s.now, Term: s.state.Term, Leader: s.state.Leader}
	s.step("configure", []string{mode, str(s.gen), "1", "0"}, []any{"OK", "generation", str(s.gen)}, nil)
	s.last().Mode, s.last().Conf = mode, maps.Clone(s.conf)
}

func str(n int64) string { return strconv.FormatInt(n, 10) }

func (s *stage) pass(d time.Duration) {
	s.now += d.Microseconds()
	s.mono += d.Nanoseconds()
}

func (s *stage) last() *Step { return &s.steps[len(s.steps)-1] }

// step takes a step that leaves members as they are given, and keeps counters
// and sizes as the scripts would.
func (s *stage) step(script string, args []string, reply []any, changes map[string]Member) *Step {
	s.mono += 10
	if s.now-s.state.Time > 10*second {
		s.state.ListenSince = s.now
	}
	s.state.Time = s.now
	for name, m := range changes {
		was := s.members[name]
		s.count(script, was, m)
		s.sizes = s.sizes.plus(sizesOf(&was), -1).plus(sizesOf(&m), 1)
		s.members[name] = m
	}
	step := Step{
		Script: script, Time: s.now, Now: s.now, Args: args, Reply: reply, Members: maps.Clone(changes), State: s.state,
		Stats: maps.Clone(s.stats), Generation: s.gen, After: s.mono - 1, Before: s.mono + 1,
		Sizes: s.sizes,
	}
	s.steps = append(s.steps, step)
	s.mono += 10
	return s.last()
}

func (s *stage) count(script string, was, is Member) {
	if from, to := was.kind(), is.kind(); !from.placed() && to.placed() {
		s.stats["entered"]++
		if script == "restore" {
			s.stats["restored"]++
		}
	} else if to == ended && was.outcome() != is.outcome() {
		if from == ended {
			s.stats[strings.ToLower(was.outcome().Word)]--
		}
		s.stats[strings.ToLower(is.outcome().Word)]++
	}
}

// ok is the reply of a script that did what it was asked.
func (s *stage) ok() []any { return []any{"OK", "generation", str(s.gen)} }

// The scripts, as they should work.

func (s *stage) enter(names ...string) {
	for _, name := range names {
		s.state.Last = max(s.state.Last+1, s.now)
		s.step("enter", []string{name, "0"}, s.ok(), map[string]Member{name: inLane(s.state.Last)})
	}
}

// straight enters and gets a grant at once, charged to the rate or, in a room
// that is off, to nothing.
func (s *stage) straight(name string) *Step {
	s.ids++
	s.state.Last = max(s.state.Last+1, s.now)
	g := Grant{ID: fmt.Sprintf("g-%s-%d", name, s.ids), Place: Place{0, s.state.Last}, Issued: s.now, Expiry: s.now + 10*second}
	if c := confOf(s.conf); c.isOff() {
		s.stats["passed_off"]++
	} else {
		s.state.Eff = theBatch
		s.state.Tat = max(s.state.Tat, s.now-c.interval) + c.interval/theBatch
	}
	s.state.Watermarks[0] = s.state.Last
	return s.step("enter", []string{name, "0", g.ID}, s.ok(), map[string]Member{name: {Ready: g.Expiry, Grant: &g}})
}

// configure puts settings in force.
func (s *stage) configure(settings ...string) {
	s.set(settings...)
	s.step("configure", []string{"update", str(s.gen), "2", "0"}, s.ok(), nil)
	s.last().Mode, s.last().Conf = "update", maps.Clone(s.conf)
}

func inLane(score int64) Member { return Member{Lanes: []int{0}, Score: score} }

func (s *stage) stepArgs(more ...string) []string {
	return append([]string{str(s.gen), str(s.term), "a", str(s.seq)}, more...)
}

// reserve takes members out of the lane.
func (s *stage) reserve(names ...string) *Step {
	s.seq++
	return s.reserveAgain(names...)
}

func (s *stage) reserveAgain(names ...string) *Step {
	s.state.Term, s.state.Leader, s.state.Seq, s.state.Eff = s.term, "a", s.seq, theBatch
	changes := map[string]Member{}
	for _, name := range names {
		m := s.members[name]
		changes[name] = Member{Processing: s.now + 5*second, Held: &Hold{m.place(), fmt.Sprintf("%d:a:%d", s.term, s.seq)}}
	}
	return s.step("reserve", s.stepArgs(str(s.seq), "2", "500"), s.ok(), changes)
}

// issue gives members grants, named after them.
func (s *stage) issue(names ...string) *Step {
	changes, words := map[string]Member{}, []any{}
	var args []string
	for _, name := range names {
		s.ids++
		id := fmt.Sprintf("g-%s-%d", name, s.ids)
		m := s.members[name]
		g := Grant{ID: id, Place: m.place(), Issued: s.now, Expiry: s.now + 10*second}
		changes[name], words, args = Member{Ready: g.Expiry, Grant: &g}, append(words, "NEW"), append(args, name, id)
		s.state.Watermarks[0] = max(s.state.Watermarks[0], g.Place.Score)
	}
	if len(names) > 0 {
		c := confOf(s.conf)
		s.state.Tat = max(s.state.Tat, s.now-c.interval) + int64(len(names))*c.interval/theBatch
	}
	return s.step("issue", s.stepArgs(args...), []any{"OK", "generation", str(s.gen), "words", words}, changes)
}

// grant is what a member holds.
func (s *stage) grant(name string) Grant {
	g := s.members[name].Grant
	if g == nil {
		s.Fatalf("%s has no grant", name)
	}
	return *g
}

func (s *stage) pickup(name string) {
	g := s.grant(name)
	if !g.Picked {
		g.Picked, g.Key, g.Expiry = true, "k", (s.now+20*second)/second*second
	}
	s.step("pickup", []string{name, g.ID, "k"}, s.ok(), map[string]Member{name: {Ready: g.Expiry, Grant: &g}})
}

func (s *stage) claim(name, claim string) {
	g := s.grant(name)
	g.Picked, g.Claim = true, claim
	s.step("claim", []string{name, g.ID, claim, "15000000"}, s.ok(), map[string]Member{name: {Claimed: s.now + 15*second, Grant: &g}})
}

func (s *stage) release(name string) {
	g := s.grant(name)
	args := []string{name, g.ID, g.Claim}
	g.Claim = ""
	s.step("release", args, []any{"READY", "generation", "7"}, map[string]Member{name: {Ready: g.Expiry, Grant: &g}})
}

func (s *stage) consume(name, order string) {
	g := s.grant(name)
	s.step("consume", []string{name, g.ID, order}, []any{"OK", "generation", "7", "words", []any{"OK"}},
		map[string]Member{name: s.gone("CONSUMED", g.ID, order)})
}

func (s *stage) gone(word, grant, order string) Member {
	return Member{Done: s.now, Outcome: &Outcome{word, grant, order}}
}

func (s *stage) leave(name string) {
	m := s.members[name]
	s.step("leave", []string{name, str(m.place().Score), "LEFT"}, s.ok(), map[string]Member{name: s.gone("LEFT", m.grantID(), "")})
}

// reap leaves members as given.
func (s *stage) reap(changes map[string]Member) *Step {
	return s.step("reap", []string{"500", "0"}, s.ok(), changes)
}

func (s *stage) listen(names ...string) {
	changes := map[string]Member{}
	for _, name := range names {
		m := s.members[name]
		m.Seen = s.now
		changes[name] = m
	}
	s.reap(changes)
}

func (s *stage) hear(names ...string) {
	s.state.HeardAt = s.now
	s.listen(names...)
	s.last().Script, s.last().Args = "heard", names
}

// admit is all that leads to a token in the hands of each.
func (s *stage) admit(names ...string) {
	s.enter(names...)
	s.reserve(names...)
	s.issue(names...)
	for _, name := range names {
		s.pickup(name)
	}
}

// The clients.

// ask begins a call.
func (s *stage) ask(e Event) int64 {
	s.ops++
	s.mono += 10
	e.Op, e.Type, e.Mono, e.Rank, e.Total = s.ops, Invoke, s.mono, -1, -1
	s.events = append(s.events, e)
	s.mono += 10
	return s.ops
}

// answer ends it.
func (s *stage) answer(op int64, e Event) {
	s.mono += 10
	e.Op, e.Mono = op, s.mono
	if e.Status != "WAITING" {
		e.Rank, e.Total = -1, -1
	}
	s.events = append(s.events, e)
	s.mono += 10
}

// call is a call around a step.
func (s *stage) call(ask, answer Event, do func()) {
	op := s.ask(ask)
	if do != nil {
		do()
	}
	s.answer(op, answer)
}

// enters is a client who enters.
func (s *stage) enters(name string) {
	op := s.ask(Event{F: Enter, Member: name})
	s.enter(name)
	var inFront int64
	for _, m := range s.members {
		if len(m.Lanes) > 0 && m.Score < s.state.Last {
			inFront++
		}
	}
	s.answer(op, Event{F: Enter, Type: OK, Code: "201", Status: "WAITING", Score: s.state.Last, Rank: inFront, Total: inFront + 1})
}

// told is a poll.
func (s *stage) told(name string, e Event) {
	e.Type, e.Code = OK, "200"
	s.call(Event{F: Poll, Member: name}, e, nil)
}

// ordering begins the call of an order with the token that a member holds.
func (s *stage) ordering(name, key, content string) (int64, Event) {
	e := Event{F: Order, Member: name, Key: key, Content: content, Grant: s.grant(name).ID}
	return s.ask(e), e
}

// commit is what the transaction of an order leaves.
func (s *stage) commit(name, id, key string, quantity int64) OrderRow {
	g := s.grant(name)
	items := []Item{{"s", quantity}}
	o := OrderRow{ID: id, Grant: g.ID, Room: "r", Member: name, Sale: 3, Generation: s.gen, Key: key, Items: items, Content: Content(items)}
	s.final.Orders = append(s.final.Orders, o)
	s.final.Outbox = append(s.final.Outbox, OutboxRow{ID: int64(len(s.final.Outbox)), Order: id, Kind: "consume", Status: "done", Member: name, Grant: g.ID})
	s.final.Products[0].Stock -= quantity
	return o
}

// void is the row of a grant that pays for nothing.
func (s *stage) void(name, grant string) {
	s.final.Orders = append(s.final.Orders, OrderRow{ID: "v-" + grant, Grant: grant, Void: true, Room: "r", Member: name, Sale: 3, Generation: s.gen})
}

// orders is a client who orders one thing, and gets it.
func (s *stage) orders(name, id, key string) {
	op, e := s.ordering(name, key, "1xs")
	s.claim(name, id)
	s.commit(name, id, key, 1)
	e.Type, e.Code, e.OrderID = OK, "201", id
	s.answer(op, e)
}

// fails is a client whose order is refused.
func (s *stage) fails(name, key, content, code string) {
	op, e := s.ordering(name, key, content)
	e.Type, e.Code = Fail, code
	s.answer(op, e)
}

// lose ends the life of the journal: the first kept steps outlive it.
func (s *stage) lose(kept int, truncated bool) {
	s.mono += 100
	s.lives = append(s.lives, Life{Steps: s.steps, Lost: true, Kept: kept, Truncated: truncated, Read: s.mono - 50, Noticed: s.mono})
	s.facts.Losses = append(s.facts.Losses, Loss{Kind: PartialLoss, Mono: s.mono - 20})
	s.steps = s.steps[:kept:kept]
	s.mono += 100
	clear(s.members)
	for _, step := range s.steps {
		maps.Copy(s.members, step.Members)
	}
	s.stats, s.sizes, s.state = map[string]int64{}, Sizes{}, State{}
	if kept > 0 {
		s.stats, s.sizes, s.state = maps.Clone(s.last().Stats), s.last().Sizes, s.last().State
	}
}

// history ends the play.
func (s *stage) history() History {
	s.final.Redis = Dump{Begun: true, Generation: s.gen, Members: maps.Clone(s.members)}
	return History{Room: Room{"r"}, Events: s.events, Journal: append(s.lives, Life{Steps: s.steps}), Final: s.final, Facts: s.facts}
}
