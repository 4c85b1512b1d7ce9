package scheduler

import (
	"container/heap"
	"context"
	"time"
)

// entry is something to do at a time. It is on the agenda at most once.
type entry struct {
	due   time.Time
	run   func(ctx context.Context, due time.Time)
	index int // in the heap; -1 when not on the agenda
}

func newEntry(run func(ctx context.Context, due time.Time)) *entry {
	return &entry{run: run, index: -1}
}

// agenda holds entries by due time. With a thousand rooms a scan of all at
// each wake-up would cost more than their ticks.
type agenda struct{ entries entries }

// at puts e on the agenda for due, or moves it there.
func (a *agenda) at(e *entry, due time.Time) {
	e.due = due
	if e.index < 0 {
		heap.Push(&a.entries, e)
		return
	}
	heap.Fix(&a.entries, e.index)
}

// hasten brings e forward to now. What is not on the agenda is being done.
func (a *agenda) hasten(e *entry, now time.Time) {
	if e.index >= 0 && e.due.After(now) {
		a.at(e, now)
	}
}

// drop takes e off the agenda.
func (a *agenda) drop(e *entry) {
	if e.index >= 0 {
		heap.Remove(&a.entries, e.index)
	}
}

// next takes the first entry that is due, or returns nil.
func (a *agenda) next(now time.Time) *entry {
	if len(a.entries) == 0 || a.entries[0].due.After(now) {
		return nil
	}
	return heap.Pop(&a.entries).(*entry)
}

// wait is how long until the first entry is due.
func (a *agenda) wait(now time.Time) time.Duration {
	if len(a.entries) == 0 {
		return time.Hour
	}
	return a.entries[0].due.Sub(now)
}

// entries implements heap.Interface, the earliest first.
type entries []*entry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *entries) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.index = -1
	return e
}
