package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// issueTries is how often an issue of unknown outcome is sent. After that its
// members return by themselves.
const issueTries = 4

// visit is one tick of a room, or one part of a long one, on its way through
// the calls. It holds copies: the room may get new settings meanwhile.
type visit struct {
	room   *room
	life   queue.Life
	known  int64 // version of the settings that Redis has; 0: not known
	create bool  // life is won in Postgres and not yet begun in Redis
	won    bool  // this visit has won life
	begun  bool  // and begun it, instead of reserving
	step   queue.Step
	above  int64 // the term that the room has shown us; its next has to be higher
	due    time.Time
	start  time.Time

	stock      *queue.StockReading // that reserve brings; nil: none
	tuned      *tuned              // of an adaptive room
	recall     bool                // tuned is asked for first
	reservedAt time.Time

	reserved queue.Reservation
	since    time.Time // when that was answered

	decisions []queue.Decision
	issued    queue.Issued
}

// tick begins a visit of r, if the time is right.
func (t *term) tick(ctx context.Context, r *room, due time.Time) {
	if t.books.down() { // nobody is taken who could not be let through
		t.held = append(t.held, r)
		return
	}
	v := &visit{
		room: r, life: r.life, known: r.known, create: r.create, step: r.nextStep(t.number, t.Leader), above: r.above,
		due: due, start: time.Now(), stock: r.toTell(), tuned: r.tuned, recall: t.mustRecall(r), reservedAt: r.reservedAt,
	}
	t.reserves++
	t.spawnForRoom(ctx, func(ctx context.Context) then {
		err := t.reserve(ctx, v)
		return func(ctx context.Context) {
			t.reserves--
			t.visited(ctx, v, err)
			t.advance(ctx)
		}
	})
}

// reserve does the first half of a tick. It also puts right what stands in its
// way: settings that differ, a generation that has to begin.
func (t *term) reserve(ctx context.Context, v *visit) error {
	if v.create {
		return t.create(ctx, v)
	}
	if v.life.Generation == 0 {
		return t.beginLife(ctx, v)
	}
	err := t.take(ctx, v)
	if dataLost(err, v.life.Generation) {
		return t.beginLife(ctx, v)
	}
	return err
}

func (t *term) take(ctx context.Context, v *visit) (err error) {
	if v.known > 0 && v.known < v.life.Version {
		if err := t.Rooms.Update(ctx, v.life); err != nil {
			return fmt.Errorf("push settings: %w", err)
		}
		v.known = v.life.Version
		t.Log.Info("settings pushed", "room", v.life.Room, "version", v.life.Version)
	}
	if v.step.Term == 0 {
		if v.step.Term, err = t.ownTerm(ctx, v.above); err != nil {
			return fmt.Errorf("take a term: %w", err)
		}
		v.step.Seq = 1
	}
	if v.recall {
		if err := t.recall(ctx, v); err != nil {
			return err
		}
	}
	// What older calls of ours left in processing belongs to ticks that died.
	take := queue.Take{
		Keep: v.step.Seq, Effective: v.batch(), Max: MaxTake, Zone: v.life.Rules.ZoneOffset(time.Now()), Stock: v.stock,
	}
	if v.reserved, err = t.Line.Reserve(ctx, v.life.Room, v.step, take); err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	return nil
}

// ownTerm is a term for one tick, where no lock gives us one.
func (t *term) ownTerm(ctx context.Context, above int64) (int64, error) {
	if above > 0 {
		return t.Terms.Raise(ctx, above)
	}
	return t.Terms.Next(ctx)
}

// visited goes on with a room once its reserve has been answered.
func (t *term) visited(ctx context.Context, v *visit, err error) {
	r := v.room
	r.learnt(v)
	if err != nil {
		t.failed(ctx, v, err)
		return
	}
	t.succeeded(r)
	t.effect()
	r.step, r.above = v.step, 0
	r.reservedAt = time.Now()
	t.recalled(r, v)
	if v.begun {
		t.lostAll(v)
		t.finish(v, 0)
		return
	}
	r.stock.told(v)
	if r.awaitsStock() {
		t.agenda.hasten(t.read, time.Now().Add(shortestSleep))
	}
	if r.observe(v.life, v.reserved) {
		t.Log.Warn("room lost acknowledged state", "room", r.name, "watermarks", v.reserved.Watermarks, "lastScore", v.reserved.LastScore)
		t.Observer.lost(r.name)
	}
	t.drawWaits(ctx, v)
	if len(v.reserved.Taken) == 0 {
		t.finish(v, v.reserved.Wait)
		return
	}
	v.since = time.Now()
	t.reserved = append(t.reserved, v)
}

// finish ends a tick, or a part of it, and plans the next.
func (t *term) finish(v *visit, wait time.Duration) {
	r := v.room
	r.more = v.reserved.More
	switch {
	case v.reserved.More && len(v.reserved.Taken) > 0:
		wait = 0
	case r.known > 0 && r.known < r.life.Version, r.stock.urgent && r.toTell() != nil:
		wait = shortestSleep // what came while the tick was under way
	default:
		wait = sooner(wait)
	}
	t.schedule(r.tick, r, time.Now().Add(wait))
	t.Observer.ticked(Tick{Room: r.name, Late: v.start.Sub(v.due), Took: time.Since(v.start), Granted: v.issued.Granted})
}

