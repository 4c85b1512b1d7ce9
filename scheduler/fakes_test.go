package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// The fakes stand in for Redis and Postgres where a test is about time inside
// the process, or about failures that real servers do not have on demand. They
// decide nothing about rates or places.

// keyspace is the one key that fake locks compete for.
type keyspace struct {
	mu    sync.Mutex
	owner *fakeLock
	ends  time.Time
}

func (k *keyspace) held(now time.Time) bool { return k.owner != nil && now.Before(k.ends) }

// fakeLock behaves like a *redsync.Mutex on one Redis.
type fakeLock struct {
	key     *keyspace
	ttl     time.Duration
	until   time.Time
	extend  func(ctx context.Context) error // before an extend; nil: nothing
	tryLock func() error                    // before a TryLock; nil: nothing
	unlock  func() error                    // before an unlock; nil: nothing
}

func (l *fakeLock) Until() time.Time { return l.until }

func (l *fakeLock) TryLockContext(context.Context) error {
	asked := time.Now()
	if l.tryLock != nil {
		if err := l.tryLock(); err != nil {
			return err
		}
	}
	l.key.mu.Lock()
	defer l.key.mu.Unlock()
	if l.key.held(time.Now()) {
		return errors.New("taken")
	}
	l.key.owner, l.key.ends, l.until = l, time.Now().Add(l.ttl), asked.Add(l.ttl)
	return nil
}

func (l *fakeLock) ExtendContext(ctx context.Context) (bool, error) {
	asked := time.Now()
	if l.extend != nil {
		if err := l.extend(ctx); err != nil {
			return false, err
		}
	}
	l.key.mu.Lock()
	defer l.key.mu.Unlock()
	if l.key.owner != l || !l.key.held(time.Now()) {
		return false, nil
	}
	l.key.ends, l.until = time.Now().Add(l.ttl), asked.Add(l.ttl)
	return true, nil
}

func (l *fakeLock) UnlockContext(context.Context) (bool, error) {
	if l.unlock != nil {
		if err := l.unlock(); err != nil {
			return false, err
		}
	}
	l.key.mu.Lock()
	defer l.key.mu.Unlock()
	if l.key.owner != l || !l.key.held(time.Now()) {
		return false, nil
	}
	l.key.owner = nil
	return true, nil
}

// drop loses the key, as FLUSHALL does.
func (k *keyspace) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owner = nil
}

// fakeTerms is the counter. above remembers what Raise was asked.
type fakeTerms struct {
	mu    sync.Mutex
	n     int64
	above []int64
}

func (f *fakeTerms) Next(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.n, nil
}

func (f *fakeTerms) Raise(_ context.Context, above int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.above = append(f.above, above)
	f.n = max(f.n, above) + 1
	return f.n, nil
}

// world is Redis and Postgres as a scheduler sees them. Its fields are the
// answers, changed by tests under mu.
type world struct {
	mu      sync.Mutex
	lives   map[string]queue.Life
	inRedis map[string]queue.Life // what Create and Update have put there

	reserve func(room string, step queue.Step) (queue.Reservation, error) // nil: WAIT 1 s
	issue   func(room string, step queue.Step) error
	reap    func(room string) (queue.Reaped, error)
	create  func(life queue.Life) error
	advance func(rooms []queue.Progress) error
	read    func() error
	barred  map[string]bool
	counts  func(s *queue.Snapshot) // what a snapshot says of the room's counts
	tuned   map[string]queue.Tuning
	hangs   bool          // snapshots never come
	delay   time.Duration // of every call about a room
	slow    time.Duration // of every reading of lives and writing of progress

	calls []call
	ids   int
}

// call is one call that the scheduler has made.
type call struct {
	what      string // reserve, issue, reap, create, update, begin, advance, lives
	room      string
	at        time.Time
	step      queue.Step
	take      queue.Take
	tuning    queue.Tuning
	decisions []queue.Decision
	progress  []queue.Progress
}

func newWorld(rooms ...string) *world {
	w := &world{lives: map[string]queue.Life{}, inRedis: map[string]queue.Life{}, tuned: map[string]queue.Tuning{}}
	for _, r := range rooms {
		w.lives[r] = life(r)
		w.inRedis[r] = life(r)
	}
	return w
}

// life is a room that has begun.
func life(room string) queue.Life {
	return queue.Life{Room: room, Generation: 5, Sale: 2, Version: 1, Rules: queue.Rules{Batch: 10, Interval: time.Second}}
}

func (w *world) note(c call) {
	c.at = time.Now()
	w.calls = append(w.calls, c)
}

// made returns the calls of one kind, of one room unless room is empty.
func (w *world) made(what, room string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.calls), func(c call) bool {
		return c.what != what || room != "" && c.room != room
	})
}

// forget empties the list of calls.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = nil
}

// change changes the world's answers.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) pass(ctx context.Context) error {
	w.mu.Lock()
	d := w.delay
	w.mu.Unlock()
	return wait(ctx, d)
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, ctx.Err())
	case <-time.After(d):
		return nil
	}
}

