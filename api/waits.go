package api

import (
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// waits compares what members were first told that they would wait with how
// long they waited. Of the places one in sampleOneIn is followed, which the
// place itself decides: no other poll looks at anything here. A process sees
// only those whom it has told and handed the grant to.
type waits struct {
	compared func(room string, told, waited time.Duration) // nil: nothing is followed

	mu    sync.Mutex
	told  map[told]promise
	most  int       // places followed at once
	swept time.Time // when those who did not come were last let go
}

// told names a place. Where a boost has put two at one score, they are taken for one.
type told struct {
	room  string
	score int64
}

// promise is what its member was told, when, by the clock of Redis.
type promise struct {
	at   time.Time
	wait time.Duration
}

const (
	sampleOneIn = 8
	mostWaits   = 4096
	// waitsKept is how much longer than told a place is followed. Whoever has not
	// been seen by then has left, or polls elsewhere.
	waitsKept = 10 * time.Minute
)

func newWaits(compared func(room string, told, waited time.Duration)) *waits {
	return &waits{compared: compared, told: map[told]promise{}, most: mostWaits}
}

// follows tells whether the place is among those that are followed. The low digits
// of times are as good as chance; they are mixed, because a clock may have a coarse
// grain, and scores that go by lot have.
func (w *waits) follows(score int64) bool {
	return w.compared != nil && (uint64(score)*0x9e3779b97f4a7c15>>40)%sampleOneIn == 0
}

// promised remembers the first that a member was told.
func (w *waits) promised(room string, score int64, now time.Time, wait time.Duration) {
	if !w.follows(score) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := told{room, score}
	if _, known := w.told[at]; known {
		return
	}
	if len(w.told) >= w.most && !w.sweep(now) {
		return
	}
	w.told[at] = promise{now, wait}
}

// sweep lets go of those who did not come, once a second at most, and tells
// whether that has made room.
func (w *waits) sweep(now time.Time) bool {
	if since := now.Sub(w.swept); since >= 0 && since < time.Second {
		return false
	}
	w.swept = now
	for at, p := range w.told {
		if now.After(p.at.Add(2*p.wait + waitsKept)) {
			delete(w.told, at)
		}
	}
	return len(w.told) < w.most
}

// came compares, once the member of g learns of it. The wait ended with the
// grant, and not with the poll that found it.
func (w *waits) came(g queue.Grant) {
	if !w.follows(g.Place.Score) {
		return
	}
	at := told{g.Room, g.Place.Score}
	w.mu.Lock()
	p, known := w.told[at]
	delete(w.told, at)
	w.mu.Unlock()
	if known && g.IssuedAt.After(p.at) {
		w.compared(g.Room, p.wait, g.IssuedAt.Sub(p.at))
	}
}
