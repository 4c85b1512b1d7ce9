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
// with those that are ready at the same moment. It decides nothing about what is
// asked, and repeats nothing.
package share

import (
	"context"
	"runtime"
	"sync"
)

// Line is where questions of one kind wait for a call, of which one is on the way
// at a time. It is safe for concurrent use.
type Line[Q, A any] struct {
	// call answers all questions of one call: as many answers, in the same order. An
	// error is the answer to each. Its context has the values of whoever asked
	// first of them, and no end.
	call func(ctx context.Context, questions []Q) ([]A, error)

	mu      sync.Mutex
	next    *group[Q, A] // not called yet; nil: nobody waits
	calling bool
}

// group is a call and what came of it: written before done is closed, and not after.
type group[Q, A any] struct {
	ctx       context.Context // of the call
	questions []Q
	done      chan struct{}

	answers  []A
	err      error
	panicked any
}

// NewLine returns a line of questions that call answers.
func NewLine[Q, A any](call func(ctx context.Context, questions []Q) ([]A, error)) *Line[Q, A] {
	return &Line[Q, A]{call: call}
}

// Ask asks with others, and returns the answer or the error of the call. Whoever
// gives up waiting gets the error of ctx, takes nothing from the others, and
// doesn't learn what came of the question; whoever has given up before is not asked
// for. Where the call panics, Ask does.
func (l *Line[Q, A]) Ask(ctx context.Context, question Q) (answer A, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	g, i := l.join(ctx, question)
	select {
	case <-g.done:
	case <-ctx.Done():
		return answer, ctx.Err()
	}
	switch {
	case g.panicked != nil:
		panic(g.panicked)
	case g.err != nil:
		return answer, g.err
	}
	return g.answers[i], nil
}

// join has a question go with the next call, and sees to it that there is one.
func (l *Line[Q, A]) join(ctx context.Context, question Q) (g *group[Q, A], at int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &group[Q, A]{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	}
	g = l.next
	g.questions = append(g.questions, question)
	if !l.calling {
		l.calling = true
		go l.run()
	}
	return g, len(g.questions) - 1
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
	g.answers, g.err = l.call(g.ctx, g.questions)
}

func (l *Line[Q, A]) take() *group[Q, A] {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.next
	l.next, l.calling = nil, g != nil
	return g
}

// Waiting is how many wait for the next call.
func (l *Line[Q, A]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		return 0
	}
	return len(l.next.questions)
}