func (w *world) Reserve(ctx context.Context, room string, step queue.Step, take queue.Take) (queue.Reservation, error) {
	if err := w.pass(ctx); err != nil {
		return queue.Reservation{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "reserve", room: room, step: step, take: take})
	have, ok := w.inRedis[room]
	switch {
	case !ok:
		return queue.Reservation{}, queue.ErrNoRoom
	case have.Generation != step.Generation:
		return queue.Reservation{}, queue.GenerationError{Generation: have.Generation}
	}
	res, err := queue.Reservation{Wait: time.Second}, error(nil)
	if w.reserve != nil {
		res, err = w.reserve(room, step)
	}
	res.Version = have.Version
	return res, err
}

func (w *world) Issue(ctx context.Context, room string, step queue.Step, decisions []queue.Decision) (queue.Issued, error) {
	if err := w.pass(ctx); err != nil {
		return queue.Issued{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "issue", room: room, step: step, decisions: decisions})
	if w.issue != nil {
		if err := w.issue(room, step); err != nil {
			return queue.Issued{}, err
		}
	}
	return queue.Issued{Granted: len(decisions)}, nil
}

func (w *world) Reap(ctx context.Context, room string) (queue.Reaped, error) {
	if err := w.pass(ctx); err != nil {
		return queue.Reaped{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "reap", room: room})
	if w.reap != nil {
		return w.reap(room)
	}
	return queue.Reaped{}, nil
}

func (w *world) Create(_ context.Context, l queue.Life) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "create", room: l.Room, step: queue.Step{Generation: l.Generation}})
	if w.create != nil {
		if err := w.create(l); err != nil {
			return err
		}
	}
	if l.Generation > w.inRedis[l.Room].Generation {
		w.inRedis[l.Room] = l
	}
	return nil
}

func (w *world) Update(_ context.Context, l queue.Life) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "update", room: l.Room})
	have, ok := w.inRedis[l.Room]
	switch {
	case !ok:
		return queue.ErrNoRoom
	case have.Generation != l.Generation:
		return queue.GenerationError{Generation: have.Generation}
	case l.Version > have.Version:
		w.inRedis[l.Room] = l
	}
	return nil
}

func (w *world) Lives(ctx context.Context) ([]queue.Life, error) {
	lives, slow, err := w.readLives()
	if err != nil {
		return nil, err
	}
	return lives, wait(ctx, slow) // what was read is old by then
}

func (w *world) readLives() ([]queue.Life, time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "lives"})
	if w.read != nil {
		if err := w.read(); err != nil {
			return nil, 0, err
		}
	}
	return slices.Collect(maps.Values(w.lives)), w.slow, nil
}

func (w *world) Begin(_ context.Context, room string, generation int64) (queue.Life, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "begin", room: room, step: queue.Step{Generation: generation}})
	l := w.lives[room]
	if l.Generation != generation {
		return queue.Life{}, queue.ErrGeneration
	}
	l.Generation += 10
	w.lives[room] = l
	return l, nil
}

func (w *world) Drop(_ context.Context, l queue.Life) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "drop", room: l.Room})
	if w.inRedis[l.Room].Generation <= l.Generation {
		delete(w.inRedis, l.Room)
	}
	return nil
}

func (w *world) Dropped(_ context.Context, room string, _ int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "dropped", room: room})
	delete(w.lives, room)
	return nil
}

func (w *world) Advance(ctx context.Context, rooms []queue.Progress) error {
	w.mu.Lock()
	slow := w.slow
	w.mu.Unlock()
	if err := wait(ctx, slow); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "advance", progress: rooms})
	if w.advance != nil {
		return w.advance(rooms)
	}
	return nil
}

func (w *world) Barred(_ context.Context, _ string, _ int64, members []string, _ bool) (map[string]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.barred, nil
}

// someone is a reservation of one member.
func someone(lane int, score int64) queue.Reservation {
	return queue.Reservation{
		Taken:      []queue.Candidate{{Member: fmt.Sprintf("m%d", score), Place: queue.Place{Lane: lane, Score: score}}},
		Wait:       time.Second,
		Watermarks: []int64{0, 0}, LastScore: 1000,
	}
}

// split sends what is about rooms of b to b, and the rest to Line.
type split struct {
	scheduler.Line
	b *world
}

func (s split) Reserve(ctx context.Context, room string, step queue.Step, take queue.Take) (queue.Reservation, error) {
	if _, ok := s.b.lives[room]; ok {
		return s.b.Reserve(ctx, room, step, take)
	}
	return s.Line.Reserve(ctx, room, step, take)
}

func (s split) Reap(ctx context.Context, room string) (queue.Reaped, error) {
	if _, ok := s.b.lives[room]; ok {
		return s.b.Reap(ctx, room)
	}
	return s.Line.Reap(ctx, room)
}
