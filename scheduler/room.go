package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// room is what a term knows of one room.
type room struct {
	name     string
	life     queue.Life
	known    int64     // version of the settings that Redis was last heard to have; 0: not known
	create   bool      // life is won in Postgres and not yet begun in Redis
	lifeFrom time.Time // when life was won; what was read before is older
	gone     bool

	step  queue.Step // the last one taken
	more  bool       // the tick goes on with the same term
	above int64      // a term that the room has seen and we have not reached

	told  *mark
	stock stock

	tuned      *tuned // of an adaptive room; nil: not known yet
	verdict    controller.Verdict
	reservedAt time.Time // when a reserve last succeeded

	listing bool // the list of its draw is being made

	tick, reap   *entry
	tune         *entry // the next round of the controller
	failures     int    // ticks in a row
	reapFailures int
	tuneFailures int
	overtaken    int // ticks in a row, without a lock
}

// adopt takes a room in, due at once.
func (t *term) adopt(life queue.Life) {
	if t.told[life.Room] == nil {
		t.told[life.Room] = &mark{}
	}
	r := &room{name: life.Room, life: life, told: t.told[life.Room]}
	r.tick = newEntry(func(ctx context.Context, due time.Time) { t.tick(ctx, r, due) })
	r.reap = newEntry(func(ctx context.Context, _ time.Time) { t.reap(ctx, r) })
	r.tune = newEntry(func(ctx context.Context, _ time.Time) { t.tune(ctx, r) })
	t.rooms[r.name] = r
	now := time.Now()
	t.agenda.at(r.reap, now)
	t.agenda.at(r.tick, now)
}

// dismiss forgets a room. Calls about it that are under way come to nothing.
func (t *term) dismiss(r *room) {
	t.succeeded(r)
	r.gone = true
	t.agenda.drop(r.tick)
	t.agenda.drop(r.reap)
	t.agenda.drop(r.tune)
	t.held = slices.DeleteFunc(t.held, func(h *room) bool { return h == r })
	delete(t.rooms, r.name)
	delete(t.told, r.name)
}

// nextStep names the next call of Reserve. A term of 0 is still to be fetched,
// as it is at each tick where there is no lock.
func (r *room) nextStep(number int64, leader string) queue.Step {
	next := queue.Step{Generation: r.life.Generation, Term: number, Leader: leader, Seq: 1}
	if number == 0 && r.more {
		next.Term = r.step.Term
	}
	if next.Term == r.step.Term {
		next.Seq = r.step.Seq + 1
	}
	return next
}

// mark is how far a room has told us to be.
type mark struct {
	generation int64
	last       int64
	lanes      []int64
}

// observe compares what a room tells with what it told before, and returns
// whether it has gone back: then Redis lost what it had acknowledged. Of a
// generation that we have not seen before, Postgres was told by others.
func (r *room) observe(life queue.Life, now queue.Reservation) (lost bool) {
	if r.told.generation == life.Generation {
		lost = now.LastScore < r.told.last
		for lane, score := range r.told.lanes {
			lost = lost || lane < len(now.Watermarks) && now.Watermarks[lane] < score
		}
	} else {
		// Floors tell nothing here: they are written before the grants they are of.
		lost = now.LastScore < life.LastScore
	}
	*r.told = mark{generation: life.Generation, last: now.LastScore, lanes: slices.Clone(now.Watermarks)}
	return lost
}

// granted remembers the watermarks that an issue has made. Where some members
// had moved on it is not known which, and the next reserve tells.
func (r *room) granted(v *visit) {
	if r.told.generation != v.life.Generation || v.issued.Gone > 0 {
		return
	}
	for i, c := range v.reserved.Taken {
		if v.decisions[i].Grant != "" && c.Place.Lane < len(r.told.lanes) {
			lane := &r.told.lanes[c.Place.Lane]
			*lane = max(*lane, c.Place.Score)
		}
	}
}

// progress is what Postgres has to know before v is issued.
func (v *visit) progress() queue.Progress {
	p := queue.Progress{Room: v.life.Room, Sale: v.life.Sale, LastScore: v.reserved.LastScore, Floors: slices.Clone(v.reserved.Watermarks)}
	for _, c := range v.reserved.Taken {
		for len(p.Floors) <= c.Place.Lane {
			p.Floors = append(p.Floors, 0)
		}
		p.Floors[c.Place.Lane] = max(p.Floors[c.Place.Lane], c.Place.Score)
	}
	return p
}

// learnt takes over what a visit has found out about the room, unless the room
// has meanwhile become another.
func (r *room) learnt(v *visit) {
	if v.won && v.life.Generation > r.life.Generation {
		r.life, r.lifeFrom = v.life, time.Now()
	}
	if r.life.Generation != v.life.Generation {
		return
	}
	r.create, r.known = v.create, v.known
	if v.reserved.Version > 0 {
		r.known = v.reserved.Version
	}
}

// renew takes over what Postgres has of the room, as it was at the time asked,
// and tells whether that is news.
func (r *room) renew(life queue.Life, asked time.Time) bool {
	if asked.Before(r.lifeFrom) {
		return false
	}
	old := r.life
	r.life = life
	if life.Generation != old.Generation {
		r.create, r.known = false, 0
	}
	return life.Generation != old.Generation || life.Version != old.Version
}
