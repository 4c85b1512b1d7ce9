package api

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// Snapshots reads whole rooms.
type Snapshots interface {
	Snapshot(ctx context.Context, room string) (queue.Snapshot, error)
	SnapshotMarks(ctx context.Context, room string) (queue.Snapshot, error)
}

// How old the view of a room may be that people are shown, and its marks.
const (
	viewAge  = 250 * time.Millisecond
	marksAge = time.Second
	// staleAge is how old a view may be while another request is renewing it.
	staleAge = time.Second
	// listTimeout bounds the reading of the list of rooms.
	listTimeout = time.Second
)

// view is a room as this process last read it.
type view struct {
	queue.Snapshot
	settings room.Settings
	read     time.Time    // of the process's monotonic clock
	pace     []queue.Pace // per lane
	// newcomers is how many places a second are made; 0 where nothing depends on it.
	newcomers float64
	// failedOpen says that it is of Postgres and not of Redis, which is out of reach.
	failedOpen bool
}

// State is that of the snapshot, but where there is no Redis to have one.
func (v *view) State(now time.Time) queue.RoomState {
	if v.failedOpen {
		return queue.FailedOpen
	}
	return v.Snapshot.State(now)
}

// now is the time of Redis, by how long ago it was asked.
func (v *view) now() time.Time { return v.Snapshot.Now.Add(time.Since(v.read)) }

// lane is the name of a lane; empty where the settings have none of that index.
func (v *view) lane(i int) string {
	if i < len(v.settings.Lanes) {
		return v.settings.Lanes[i].Name
	}
	return ""
}

func (v *view) waiting(lane int) int64 {
	if lane < len(v.Lanes) {
		return v.Lanes[lane].Waiting
	}
	return 0
}

// inLine is how many stand in line with those of a lane: all, in one line.
func (v *view) inLine(lane int) int64 {
	if v.Rules.OneLine {
		return v.Waiting()
	}
	return v.waiting(lane)
}

// enteredAt is when somebody came: by the score, and what the lane's boost has
// taken off it. Of those who came under another boost it is as far wrong.
func (v *view) enteredAt(place queue.Place, now time.Time) time.Time {
	at := place.EnteredAt().Add(v.Rules.Boost(place.Lane))
	if place.EnteredAt().Before(now) && at.After(now) {
		at = now
	}
	return at.UTC()
}

// mayHaveLost tells whether the room, which is in this generation now, can have
// lost the place of a ticket. The script that restores decides; this keeps
// tickets of places that have long been used from costing a question to Postgres
// at every poll.
func (v *view) mayHaveLost(t credential.Ticket, generation int64) bool {
	switch {
	case t.Place.Score == 0 || t.Place.Lane >= len(v.Lanes) || t.Generation < v.RestorableFrom:
		return false
	case v.Rules.Lottery && t.Place.Drawn():
		return false // whoever enters again has the same place
	case v.Generation < generation:
		return true // the view is of before a loss, and knows nothing of it
	case t.Generation == v.Generation:
		return t.Place.Score > v.Lanes[t.Place.Lane].Watermark
	default:
		return v.now().Before(v.Began.Add(v.Rules.ForgetAfter))
	}
}

// rooms is what this process knows of all rooms: their names from Postgres,
// their views from Redis. Requests share one read.
type rooms struct {
	snapshots Snapshots
	books     Books
	names     atomic.Pointer[map[string]*entry]
	listing   *semaphore.Weighted // a lock that ends with the request that waits for it
	listed    time.Time           // when it was last tried, under listing
	failed    error               // how that went, under listing
}

// entry is one room's cached view.
type entry struct {
	reading *semaphore.Weighted
	failure struct { // the last read that failed, under reading
		at  time.Time
		err error
	}
	view  atomic.Pointer[view]
	marks atomic.Pointer[view]
	// generation is what Postgres says. Redis may have an older one for a moment:
	// of a sale that has been flushed, or of a room that was deleted.
	generation atomic.Int64
}

func newRooms(s Snapshots, b Books) *rooms {
	r := &rooms{snapshots: s, books: b, listing: semaphore.NewWeighted(1)}
	r.names.Store(&map[string]*entry{})
	return r
}

// refresh reads the list of rooms, unless that was tried less than age ago. An
// error leaves the list as it was: rooms do not vanish because Postgres is away.
func (r *rooms) refresh(ctx context.Context, age time.Duration) error {
	if err := r.listing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.listing.Release(1)
	if time.Since(r.listed) < age {
		return r.failed
	}
	// Others wait for the answer, too, heartbeats among them: it must not hang,
	// nor end with the client that happened to ask.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
	defer cancel()
	rooms, err := r.books.Generations(ctx)
	r.listed, r.failed = time.Now(), err
	if err != nil {
		return err
	}
	old, next := *r.names.Load(), make(map[string]*entry, len(rooms))
	for name, generation := range rooms {
		e, ok := old[name]
		if !ok {
			e = &entry{reading: semaphore.NewWeighted(1)}
		}
		e.generation.Store(generation)
		next[name] = e
	}
	r.names.Store(&next)
	return nil
}

