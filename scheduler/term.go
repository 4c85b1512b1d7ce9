package scheduler

import (
	"context"
	"sync/atomic"
	"time"
)

// then is what the loop does with the answer of a call.
type then func(ctx context.Context)

// term is one leadership period at work. The goroutine of run owns all its
// fields but effective; calls run beside it and see copies.
type term struct {
	*Scheduler
	hold   *hold // nil with the lock off
	number int64 // 0 with the lock off: then each tick takes one of its own

	agenda   agenda
	rooms    map[string]*room
	dropping map[string]bool // deleted rooms being removed
	done     chan then
	flying   int // calls of any kind under way
	calls    int // of them, about one room

	ready    []*visit // progress is written: to be issued
	reserved []*visit // progress still to be written
	reserves int      // rooms being reserved right now
	writing  bool     // an Advance is under way
	write    *entry   // the next Advance
	books    ledger

	read     *entry // the next reading of all lives
	readDown bool   // the last one failed

	held     []*room // due, and waiting for Postgres or for a new term
	raising  bool    // a new term is being fetched
	failing  int     // rooms whose last tick failed
	stopping bool    // nothing new is begun

	began     time.Time
	effective atomic.Int64 // when a tick last had an effect, since began
}

func newTerm(s *Scheduler, number int64, h *hold) *term {
	t := &term{Scheduler: s, hold: h, number: number, rooms: map[string]*room{}, dropping: map[string]bool{}, done: make(chan then), began: time.Now()}
	t.read = newEntry(t.readLives)
	t.write = newEntry(func(ctx context.Context, _ time.Time) { t.advance(ctx) })
	t.agenda.at(t.read, t.began)
	for _, life := range s.lives {
		t.adopt(life)
	}
	return t
}

// run ticks until stop or work ends. When stop ends, what has been reserved is
// still issued; when work ends, calls are cut short.
func (t *term) run(stop, work context.Context) {
	work, cancel := context.WithCancel(work)
	defer cancel()
	wake := time.NewTimer(0)
	defer wake.Stop()
	last := time.NewTimer(time.Hour)
	last.Stop()
	stopped, ended := stop.Done(), work.Done()
	for {
		t.begin(work, wake)
		if t.stopping && t.flying == 0 {
			return
		}
		select {
		case <-stopped:
			t.stopping, stopped = true, nil
			last.Reset(grace)
			defer last.Stop()
		case <-ended:
			t.stopping, ended = true, nil
		case <-last.C:
			cancel()
		case <-wake.C:
		case next := <-t.done:
			t.flying--
			next(work)
		}
	}
}

// begin starts what is due: first the second halves of ticks, then, unless the
// term is about to end, what the agenda has.
func (t *term) begin(ctx context.Context, wake *time.Timer) {
	for len(t.ready) > 0 && t.calls < maxCalls {
		v := t.ready[0]
		t.ready = t.ready[1:]
		t.issue(ctx, v)
	}
	if t.stopping {
		wake.Stop()
		return
	}
	now := time.Now()
	for t.calls < maxCalls {
		e := t.agenda.next(now)
		if e == nil {
			wake.Reset(t.agenda.wait(now))
			return
		}
		e.run(ctx, e.due)
	}
	wake.Stop() // the end of any call brings us back here
}

// spawn makes a call beside the loop, which then does what call returns.
func (t *term) spawn(ctx context.Context, call func(ctx context.Context) then) {
	t.flying++
	go func() {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		t.done <- call(ctx)
	}()
}

// spawnForRoom is spawn for the calls that are bounded by maxCalls.
func (t *term) spawnForRoom(ctx context.Context, call func(ctx context.Context) then) {
	t.calls++
	t.spawn(ctx, func(ctx context.Context) then {
		next := call(ctx)
		return func(ctx context.Context) {
			t.calls--
			next(ctx)
		}
	})
}

// effect records that the term does what it is for.
func (t *term) effect() { t.effective.Store(int64(time.Since(t.began))) }

// idle is how long the term has been without effect.
func (t *term) idle() time.Duration {
	return time.Since(t.began) - time.Duration(t.effective.Load())
}

// unblock lets the rooms that have waited tick after d.
func (t *term) unblock(d time.Duration) {
	due := time.Now().Add(d)
	for _, r := range t.held {
		t.schedule(r.tick, r, due)
	}
	t.held = nil
}

// schedule puts an entry of r on the agenda, unless r is gone.
func (t *term) schedule(e *entry, r *room, due time.Time) {
	if !r.gone {
		t.agenda.at(e, due)
	}
}

// sooner is a wait within what the loop accepts.
func sooner(wait time.Duration) time.Duration {
	return min(max(wait, shortestSleep), longestSleep)
}
