// Package sim runs a room against people and a database that are modelled, in
// virtual time, with the product's own controller: what an hour of a sale would
// do is known in a second, before anybody is let in.
//
// # What is real and what is modelled
//
// The controller is the one that the scheduler runs (scheduler/controller). The
// rate is counted as the scripts count it: a bucket of one batch, charged at the
// issue, with capacity beside it, and lanes that share by stride scheduling.
// Modelled are the people (arrivals by chance, how long they think, how many
// never order), the polls that hand out a grant (within a second of its issue),
// and the database (database.go). Left out are the line itself at its limits,
// people who leave it, and everything that fails but the database.
//
// Two runs with one seed are the same.
package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// Lane is a line of the room and those who come to it.
type Lane struct {
	Name     string        `json:"name"`
	Weight   int           `json:"weight"`
	Arrivals float64       `json:"arrivals"` // a second, on average over the shape
	Target   time.Duration `json:"-"`        // the longest wait that is wanted; 0: none
}

// Room is what an operator sets.
type Room struct {
	Batch    int
	Interval time.Duration
	Capacity int // 0: any number
	GrantTTL time.Duration
	Fixed    bool // the batch stays as it is: no controller
	Lanes    []Lane
}

// People is how those who are let through behave.
type People struct {
	Think   time.Duration // on average, from the token to the order
	NoShows float64       // part of them that never orders
}

// Plan is one run.
type Plan struct {
	Room     Room
	People   People
	Database Database
	Shape    Shape
	Seed     uint64
}

// Default is a plan to begin with: a database that bears some 200 orders a
// second, and a room whose batch would allow twice as many.
func Default() Plan {
	return Plan{
		Room: Room{
			Batch: 400, Interval: time.Second, GrantTTL: 300 * time.Second,
			Lanes: []Lane{{Name: "standard", Weight: 1, Arrivals: 260}},
		},
		People:   People{Think: 20 * time.Second, NoShows: 0.1},
		Database: Database{Connections: 20, Service: 100 * time.Millisecond},
		Shape:    Shapes[0],
		Seed:     1,
	}
}

// Validate returns all that keeps a plan from being run, joined.
func (p Plan) Validate() error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	check(p.Room.Batch >= 1 && p.Room.Batch <= 10_000, "the batch must be 1 to 10000, got %d", p.Room.Batch)
	check(p.Room.Interval >= 100*time.Millisecond && p.Room.Interval <= time.Minute, "the interval must be 100ms to 1m, got %v", p.Room.Interval)
	check(p.Shape.Length >= time.Minute && p.Shape.Length <= 24*time.Hour, "the run must take 1m to 24h, got %v", p.Shape.Length)
	check(p.Room.Capacity >= 0, "the capacity must not be negative, got %d", p.Room.Capacity)
	check(p.Room.GrantTTL >= 15*time.Second && p.Room.GrantTTL <= 24*time.Hour, "the token's life must be 15s to 24h, got %v", p.Room.GrantTTL)
	check(len(p.Room.Lanes) >= 1 && len(p.Room.Lanes) <= queue.MaxLanes, "there must be 1 to %d lanes, got %d", queue.MaxLanes, len(p.Room.Lanes))
	names := map[string]bool{}
	for _, l := range p.Room.Lanes {
		check(!names[l.Name], "two lanes are called %s", l.Name)
		names[l.Name] = true
		check(l.Weight >= 1 && l.Weight <= 1000, "the weight of lane %s must be 1 to 1000, got %d", l.Name, l.Weight)
		check(l.Arrivals >= 0 && l.Arrivals <= 100_000, "arrivals of lane %s must be 0 to 100000 a second, got %v", l.Name, l.Arrivals)
	}
	check(p.People.Think >= 0 && p.People.Think <= time.Hour, "people must think for 0 to 1h, got %v", p.People.Think)
	check(p.People.NoShows >= 0 && p.People.NoShows < 1, "the share of no-shows must be 0 to below 1, got %v", p.People.NoShows)
	check(p.Database.Connections >= 1 && p.Database.Connections <= 10_000, "the database must have 1 to 10000 connections, got %d", p.Database.Connections)
	check(p.Database.Service > 0 && p.Database.Service <= time.Minute, "an order must take the database up to 1m, got %v", p.Database.Service)
	return errors.Join(wrong...)
}

func (p Plan) limits() controller.Limits {
	return controller.Limits{Batch: p.Room.Batch, Interval: p.Room.Interval, Capacity: p.Room.Capacity, GrantTTL: p.Room.GrantTTL}
}

// run is a simulation on its way.
type run struct {
	plan   Plan
	rand   *rand.Rand
	now    time.Duration
	events events
	line   line
	db     server
	state  controller.State
	next   next
	people []person
	inside int64

	round  tally // since the last row
	result Result
}

// next is the controller: State.Next, or another one in a test that shows what
// the measures find.
type next func(controller.State, controller.Round, controller.Limits) controller.State

// Run runs a plan to its end.
func Run(p Plan) Result {
	if p.Room.Fixed {
		return runWith(p, func(s controller.State, _ controller.Round, _ controller.Limits) controller.State { return s })
	}
	return runWith(p, controller.State.Next)
}

func runWith(p Plan, next next) Result {
	s := &run{plan: p, next: next, rand: rand.New(rand.NewPCG(p.Seed, 0)), line: newLine(p.Room)}
	s.db = server{model: p.Database, shape: p.Shape, sim: s}
	s.state = controller.Begin(p.limits())
	if p.Room.Fixed {
		s.state.Batch = float64(p.Room.Batch)
	}
	s.result = newResult(p)
	s.after(0, arrive, nobody)
	s.after(0, tick, nobody)
	s.after(controller.RoundLength, endRound, nobody)
	for _, at := range p.Shape.turns() {
		s.at(at, turn, nobody)
	}
	for {
		e, _ := s.events.pop() // the next arrivals are always there
		if s.now = e.at; s.now > p.Shape.Length {
			break
		}
		s.happen(e)
	}
	s.result.judge()
	return s.result
}

func (s *run) happen(e event) {
	switch e.kind {
	case arrive:
		s.arrive()
	case tick:
		s.tick()
	case endRound:
		s.endRound()
	case turn:
		s.db.serve()
	case order:
		s.order(e.who)
	case served:
		s.db.end(e.who)
	case deadline:
		s.db.giveUp(e.who)
	case expire:
		s.expire(e.who)
	}
}

// endRound is what the leader does every few seconds.
func (s *run) endRound() {
	s.after(controller.RoundLength, endRound, nobody)
	s.round.Inside = s.inside
	s.result.add(s)
	s.state = s.next(s.state, controller.Round{
		Took: controller.RoundLength, Orders: s.round.Orders, Granted: s.round.Granted, Unused: s.round.Unused, Inside: s.inside,
	}, s.plan.limits())
	s.round = tally{}
}