// find returns the entry of a room. One that is not in the list may be new:
// the list is read again, at most every 100 ms however many ask.
func (r *rooms) find(ctx context.Context, name string) (*entry, error) {
	if e, ok := (*r.names.Load())[name]; ok {
		return e, nil
	}
	if !room.ValidName(name) {
		return nil, errRoomNotFound
	}
	if err := r.refresh(ctx, 100*time.Millisecond); err != nil {
		return nil, fmt.Errorf("%w: list rooms: %w", queue.ErrUnavailable, err)
	}
	if e, ok := (*r.names.Load())[name]; ok {
		return e, nil
	}
	return nil, errRoomNotFound
}

// get returns a view of a room that is at most viewAge old; staleAge while
// another request is renewing it.
func (r *rooms) get(ctx context.Context, name string) (*view, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.current(e.renew(ctx, &e.view, viewAge, func(last *view) (*view, error) {
		s, err := r.snapshots.Snapshot(ctx, name)
		return newView(last, s, err)
	}))
}

// withMarks is get for the public status.
func (r *rooms) withMarks(ctx context.Context, name string) (*view, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.current(e.renew(ctx, &e.marks, marksAge, func(last *view) (*view, error) {
		s, err := r.snapshots.SnapshotMarks(ctx, name)
		return newView(last, s, err)
	}))
}

// current refuses a view of a generation that is over: whoever entered there
// would lose the place at once.
func (e *entry) current(v *view, err error) (*view, error) {
	if err == nil && v.Generation < e.generation.Load() {
		return nil, queue.GenerationError{Generation: v.Generation}
	}
	return v, err
}

// renew returns what is at at, reading it again where it is older than age.
// While one request reads, the others make do with the last view, if it is not
// too old, or wait; if it fails, it fails for all of them. (A Redis that hangs
// would else be asked by each in turn, and the last would wait for all.)
func (e *entry) renew(ctx context.Context, at *atomic.Pointer[view], age time.Duration, read func(last *view) (*view, error)) (*view, error) {
	last, asked := at.Load(), time.Now()
	if last.younger(age) {
		return last, nil
	}
	if !last.younger(age + staleAge) {
		if err := e.reading.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("%w: wait for the view of the room: %w", queue.ErrUnavailable, err)
		}
	} else if !e.reading.TryAcquire(1) {
		return last, nil
	}
	defer e.reading.Release(1)
	if last = at.Load(); last.younger(age) {
		return last, nil
	}
	if e.failure.at.After(asked) {
		return nil, e.failure.err
	}
	next, err := read(last)
	if err != nil && !errors.Is(err, context.Canceled) { // that is one client's own
		e.failure.at, e.failure.err = time.Now(), err
	}
	if err != nil {
		return nil, err
	}
	at.Store(next)
	return next, nil
}

func (v *view) younger(age time.Duration) bool { return v != nil && time.Since(v.read) < age }

func newView(last *view, s queue.Snapshot, err error) (*view, error) {
	if err != nil {
		return nil, err
	}
	v := &view{Snapshot: s, read: time.Now(), pace: make([]queue.Pace, len(s.Lanes))}
	if v.settings, err = room.Stored(s.Settings); err != nil {
		return nil, fmt.Errorf("settings of room %s: %w", s.Room, err)
	}
	v.countNewcomers(last)
	for i := range s.Lanes {
		if last != nil && last.Generation == s.Generation && i < len(last.pace) {
			v.pace[i] = last.pace[i]
		}
		v.pace[i] = v.pace[i].Next(v.sample(i), s.Rules.Interval)
	}
	return v, nil
}

// sample is a lane as its pace is measured by.
func (v *view) sample(lane int) queue.Sample {
	l := v.Lanes[lane]
	s := queue.Sample{At: v.Snapshot.Now, Moves: v.moves(v.Snapshot.Now), Waiting: l.Waiting, Admitted: l.Admitted, Passed: l.Passed}
	if v.Rules.OneLine { // it moves as a whole
		s.Waiting, s.Admitted, s.Passed = 0, 0, 0
		for _, l := range v.Lanes {
			s.Waiting += l.Waiting
			s.Admitted += l.Admitted
			s.Passed += l.Passed
		}
	}
	return s
}

// moves tells whether the room lets people through at now.
func (v *view) moves(now time.Time) bool {
	state := v.State(now)
	return !v.Draw.Undecided() && (state == queue.Open || state == queue.Draining || state == queue.Off)
}

// estimate is how long somebody with so many ahead will wait from now on; false where
// nothing has been measured, or the room lets nobody through.
func (v *view) estimate(lane int, ahead int64, now time.Time) (queue.Wait, bool) {
	if !v.moves(now) || lane >= len(v.pace) {
		return queue.Wait{}, false
	}
	return v.pace[lane].Wait(ahead)
}
