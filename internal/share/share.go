// Package share lets questions share calls.
//
// A call to a server costs most for being a call: a write, a read and two wakings,
// however little is asked. So of those who ask at once nobody calls for themselves:
// whoever comes while a call is on the way goes with the next one.
//
//	asks     a b c          d e f g
//	calls    [a]----> [b c]----> [d e f g]---->
//
// Nobody waits for company: a question that finds no call on the way goes at once,
// with those that are ready at the same moment. And nobody's call grows without end:
// of a crowd so many go with the next, as many with the one after it, and so on. It
// decides nothing about what is asked, and repeats nothing.
package share

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// Line is where questions of one kind wait for a call, of which one is on the way
// at a time. It is safe for concurrent use.
type Line[Q, A any] struct {
	most int
	// call answers all questions of one call: as many answers, in the same order. An
	// error is the answer to each. Its context has the values of whoever asked
	// first of them, and no end.
	call func(ctx context.Context, questions []Q) ([]A, error)

	mu      sync.Mutex
	waiting []*group[Q, A] // in the order of their calls; all but the last are full
	calling bool
}

// group is those who go with one call, and what came of it: written before done is
// closed, and not after.
type group[Q, A any] struct {
	seats []seat[Q]
	done  chan struct{}

	answers  []A
	err      error
	panicked any
}

// seat is one who asks.
type seat[Q any] struct {
	ctx      context.Context
	question Q
	at       int // among the answers; below 0: given up before the call, and not asked for
}

// NewLine returns a line of questions of which call answers most at a time.
func NewLine[Q, A any](most int, call func(ctx context.Context, questions []Q) ([]A, error)) *Line[Q, A] {
	return &Line[Q, A]{most: most, call: call}
}

// Ask asks with others, and returns the answer or the error of the call. Whoever
// gives up waiting gets the error of ctx, and takes nothing from the others: before
// the call the question is not asked, later nobody learns what came of it. Where the
// call panics, Ask does.
func (l *Line[Q, A]) Ask(ctx context.Context, question Q) (answer A, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	g, i := l.join(seat[Q]{ctx: ctx, question: question})
	select {
	case <-g.done:
	case <-ctx.Done():
		return answer, ctx.Err()
	}
	at := g.seats[i].at
	switch {
	case at < 0:
		return answer, ctx.Err()
	case g.panicked != nil:
		panic(g.panicked)
	case g.err != nil:
		return answer, g.err
	}
	return g.answers[at], nil
}

// join has a question go with the next call that has room, and sees to it that
// there is one.
func (l *Line[Q, A]) join(s seat[Q]) (g *group[Q, A], i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.waiting); n > 0 && len(l.waiting[n-1].seats) < l.most {
		g = l.waiting[n-1]
	} else {
		g = &group[Q, A]{done: make(chan struct{})}
		l.waiting = append(l.waiting, g)
	}
	g.seats = append(g.seats, s)
	if !l.calling {
		l.calling = true
		go l.run()
	}
	return g, len(g.seats) - 1
}

// run calls until nobody waits any more.
func (l *Line[Q, A]) run() {
	for {
		runtime.Gosched() // those who are about to ask come first
		g := l.take()
		if g == nil {
			return
		}
		l.answer(g)
	}
}

func (l *Line[Q, A]) answer(g *group[Q, A]) {
	defer close(g.done)
	defer func() { g.panicked = recover() }() // it is theirs who asked
	var ctx context.Context
	questions := make([]Q, 0, len(g.seats))
	for i := range g.seats {
		s := &g.seats[i]
		if s.ctx.Err() != nil {
			s.at = -1
			continue
		}
		if ctx == nil {
			ctx = context.WithoutCancel(s.ctx)
		}
		s.at = len(questions)
		questions = append(questions, s.question)
	}
	if ctx != nil {
		g.answers, g.err = l.call(ctx, questions)
	}
}

func (l *Line[Q, A]) take() *group[Q, A] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calling = len(l.waiting) > 0; !l.calling {
		return nil
	}
	g := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	return g
}

// Waiting is how many wait for a call.
func (l *Line[Q, A]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, g := range l.waiting {
		n += len(g.seats)
	}
	return n
}
