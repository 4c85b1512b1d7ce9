package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is one way of breaking something, with the way back.
type Kind struct {
	// Name says what it is, and is what the dice of its events are of.
	Name string
	// Needs are what the kind has for itself while it is on: two that need the
	// same thing do not overlap. "redis", say.
	Needs []string
	// Shortest and Longest bound how long it is on. Both 0: it is over at once.
	Shortest, Longest time.Duration
	// Start breaks it. What it returns says what exactly it did, for the log.
	Start func(ctx context.Context, d *Dice) (string, error)
	// Stop mends it; nil where nothing has to be.
	Stop func(ctx context.Context) error
}

// Planned is one event of a schedule.
type Planned struct {
	At, For time.Duration
	Kind    string
	number  int // which of this kind it is
}

// Schedule is what is broken when. It depends on the seed, the time and the
// kinds, and on nothing else.
type Schedule struct {
	Seed   uint64
	Total  time.Duration
	Events []Planned
	kinds  map[string]Kind
	dice   *Dice
}

// Plan makes the schedule of a seed: every kind at least once, where the time
// suffices, and on average one event in every gap; each over before total.
func Plan(seed uint64, total, gap time.Duration, kinds []Kind) Schedule {
	s := Schedule{Seed: seed, Total: total, kinds: map[string]Kind{}, dice: NewDice(seed)}
	p := planner{Schedule: &s, dice: s.dice.Of("plan"), count: map[string]int{}}
	for _, k := range kinds {
		s.kinds[k.Name] = k
	}
	first := slices.Clone(kinds)
	p.dice.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
	for n := max(len(kinds), int(total/gap)); len(s.Events) < n; {
		k := kinds[p.dice.Below(len(kinds))]
		if len(first) > 0 {
			k, first = first[0], first[1:]
		}
		if !p.place(k) && len(first) == 0 {
			break // full
		}
	}
	slices.SortStableFunc(s.Events, func(a, b Planned) int { return int(a.At - b.At) })
	return s
}

type planner struct {
	*Schedule
	dice  *Dice
	count map[string]int
}

// place finds a time at which what k needs is free.
func (p *planner) place(k Kind) bool {
	for range 100 {
		e := Planned{Kind: k.Name, For: p.dice.Between(k.Shortest, k.Longest).Round(time.Millisecond), number: p.count[k.Name]}
		if e.For >= p.Total {
			continue
		}
		e.At = p.dice.Between(0, p.Total-e.For).Round(time.Millisecond)
		if !p.taken(e, k) {
			p.Events = append(p.Events, e)
			p.count[k.Name]++
			return true
		}
	}
	return false
}

// recovery is what everything gets between two faults that need it: without it
// the second would only meet what the first has left broken.
const recovery = 500 * time.Millisecond

func (p *planner) taken(e Planned, k Kind) bool {
	return slices.ContainsFunc(p.Events, func(o Planned) bool {
		apart := e.At > o.At+o.For+recovery || o.At > e.At+e.For+recovery
		return !apart && (o.Kind == e.Kind || shares(p.kinds[o.Kind].Needs, k.Needs))
	})
}

func shares(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

// String lists the events, one a line.
func (s Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schedule of seed %d, %v:\n", s.Seed, s.Total)
	for _, e := range s.Events {
		fmt.Fprintf(&b, "  %8.3fs  %-28s for %v\n", e.At.Seconds(), e.Kind, e.For)
	}
	return b.String()
}

// Kinds is how many different kinds there are in it.
func (s Schedule) Kinds() int {
	seen := map[string]bool{}
	for _, e := range s.Events {
		seen[e.Kind] = true
	}
	return len(seen)
}

// Happened is what a run did for one event.
type Happened struct {
	Planned
	Began, Ended time.Time
	What         string
	Err          error
}

// String implements fmt.Stringer.
func (h Happened) String() string {
	text := fmt.Sprintf("%-28s %v to %v  %s", h.Kind, h.Began.Format("15:04:05.000"), h.Ended.Format("15:04:05.000"), h.What)
	if h.Err != nil {
		text += "  ERROR " + h.Err.Error()
	}
	return text
}

// Run does what the schedule says, and returns when all of it is over. When ctx
// ends, what has not begun is left out and what is on is mended at once: mending
// never depends on ctx. tell, if given, hears of each event when it has begun
// and when it is over, from several goroutines.
func (s Schedule) Run(ctx context.Context, tell func(Happened)) ([]Happened, error) {
	start := time.Now()
	all := make([]Happened, len(s.Events))
	var wg sync.WaitGroup
	for i, e := range s.Events {
		wg.Go(func() {
			if sleepUntil(ctx, start.Add(e.At)) {
				all[i] = s.happen(ctx, e, tell)
			}
		})
	}
	wg.Wait()
	var errs []error
	all = slices.DeleteFunc(all, func(h Happened) bool { return h.Began.IsZero() })
	for _, h := range all {
		if h.Err != nil {
			errs = append(errs, fmt.Errorf("fault %s: %w", h.Kind, h.Err))
		}
	}
	return all, errors.Join(errs...)
}

func (s Schedule) happen(ctx context.Context, e Planned, tell func(Happened)) Happened {
	k := s.kinds[e.Kind]
	h := Happened{Planned: e, Began: time.Now()}
	h.What, h.Err = k.Start(ctx, s.dice.Of(fmt.Sprint(e.Kind, " ", e.number)))
	if tell != nil {
		tell(h)
	}
	sleepUntil(ctx, h.Began.Add(e.For))
	if k.Stop != nil {
		h.Err = errors.Join(h.Err, k.Stop(context.WithoutCancel(ctx)))
	}
	h.Ended = time.Now()
	if tell != nil {
		tell(h)
	}
	return h
}

// sleepUntil tells whether t came before the end of ctx.
func sleepUntil(ctx context.Context, t time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(t)):
		return ctx.Err() == nil
	}
}
