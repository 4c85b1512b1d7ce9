package load

import (
	"context"
	"sync"
	"time"
)

// entry is something that a person is to do at a time.
type entry struct {
	due time.Duration // since the run began
	who *person
	act act
}

// agenda is all that is still to be done, soonest first. It takes the place of a
// goroutine for each person: 50,000 of them would cost more than what they do.
type agenda struct {
	began time.Time
	mu    sync.Mutex
	heap  []entry
	wake  chan struct{} // something has become due sooner than all the rest
}

func newAgenda(began time.Time) *agenda {
	return &agenda{began: began, wake: make(chan struct{}, 1)}
}

// now is the time on which entries are due.
func (a *agenda) now() time.Duration { return time.Since(a.began) }

// add puts something on the agenda, for now if its time is over.
func (a *agenda) add(e entry) {
	a.mu.Lock()
	a.push(e)
	first := a.heap[0].due == e.due
	a.mu.Unlock()
	if first {
		select {
		case a.wake <- struct{}{}:
		default: // it will be looked at anyway
		}
	}
}

// run hands out what is due, until ctx ends. It does not wait for its time twice:
// what nobody takes at once keeps its due time, and the next follows at its own.
func (a *agenda) run(ctx context.Context, out chan<- entry) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e, wait, ok := a.next()
		if ok && wait <= 0 {
			select {
			case out <- e:
				continue
			case <-ctx.Done():
				return
			}
		}
		if !ok {
			wait = time.Hour
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-a.wake:
		case <-ctx.Done():
			return
		}
	}
}

// clear takes everything off the agenda.
func (a *agenda) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.heap)
	a.heap = a.heap[:0]
}

// next takes the first entry if it is due, or says in how long it will be; false
// where there is none.
func (a *agenda) next() (e entry, wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.heap) == 0 {
		return e, 0, false
	}
	e = a.heap[0]
	if wait = e.due - a.now(); wait <= 0 {
		a.pop()
	}
	return e, wait, true
}

// push and pop keep a binary heap: that of the standard library would make an
// allocation for every entry.
func (a *agenda) push(e entry) {
	a.heap = append(a.heap, e)
	for i := len(a.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if a.heap[parent].due <= a.heap[i].due {
			return
		}
		a.heap[parent], a.heap[i] = a.heap[i], a.heap[parent]
		i = parent
	}
}

func (a *agenda) pop() {
	last := len(a.heap) - 1
	a.heap[0], a.heap[last] = a.heap[last], entry{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		least := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < last && a.heap[child].due < a.heap[least].due {
				least = child
			}
		}
		if least == i {
			return
		}
		a.heap[i], a.heap[least] = a.heap[least], a.heap[i]
		i = least
	}
}