// issue does the second half of a tick.
func (t *term) issue(ctx context.Context, v *visit) {
	t.spawnForRoom(ctx, func(ctx context.Context) then {
		err := t.decide(ctx, v)
		if err == nil {
			err = t.send(ctx, v)
		}
		return func(ctx context.Context) { t.wasIssued(ctx, v, err) }
	})
}

// decide gives each candidate a grant, except those who may not go on.
func (t *term) decide(ctx context.Context, v *visit) error {
	members := make([]string, len(v.reserved.Taken))
	for i, c := range v.reserved.Taken {
		members[i] = c.Member
	}
	barred, err := t.Admissions.Barred(ctx, v.life.Room, v.life.Sale, members, v.life.Rules.OneOrder)
	if err != nil {
		return fmt.Errorf("look up who is barred: %w", err)
	}
	v.decisions = make([]queue.Decision, len(members))
	for i, m := range members {
		v.decisions[i].Member = m
		if !barred[m] {
			v.decisions[i].Grant = t.NewGrant()
		}
	}
	return nil
}

// send issues, again where nobody knows whether the last call has arrived: with
// the same grants, so that what was done already is not done twice.
func (t *term) send(ctx context.Context, v *visit) (err error) {
	for try := 1; ; try++ {
		v.issued, err = t.Line.Issue(ctx, v.life.Room, v.step, v.decisions)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, queue.ErrUnavailable) || try == issueTries:
			return fmt.Errorf("issue: %w", err)
		}
		sleep(ctx, backoff(try))
	}
}

func (t *term) wasIssued(ctx context.Context, v *visit, err error) {
	if err != nil {
		t.failed(ctx, v, err)
		return
	}
	v.room.granted(v)
	t.Observer.issued(Admission{
		Room: v.room.name, Lanes: v.life.Lanes, Step: v.step, Candidates: v.reserved.Taken, Decisions: v.decisions, Counts: v.issued,
		Boosts: v.life.Rules.Boosts, Lifted: len(v.reserved.Lifted),
	})
	t.finish(v, v.reserved.Wait)
}

// failed plans the next tick of a room whose tick went wrong. Other rooms are
// not affected.
func (t *term) failed(ctx context.Context, v *visit, err error) {
	r := v.room
	r.more, r.step = false, v.step
	t.Observer.ticked(Tick{Room: r.name, Late: v.start.Sub(v.due), Took: time.Since(v.start), Err: err})
	if t.stopping || r.gone { // nobody will tick it again, so its failure would count for ever
		return
	}
	var stale queue.StaleError
	if errors.As(err, &stale) {
		t.overtaken(ctx, v, stale.Term)
		return
	}
	if r.failures++; r.failures == 1 {
		if t.failing++; t.failing == 1 {
			t.Log.Warn("tick failed", "room", r.name, "error", err)
		}
	}
	if errors.Is(err, queue.ErrGeneration) {
		t.agenda.hasten(t.read, time.Now()) // our copy of the room is old
	}
	t.schedule(r.tick, r, time.Now().Add(backoff(r.failures)))
}

func (t *term) succeeded(r *room) {
	if r.failures > 0 {
		if t.failing--; t.failing == 0 {
			t.Log.Info("ticks succeed again")
		}
	}
	r.failures, r.overtaken = 0, 0
}

// overtaken goes on after STALE: a room has seen a newer term than v's.
func (t *term) overtaken(ctx context.Context, v *visit, seen int64) {
	r := v.room
	switch {
	case t.hold == nil:
		// Another process has ticked the room. Two that tick in step would take
		// the members from each other for ever, so each waits a random time.
		r.above = seen
		r.overtaken++
		wait := rand.N(min(20*time.Millisecond<<min(r.overtaken, 4), 200*time.Millisecond))
		t.schedule(r.tick, r, time.Now().Add(shortestSleep+wait))
	case seen < t.number:
		t.schedule(r.tick, r, time.Now().Add(shortestSleep)) // the term has changed since
	default:
		t.held = append(t.held, r)
		t.raise(ctx, seen)
	}
}

// raise puts the term above one that a room has seen, if the lock is still
// ours: then it was the counter that went back, not we who were replaced.
func (t *term) raise(ctx context.Context, seen int64) {
	if t.raising {
		return
	}
	t.raising = true
	t.spawn(ctx, func(ctx context.Context) then {
		if err := t.hold.extend(ctx); err != nil {
			t.hold.giveUp(err)
			return func(context.Context) {}
		}
		number, err := t.Terms.Raise(ctx, seen)
		return func(context.Context) { t.raised(number, err) }
	})
}

func (t *term) raised(number int64, err error) {
	t.raising = false
	if err != nil {
		// The rooms will be refused again, and that will bring us back here.
		t.Log.Warn("term counter out of reach", "error", err)
		t.unblock(backoff(1))
		return
	}
	t.Log.Info("term raised above one that a room has seen", "from", t.number, "term", number)
	t.number = number
	t.Observer.led(number, true)
	t.unblock(0)
}
