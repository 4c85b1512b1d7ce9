package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// run is a plan being carried out.
type run struct {
	plan   Plan
	target target
	agenda *agenda
	tally  *tally
	judge  *judge

	people  []*person
	places  [numPlaces]atomic.Int64
	active  atomic.Int64 // whose way is not over
	over    chan struct{}
	ended   time.Duration // when the people's time was over
	ending  atomic.Bool   // nothing new is begun, and nobody is counted elsewhere
	tidying atomic.Int64  // who are still to leave
}

// Run carries out a plan. Each second it tells show how it goes. It ends when
// everybody's way is over, some time after the last has come, or with ctx: then
// nobody else comes, and the report is of what was. The error is Unreachable
// or ErrNoRoom where there is nothing to load.
func Run(ctx context.Context, p Plan, show func(Progress)) (*Report, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	t, err := newTarget(p)
	if err != nil {
		return nil, err
	}
	if err := reach(ctx, p); err != nil {
		return nil, err
	}
	r := &run{plan: p, target: t, agenda: newAgenda(time.Now()), tally: newTally(), over: make(chan struct{})}
	r.judge = newJudge(r.agenda.now)
	w, err := r.watch(ctx)
	if err != nil {
		return nil, err
	}
	w.begin()
	r.invite()
	r.during(ctx, w, show)
	return r.report(w, ctx.Err() != nil), nil
}

// invite puts everybody's coming on the agenda: people, and intruders between
// them.
func (r *run) invite() {
	n, intruders := r.plan.Arrivals.People, r.plan.intruders()
	r.people = make([]*person, 0, n+intruders)
	for i := range n {
		r.people = append(r.people, newPerson(r.plan, i))
		r.agenda.push(entry{r.plan.Arrivals.At(i), r.people[i], enter})
	}
	evenly := Arrivals{Shape: Constant, People: intruders, Over: r.plan.Arrivals.Over}
	for i := range intruders {
		who := newIntruder(r.plan, i)
		r.people = append(r.people, who)
		first := sneak
		if sneaks[who.polls] == "a queue ticket" {
			first = enter
		}
		r.agenda.push(entry{evenly.At(i), who, first})
	}
	r.places[coming].Store(int64(len(r.people)))
	r.active.Store(int64(len(r.people)))
}

// during runs workers, watchers and the agenda until it is over, and tidies up.
func (r *run) during(ctx context.Context, w *watch, show func(Progress)) {
	// What is in hand is finished also when ctx has ended.
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	jobs := make(chan entry)
	var workers, others sync.WaitGroup
	for range r.plan.Connections {
		workers.Go(func() { r.work(working, jobs) })
	}
	others.Go(func() { r.agenda.run(working, jobs) })
	others.Go(func() { w.observe(working) })
	others.Go(func() { r.tick(working, w, show) })
	select {
	case <-r.over:
	case <-ctx.Done():
	case <-time.After(r.plan.Arrivals.Over + r.plan.Tail - r.agenda.now()):
	}
	r.finish()
	stop()
	others.Wait()
	workers.Wait()
	w.last()
}

func (r *run) work(ctx context.Context, jobs <-chan entry) {
	l := &line{target: r.target}
	defer l.close()
	for {
		select {
		case e := <-jobs:
			r.step(l, e)
		case <-ctx.Done():
			return
		}
	}
}

// tidyTime is how long those who are left may take to leave.
const tidyTime = 30 * time.Second

// finish takes everything off the agenda, and those who still have a place out of
// the line.
func (r *run) finish() {
	r.ended = r.agenda.now()
	r.ending.Store(true)
	r.agenda.clear()
	for _, who := range r.people {
		who.mu.Lock()
		r.tidy(who)
		who.mu.Unlock()
	}
	soon := time.NewTicker(20 * time.Millisecond)
	defer soon.Stop()
	for end := r.agenda.now() + tidyTime; r.tidying.Load() > 0 && r.agenda.now() < end; {
		<-soon.C
	}
}

// tidy has somebody leave who, as far as one knows, still has a place or a token.
func (r *run) tidy(who *person) {
	here := !who.place.over() || slices.Contains([]place{Vanished, Unused, SoldOut, Undecided}, who.place)
	if !r.plan.Tidy || !here || who.ticket == "" || who.leaving {
		return
	}
	who.leaving = true
	r.tidying.Add(1)
	r.agenda.add(entry{r.agenda.now(), who, tidyUp})
}

// move counts a person where they are now. Whose way is over stays where it was.
func (r *run) move(who *person, to place) {
	if who.place == to || who.place.over() || r.ending.Load() {
		return
	}
	r.places[who.place].Add(-1)
	r.places[to].Add(1)
	if who.place = to; to.over() && r.active.Add(-1) == 0 {
		close(r.over)
	}
}
