//go:build faults

package point_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/fault/point"
)

// stage is one room for one short story, which prints what it comes to.
type stage struct {
	context.Context
	*redisstore.Store
	room  string
	clock time.Time
	life  queue.Life
	step  queue.Step
	held  []queue.Candidate // by the last take
	stock *queue.StockReading
	told  string
}

// story is a story in which one mutant in Lua shows: what the product says at
// its end, and what the mutant does.
type story struct {
	mutant       string
	tell         func(s *stage)
	sound, wrong string
}

func newStage(ctx context.Context, rdb *redis.Client, room string) *stage {
	s := &stage{Context: ctx, room: room, clock: time.UnixMicro(1_764_500_000_000_000)}
	s.Store = redisstore.New(rdb, "story", redisstore.WithClock(func() time.Time { return s.clock }))
	s.life = queue.Life{
		Room: room, Generation: 7, Sale: 3, RestorableFrom: 7, Version: 1, Settings: []byte(`{}`),
		Floors: make([]int64, queue.MaxLanes), Rules: queue.Rules{
			Batch: 2, Interval: time.Second, TokenTTL: 20 * time.Second, PickupTTL: 6 * time.Second, ClaimLease: 5 * time.Second,
			ProcessingTimeout: 3 * time.Second, AwayAfter: 15 * time.Second, ForgetAfter: 400 * time.Second,
			DoneTTL: 30 * time.Second, MaxWaiting: 60, Weights: []int{1},
		},
	}
	s.step = queue.Step{Generation: 7, Term: 1, Leader: "a"}
	s.begin()
	return s
}

func (s *stage) must(err error) {
	if err != nil {
		panic(err)
	}
}

// limit lets the room have only so many grants at once.
func (s *stage) limit(capacity int) {
	s.life.Rules.Capacity, s.life.Version = capacity, s.life.Version+1
	s.must(s.Update(s, s.life))
}

func (s *stage) begin()               { s.must(s.Create(s, s.life)) }
func (s *stage) pass(d time.Duration) { s.clock = s.clock.Add(d) }
func (s *stage) say(v ...any)         { s.told += fmt.Sprint(v...) }

// word is an outcome in short.
func word(err error) string {
	for _, e := range []error{queue.ErrGone, queue.ErrBusy, queue.ErrStale} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	if err != nil {
		panic(err)
	}
	return "done"
}

func (s *stage) enter(member string) queue.Standing {
	st, err := s.Enter(s, s.room, member, 0)
	s.must(err)
	return st
}

func (s *stage) at(member string) queue.Standing {
	st, err := s.Standing(s, s.room, member)
	s.must(err)
	return st
}

// take reserves by the next step, and returns how many were taken.
func (s *stage) take() int {
	s.step.Seq++
	r, err := s.Reserve(s, s.room, s.step, queue.Take{Keep: s.step.Seq, Effective: s.life.Rules.Batch, Max: 500, Stock: s.stock})
	s.must(err)
	s.held = r.Taken
	return len(r.Taken)
}

func (s *stage) give(step queue.Step) (int, error) {
	var ds []queue.Decision
	for i, c := range s.held {
		ds = append(ds, queue.Decision{Member: c.Member, Grant: fmt.Sprintf("g%d-%d-%d", step.Term, step.Seq, i)})
	}
	out, err := s.Issue(s, s.room, step, ds)
	return out.Granted, err
}

// tick lets through whom the room lets through.
func (s *stage) tick() int {
	if s.take() == 0 {
		return 0
	}
	n, err := s.give(s.step)
	s.must(err)
	return n
}

func (s *stage) pick(member string) queue.Grant {
	g, err := s.PickUp(s, s.at(member).Grant, "k1")
	s.must(err)
	return g
}

func (s *stage) claim(g queue.Grant, name string) string {
	return word(s.Claim(s, g, name, 5*time.Second))
}

func (s *stage) consume(g queue.Grant) redisstore.Consumed {
	out, err := s.Consume(s, s.room, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: "o1"}})
	s.must(err)
	return out[0]
}

// admitted has ann, and nobody else, let through and her grant picked up.
func (s *stage) admitted() queue.Grant {
	s.enter("ann")
	s.tick()
	return s.pick("ann")
}

