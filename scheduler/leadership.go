package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Why a term may end, other than by the end of Run.
var (
	errTrustOver = errors.New("no extend in time: the lock may have run out")
	errNotOurs   = errors.New("the lock is no longer ours")
	errNoEffect  = errors.New("no tick had an effect")
)

// hold is the lock while it is ours.
type hold struct {
	mu     sync.Mutex // redsync's fields are plain: one call at a time
	lock   Lock
	ttl    time.Duration
	giveUp context.CancelCauseFunc // ends the term's work
	fuse   *time.Timer             // gives up when trust runs out, even while an extend hangs
}

// trust is how much longer the lock can be relied on. The margin is for the
// time a call takes to arrive, and for clocks that do not run alike.
func trust(lock Lock, ttl time.Duration) time.Duration {
	return time.Until(lock.Until()) - ttl/10
}

func newHold(lock Lock, ttl time.Duration, giveUp context.CancelCauseFunc) *hold {
	return &hold{
		lock: lock, ttl: ttl, giveUp: giveUp,
		fuse: time.AfterFunc(trust(lock, ttl), func() { giveUp(errTrustOver) }),
	}
}

// extend prolongs the lock. After an error the term is over: what is in doubt
// is not led by.
func (h *hold) extend(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, h.ttl/6)
	defer cancel()
	ok, err := h.lock.ExtendContext(call)
	switch left := trust(h.lock, h.ttl); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case taken(err) || err == nil && !ok:
		return errNotOurs
	case err != nil:
		return fmt.Errorf("extend the leader lock: %w", err)
	case left <= 0:
		return errTrustOver
	default:
		h.fuse.Reset(left)
		return nil
	}
}

// release unlocks. It tells whether Redis has confirmed it.
func (h *hold) release(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fuse.Stop()
	return unlock(ctx, h.lock)
}

// unlock outlives ctx: a process that stops must not make the others wait.
func unlock(ctx context.Context, lock Lock) bool {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	ok, err := lock.UnlockContext(call)
	return ok && err == nil
}

// elected tries once to get the lock.
func (s *Scheduler) elected(ctx context.Context) bool {
	// A lock that was not given back is still in our name, for instance after a
	// restart of Redis: without this we would wait for its end like a stranger's.
	if s.owed && time.Now().Before(s.Lock.Until()) {
		s.owed = !unlock(ctx, s.Lock)
	}
	// Not cut short by ctx: a lock taken by a call whose answer nobody awaits
	// would keep everybody out for a whole TTL.
	err := s.Lock.TryLockContext(context.WithoutCancel(ctx))
	if err != nil {
		s.reachable(taken(err), err)
		return false
	}
	s.reachable(true, nil)
	s.owed = true
	// The answer may have come so late that the lock is as good as over.
	if ctx.Err() != nil || trust(s.Lock, s.TTL) <= 0 {
		s.owed = !unlock(ctx, s.Lock)
		return false
	}
	return true
}

// reachable logs when Redis goes out of a candidate's reach, once.
func (s *Scheduler) reachable(now bool, err error) {
	if !now && !s.unreachable {
		s.Log.Warn("leader lock out of reach", "error", err)
	}
	s.unreachable = !now
}

// lead works through one term, and returns how long to let others try first.
func (s *Scheduler) lead(ctx context.Context) time.Duration {
	work, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	h := newHold(s.Lock, s.TTL, giveUp)
	number, err := s.firstTerm(work)
	if err != nil {
		s.Log.Warn("no term to lead", "error", err)
		s.owed = !h.release(ctx)
		return 0
	}
	s.Log.Info("leading", "term", number)
	s.Observer.led(number, true)
	t := newTerm(s, number, h)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.run(ctx, work)
	}()
	cause := s.keep(ctx, work, t)
	s.stepDown(ctx, t, cause, ended)
	if errors.Is(cause, errNoEffect) {
		return s.TTL / 2
	}
	return 0
}

func (s *Scheduler) firstTerm(ctx context.Context) (int64, error) {
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return s.Terms.Next(call)
}

// keep extends the lock until the term is over, and returns why it is; nil
// when ctx has ended.
func (s *Scheduler) keep(ctx, work context.Context, t *term) error {
	extend := time.NewTicker(s.TTL / 3)
	defer extend.Stop()
	watchdog := time.NewTimer(patience)
	defer watchdog.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-work.Done():
			return context.Cause(work)
		case <-extend.C:
			if err := t.hold.extend(work); err != nil {
				return err
			}
		case <-watchdog.C:
			idle := t.idle()
			if idle >= patience {
				return errNoEffect
			}
			watchdog.Reset(patience - idle)
		}
	}
}

// stepDown ends t and lets go of the lock, in this order where possible: a tick
// under way while another leads would be refused, and so for nothing. A loop
// that is stuck does not keep the lock.
func (s *Scheduler) stepDown(ctx context.Context, t *term, cause error, ended <-chan struct{}) {
	if cause != nil {
		t.hold.giveUp(cause)
	}
	patient := time.NewTimer(grace + grace/10)
	defer patient.Stop()
	select {
	case <-ended:
	case <-patient.C:
	}
	s.owed = !t.hold.release(ctx)
	<-ended
	if cause != nil {
		s.Log.Warn("no longer leading", "term", t.number, "cause", cause)
	} else {
		s.Log.Info("no longer leading", "term", t.number)
	}
	s.Observer.led(t.number, false)
}
