package api

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// Reach tells whether Redis is there at all.
type Reach interface {
	// Unreachable returns those of rooms to whose Redis no connection can be made:
	// not one that is slow, full, read-only or loading, nor one that says nothing.
	Unreachable(ctx context.Context, rooms []string) map[string]bool
}

const (
	// watchEvery is how often each of these rooms is asked about.
	watchEvery = time.Second
	// watchGap is how old what was seen may be. What is older proves nothing: the
	// process may have stood still, or Postgres be away.
	watchGap = 5 * time.Second
)

// failing watches the rooms that pass people while Redis is out of reach. Two
// things have to be so without a break for all of failOpenAfterSeconds: every probe
// was refused, and the room is still one that Postgres says fails open. One probe
// that is answered, or hangs, ends it. Whoever can make Redis slow, or fill it, can
// therefore not open a room.
//
//	reached --refused--> counting --failOpenAfterSeconds--> open
//	   ^                    |                                 |
//	   +------ any other answer, or a gap in the watch -------+
type failing struct {
	reach Reach // nil: nothing fails open
	rooms Books
	seen  atomic.Pointer[sighting]

	log     *slog.Logger
	changed func(room string, open bool) // may be nil

	// Of run alone.
	lives []queue.Life
	asked time.Time // when Postgres last listed them
	clock time.Time // its clock then
}

// sighting is all that was seen in one round.
type sighting struct {
	at    time.Time
	doors map[string]*door
}

// door is a room that fails open, as it was last seen.
type door struct {
	view   *view     // as Postgres has it
	since  time.Time // when its Redis was first out of reach; zero: it is not
	open   bool
	passes *passes
}

func newFailing(o Options) *failing {
	f := &failing{reach: o.Reach, rooms: o.Books, log: o.Log, changed: o.Observer.FailedOpen}
	f.seen.Store(&sighting{})
	return f
}

// run watches until ctx ends.
func (f *failing) run(ctx context.Context) error {
	if f.reach == nil {
		return nil
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		f.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look is one round. Postgres and Redis are asked side by side, so that the one
// that hangs takes no time from the other.
func (f *failing) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error {
		lives, clock, err := f.rooms.FailOpen(ctx)
		if err == nil || len(lives) > 0 { // otherwise what was read before counts, for watchGap
			f.lives, f.asked, f.clock = lives, time.Now(), clock
		}
		return nil
	})
	var away map[string]bool
	before := f.seen.Load()
	names := slices.Sorted(maps.Keys(before.doors))
	g.Go(func() error {
		if refused := f.reach.Unreachable(ctx, names); ctx.Err() == nil {
			away = refused // who was not answered in time has not been refused
		}
		return nil
	})
	_ = g.Wait()
	f.conclude(before, away, time.Now())
}

// conclude makes of what was seen what is so now.
func (f *failing) conclude(before *sighting, away map[string]bool, now time.Time) {
	next := &sighting{at: now, doors: map[string]*door{}}
	if now.Sub(f.asked) < watchGap {
		for _, life := range f.lives {
			if d := f.door(life); d != nil {
				next.doors[life.Room] = d
				d.follow(before, life.Room, away[life.Room], now)
			}
		}
	}
	f.seen.Store(next)
	for name, d := range next.doors {
		if was := before.doors[name]; d.open != (was != nil && was.open) {
			f.announce(name, d.open)
		}
	}
	for name, d := range before.doors {
		if next.doors[name] == nil && d.open {
			f.announce(name, false)
		}
	}
}

// follow carries on what the round before has found.
func (d *door) follow(before *sighting, name string, away bool, now time.Time) {
	d.passes = &passes{}
	was := before.doors[name]
	if was != nil {
		d.passes = was.passes
	}
	switch {
	case !away:
		return
	case was == nil || was.since.IsZero() || now.Sub(before.at) > watchGap:
		d.since = now
	default:
		d.since = was.since
	}
	d.open = now.Sub(d.since) >= d.view.settings.FailOpenAfter()
}

// door is a room as Postgres has it; nil if it can't be run.
func (f *failing) door(life queue.Life) *door {
	settings, err := room.Stored(life.Settings)
	if err != nil || settings.FailOpenAfter() == 0 {
		return nil
	}
	v := &view{settings: settings, read: f.asked, failedOpen: true, Snapshot: queue.Snapshot{
		Room: life.Room, Generation: life.Generation, Sale: life.Sale, RestorableFrom: life.RestorableFrom,
		Version: life.Version, Rules: life.Rules, Settings: life.Settings, Now: f.clock,
		Lanes: make([]queue.LaneSnapshot, len(settings.Lanes)), Stock: queue.StockSnapshot{Left: life.StockLeft, Told: f.clock},
	}}
	return &door{view: v}
}

func (f *failing) announce(name string, open bool) {
	if open {
		f.log.Warn("redis is out of reach, the room fails open: everybody passes", "room", name)
	} else {
		f.log.Warn("the room has closed again: the line decides who passes", "room", name)
	}
	if f.changed != nil {
		f.changed(name, open)
	}
}

// open is the door of a room that fails open now; else nil. It costs one look
// where no room does.
func (f *failing) open(name string) *door {
	s := f.seen.Load()
	if len(s.doors) == 0 {
		return nil
	}
	if d := s.doors[name]; d != nil && d.open && time.Since(s.at) < watchGap {
		return d
	}
	return nil
}

// passing is open for who wants to come in: not while the room would not let people
// through if Redis were there, by its schedule, a pause or its stock.
func (f *failing) passing(name string) *door {
	d := f.open(name)
	if d == nil {
		return nil
	}
	switch d.view.Snapshot.State(d.view.now()) {
	case queue.Open, queue.Off:
		return d
	}
	return nil
}

// any tells whether some room fails open now.
func (f *failing) any() bool {
	for name := range f.seen.Load().doors {
		if f.open(name) != nil {
			return true
		}
	}
	return false
}

// unclaimed is the room of an order for which no claim is asked, because its Redis is
// out of reach or knows nothing of the grant; else nil. The state of the room does
// not matter: whoever holds a grant may order.
func (f *failing) unclaimed(g queue.Grant) *view {
	if d := f.open(g.Room); d != nil {
		return d.view
	}
	if s := f.seen.Load(); g.Open && s.doors[g.Room] != nil && time.Since(s.at) < watchGap {
		return s.doors[g.Room].view
	}
	return nil
}