var stories = []story{
	{"consume-by-member", func(s *stage) {
		old := s.admitted()
		s.pass(25 * time.Second)
		s.admitted()
		s.say(s.consume(old), " ", s.at("ann").Status)
	}, "NONE READY", "OK CONSUMED"},

	{"release-any-claim", func(s *stage) {
		g := s.admitted()
		s.claim(g, "c1")
		s.must(s.Release(s, g, "c2"))
		s.say(s.claim(g, "c3"))
	}, "queue: the grant is held by another order", "done"},

	{"app-clock-score", func(s *stage) {
		point.SetSkew(func(context.Context) time.Duration { return time.Minute })
		bob := s.enter("bob")
		point.SetSkew(nil)
		s.say("in order: ", s.enter("ann").Place.Score > bob.Place.Score)
	}, "in order: true", "in order: false"},

	{"taken-not-kept", func(s *stage) {
		s.enter("ann")
		s.take()
		s.say(s.at("ann").Status)
		_, err := s.give(s.step)
		s.must(err)
		s.say(", then ", s.at("ann").Status)
	}, "WAITING, then READY", "NOT_ENTERED, then READY"},

	{"capacity-by-counter", func(s *stage) {
		s.limit(1)
		g := s.admitted()
		s.pass(25 * time.Second)
		_, err := s.Reap(s, s.room)
		s.must(err)
		s.say(s.consume(g), " ", s.consume(g))
		s.enter("bob")
		s.enter("cat")
		s.say(", let in: ", s.tick())
	}, "LATE NONE, let in: 1", "LATE NONE, let in: 2"},

	{"issue-without-term", func(s *stage) {
		s.enter("ann")
		s.take()
		old := s.step
		s.step = queue.Step{Generation: 7, Term: 2, Leader: "b"}
		s.take()
		n, err := s.give(old)
		s.say(n, " ", word(err))
	}, "0 queue: a newer term or step has been seen", "1 done"},

	{"rate-at-reserve", func(s *stage) {
		for i := range 6 {
			s.enter(fmt.Sprint("m", i))
		}
		s.take()
		s.pass(time.Second)
		n, err := s.give(s.step)
		s.must(err)
		s.say(n, " and at once ", s.tick())
	}, "2 and at once 0", "2 and at once 2"},

	{"poll-lengthens", func(s *stage) {
		g := s.admitted()
		s.pass(5 * time.Second)
		s.say("longer by ", s.pick("ann").Expiry.Sub(g.Expiry))
	}, "longer by 0s", "longer by 5s"},

	{"leader-budget", func(s *stage) {
		for i := range 6 {
			s.enter(fmt.Sprint("m", i))
		}
		s.say(s.tick())
		s.step = queue.Step{Generation: 7, Term: 2, Leader: "b"}
		s.say(" and at once ", s.tick())
	}, "2 and at once 0", "2 and at once 2"},

	{"moving-floor", func(s *stage) {
		ann, bob := s.enter("ann"), s.enter("bob")
		s.life.Generation = 8
		s.begin()
		s.step.Generation = 8
		back := func(of queue.Standing, member string) error {
			_, err := s.Restore(s, s.room, queue.Lost{Generation: 8, Member: member, Ticket: 7, Place: of.Place})
			return err
		}
		s.must(back(bob, "bob"))
		s.say(s.tick(), ", then ", word(back(ann, "ann")))
	}, "1, then done", "1, then queue: no such grant"},

	{"unseen-is-silent", func(s *stage) {
		s.enter("ann")
		s.say(s.tick())
	}, "1", "0"},

	{"claim-after-expiry", func(s *stage) {
		g := s.admitted()
		s.pass(20 * time.Second)
		s.say(s.claim(g, "c1"))
	}, "queue: no such grant", "done"},

	{"two-claims", func(s *stage) {
		g := s.admitted()
		s.say(s.claim(g, "c1"), ", ", s.claim(g, "c2"))
	}, "done, queue: the grant is held by another order", "done, done"},

	{"release-renews", func(s *stage) {
		g := s.admitted()
		s.pass(3 * time.Second)
		s.claim(g, "c1")
		s.must(s.Release(s, g, "c1"))
		s.say("longer by ", s.pick("ann").Expiry.Sub(g.Expiry))
	}, "longer by 0s", "longer by 3s"},

	{"leave-any-place", func(s *stage) {
		at := s.enter("ann").Place.Score
		for range 2 {
			left, err := s.Leave(s, s.room, "ann", at, queue.OutcomeLeft)
			s.must(err)
			s.say(left, " ")
			s.enter("ann")
		}
	}, "true false ", "true true "},

	{"restore-ended", func(s *stage) {
		at := s.enter("ann").Place
		_, err := s.Leave(s, s.room, "ann", at.Score, queue.OutcomeLeft)
		s.must(err)
		_, err = s.Restore(s, s.room, queue.Lost{Generation: 7, Member: "ann", Ticket: 7, Place: at})
		s.say(word(err))
	}, "queue: no such grant", "done"},

	{"enter-moves-back", func(s *stage) {
		s.enter("ann")
		s.enter("bob")
		s.say(s.enter("ann").Rank, " of ", s.at("bob").Total)
	}, "0 of 2", "1 of 2"},

	{"weights-ignored", func(s *stage) {
		s.lanes(1, 3)
		s.say(s.lanesOf(8))
	}, "01110111", "01010101"},

	{"idle-lane-credit", func(s *stage) {
		s.lanes(1, 1)
		for i := range 12 { // of the second lane nobody is there
			s.enter(fmt.Sprint("only-", i))
		}
		for range 4 {
			s.pass(time.Second)
			s.tick()
		}
		s.say(s.lanesOf(4))
	}, "0101", "1111"},

	{"lane-by-lane", func(s *stage) {
		s.lanes(1, 1)
		s.life.Rules.OneLine, s.life.Rules.Boosts = true, []time.Duration{0, time.Minute}
		s.limit(0)
		s.say(s.lanesOf(4))
	}, "1111", "0101"},

	{"lift-all", func(s *stage) {
		s.lanes(1, 1)
		s.life.Rules.MaxWait = 100 * time.Millisecond
		s.limit(0)
		s.say(s.lanesOf(4))
	}, "0001", "0000"},
	{"early-admission", func(s *stage) {
		s.life.Rules.AdmitsAt, s.life.Version = s.clock.Add(time.Minute), 2
		s.must(s.Update(s, s.life))
		s.enter("ann")
		s.say(s.tick())
	}, "0", "1"},

	{"believed-batch", func(s *stage) {
		for i := range 6 {
			s.enter(fmt.Sprint("m", i))
		}
		s.life.Rules.Batch = 5 // as a scheduler knows it; the room has 2
		s.say(s.take())
	}, "2", "5"},

	{"capacity-without-claimed", func(s *stage) {
		s.limit(1)
		s.claim(s.admitted(), "c1")
		s.pass(time.Second)
		s.enter("bob")
		s.say(s.tick())
	}, "0", "1"},

	{"stock-without-consumed", func(s *stage) {
		s.life.Rules.Stock, s.life.Rules.Overbook, s.life.Version = "demo", 1000, s.life.Version+1
		s.must(s.Update(s, s.life))
		s.stock = &queue.StockReading{SKU: "demo", Left: 1}
		s.say(s.consume(s.admitted()))
		s.pass(time.Second)
		s.enter("bob")
		s.stock = nil
		s.say(", let in: ", s.tick())
	}, "OK, let in: 0", "OK, let in: 1"},

	{"straight-in-free", func(s *stage) {
		s.letStraightIn()
		for i := range 4 {
			s.say(s.straight(fmt.Sprint("m", i)).Status, " ")
		}
	}, "READY READY WAITING WAITING ", "READY READY READY READY "},

	{"straight-in-past-who-waits", func(s *stage) {
		s.letStraightIn()
		s.enter("ann")
		s.say(s.straight("bob").Status)
	}, "WAITING", "READY"},

	{"straight-in-twice", func(s *stage) {
		s.letStraightIn()
		at := s.straight("ann").Place
		s.life.Generation = 8
		s.begin()
		s.say(s.shows(credential.Ticket{Room: s.room, Sale: 3, Generation: 7, Member: "ann", Place: at, Granted: true, IssuedAt: s.clock}))
	}, "NOT_ENTERED", "WAITING"},

	{"release-not-spent", func(s *stage) {
		for i := range 9 {
			s.enter(fmt.Sprint("m", i))
		}
		s.life.Released, s.life.Version = 3, s.life.Version+1
		s.must(s.Update(s, s.life))
		s.say(s.tick(), " and at once ", s.tick())
	}, "5 and at once 0", "5 and at once 3"},

	{"draw-not-awaited", func(s *stage) {
		s.drawFor(time.Second)
		s.enterByLot("ann")
		s.pass(2 * time.Second)
		s.say(s.tick())
	}, "0", "1"},

	{"late-lot", func(s *stage) {
		s.drawFor(time.Second)
		s.enterByLot("ann")
		s.pass(2 * time.Second)
		s.enterByLot("bob")
		s.say(s.at("ann").Place.Drawn(), " ", s.at("bob").Place.Drawn())
	}, "true false", "true true"},
}

// letStraightIn makes the room let people straight in while nobody waits. Its
// first tick says how fast.
func (s *stage) letStraightIn() {
	s.life.Rules.Direct, s.life.Version = true, s.life.Version+1
	s.must(s.Update(s, s.life))
	s.tick()
}

func (s *stage) straight(member string) queue.Standing {
	st, err := s.EnterWith(s, s.room, member, queue.Entry{Grant: "s-" + member, Asked: s.clock})
	s.must(err)
	return st
}

// drawFor makes the room one that draws for d from now.
func (s *stage) drawFor(d time.Duration) {
	s.life.Generation, s.life.Rules.Draw, s.life.Rules.AdmitsAt = 8, true, s.clock.Add(d)
	s.step.Generation = 8
	s.begin()
}

func (s *stage) enterByLot(member string) {
	_, err := s.EnterWith(s, s.room, member, queue.Entry{Lot: queue.Lot{Sale: 3, First: 1 << 49}})
	s.must(err)
}
