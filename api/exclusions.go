package api

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// Exclusions is who is kept out of rooms by operators.
type Exclusions interface {
	// Exclusions lists all of them with a mark for the list; nobody, where seen is
	// the mark of a list that is still the same.
	Exclusions(ctx context.Context, seen string) (bars []room.Bar, mark string, err error)
}

// errBlocked refuses a member whom an operator keeps out.
var errBlocked = errors.New("api: the member is kept out of the room")

// exclusionsAge is how long a process may not know of a block. What it lets in
// meanwhile is refused when its turn comes.
const exclusionsAge = time.Second

// exclusions is the list as this process last read it. Asking is a look into a
// map; one request a second reads the list again, and the others do not wait.
type exclusions struct {
	source  Exclusions // nil: nobody is kept out
	reading *semaphore.Weighted
	tried   atomic.Pointer[time.Time] // when it was last read, or was to be
	failed  error                     // how that went, under reading
	list    atomic.Pointer[exclusionList]
}

type exclusionList struct {
	mark  string
	sales map[string][]int64 // by room and member: 0 for every sale
}

func newExclusions(source Exclusions) *exclusions {
	return &exclusions{source: source, reading: semaphore.NewWeighted(1)}
}

// Members hold no spaces, and names of rooms neither.
func exclusionKey(room, member string) string { return room + " " + member }

// bars tells whether member is kept out of a sale. It fails only where the list
// has never been read: an outage of Postgres leaves the last one in force.
func (e *exclusions) bars(ctx context.Context, room, member string, sale int64) (bool, error) {
	if e.source == nil {
		return false, nil
	}
	if err := e.renew(ctx); err != nil {
		return false, fmt.Errorf("%w: list who is kept out: %w", queue.ErrUnavailable, err)
	}
	for _, of := range e.list.Load().sales[exclusionKey(room, member)] {
		if of == 0 || of == sale {
			return true, nil
		}
	}
	return false, nil
}

// renew reads the list if it is due. Without any list everybody waits for it; if
// it can't be read, it fails for all who have waited, and not for each in turn.
func (e *exclusions) renew(ctx context.Context) error {
	asked := time.Now()
	if e.list.Load() == nil {
		if err := e.reading.Acquire(ctx, 1); err != nil {
			return err
		}
	} else if e.fresh() || !e.reading.TryAcquire(1) {
		return nil
	}
	defer e.reading.Release(1)
	if at := e.tried.Load(); at == nil || at.Before(asked) {
		e.failed = e.read(ctx)
		now := time.Now()
		e.tried.Store(&now)
	}
	if e.list.Load() != nil {
		return nil
	}
	return e.failed
}

func (e *exclusions) fresh() bool {
	at := e.tried.Load()
	return at != nil && time.Since(*at) < exclusionsAge
}

// read does not end with the client that happened to ask. Its time is enough for
// a list of hundreds of thousands: one that is never read would stay what it was.
func (e *exclusions) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), booksTimeout)
	defer cancel()
	seen := ""
	if last := e.list.Load(); last != nil {
		seen = last.mark
	}
	bars, mark, err := e.source.Exclusions(ctx, seen)
	if err != nil || mark == seen {
		return err
	}
	next := &exclusionList{mark: mark, sales: make(map[string][]int64, len(bars))}
	for _, b := range bars {
		key := exclusionKey(b.Room, b.Member)
		next.sales[key] = append(next.sales[key], b.Sale)
	}
	e.list.Store(next)
	return nil
}
