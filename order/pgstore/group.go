package pgstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/order"
)

const (
	// groupsAtOnce is how many groups are committed at a time: while one waits for
	// the disk another is written.
	groupsAtOnce = 2
	// A group that took longer than slow has to have gained something by it; what took
	// less than quick lets twice as many share the next one.
	slow, quick = 500 * time.Millisecond, 50 * time.Millisecond
)

// groups has the orders that wait for a transaction. Those that are ready while
// others are being committed form the next group; nobody waits for company.
//
// Nothing runs by itself: of those in line, whoever gets one of the slots takes
// the first of them, and commits for all that they are.
type groups struct {
	most  int // orders in one transaction, whatever happens
	slots chan struct{}

	mu   sync.Mutex
	line []*attempt
	size int           // orders in one transaction, as things are; 1: nobody waits in line
	one  time.Duration // that the last order took which was alone
}

// attempt is an order that waits for a group, and then for what becomes of it.
type attempt struct {
	order    order.Order
	deadline time.Time // zero: none
	inLine   bool      // under the mutex of groups
	done     chan struct{}

	// Written before done is closed, and not after.
	created order.Order
	err     error
}

// errAlone says that an order is not written and has to be tried by itself.
var errAlone = errors.New("not in a group")

func newGroups(most int) *groups {
	return &groups{most: most, size: most, slots: make(chan struct{}, groupsAtOnce)}
}

func (g *groups) join(ctx context.Context, o order.Order) *attempt {
	a := &attempt{order: o, inLine: true, done: make(chan struct{})}
	a.deadline, _ = ctx.Deadline()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line = append(g.line, a)
	return a
}

// take gives a those whose turn it is, first come first; none if a is in a group
// itself by now: whoever is still in line takes care of themselves.
func (g *groups) take(a *attempt) []*attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !a.inLine {
		return nil
	}
	n := min(g.size, len(g.line))
	taken := g.line[:n:n]
	g.line = g.line[n:]
	for _, b := range taken {
		b.inLine = false
	}
	return taken
}

// learn notes how long a transaction of n orders took. Sharing saves what each
// transaction costs. Where each order is what costs, it only makes orders wait in
// turn that could be written side by side: then nothing is shared until orders are
// quick again.
func (g *groups) learn(n int, took time.Duration, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n == 1 {
		g.one = took
	}
	switch {
	case took < quick:
		g.size = min(g.most, max(g.size, 2*n))
	case n > 1 && took > slow && (failed || took > time.Duration(n)*g.one/2):
		g.size = 1
	}
}

func (g *groups) shares() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.size > 1
}

// withdraw takes a out of the line, and says whether it was still there.
func (g *groups) withdraw(a *attempt) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !a.inLine {
		return false
	}
	a.inLine = false
	g.line = slices.DeleteFunc(slices.Clone(g.line), func(b *attempt) bool { return a == b })
	return true
}

func (a *attempt) end(o order.Order, err error) {
	a.created, a.err = o, err
	close(a.done)
}

// abandon ends an attempt that a panic has left without an answer.
func (a *attempt) abandon() {
	select {
	case <-a.done:
	default:
		a.end(order.Order{}, order.ErrOutcomeUnknown)
	}
}

// grouped writes o with others that are ready, or says errAlone; also where no
// group has taken it for a while, so that a slow one holds nobody up. Once a group
// has o its client can't call it off any more: the others are not to suffer.
func (s *Store) grouped(ctx context.Context, o order.Order) (order.Order, error) {
	g := s.groups
	if !g.shares() {
		return order.Order{}, errAlone
	}
	a := g.join(ctx, o)
	patience := time.NewTimer(s.opts.Patience)
	defer patience.Stop()
	for waiting := true; waiting; {
		select {
		case <-a.done:
			waiting = false
		case g.slots <- struct{}{}:
			waiting = s.lead(ctx, a)
		case <-patience.C:
			if g.withdraw(a) {
				return order.Order{}, errAlone
			}
			waiting = false
		case <-ctx.Done():
			if g.withdraw(a) {
				return order.Order{}, unavailable(ctx.Err())
			}
			waiting = false
		}
	}
	<-a.done
	return a.created, a.err
}

// lead commits the group whose turn it is, with the slot that a has got, and says
// whether a was in line for it.
func (s *Store) lead(ctx context.Context, a *attempt) bool {
	defer func() { <-s.groups.slots }()
	group := s.groups.take(a)
	defer func() {
		for _, b := range group {
			b.abandon()
		}
	}()
	if len(group) == 0 {
		return false
	}
	ctx, cancel := until(ctx, group)
	defer cancel()
	switch len(group) {
	case 1:
		group[0].end(s.alone(ctx, group[0].order))
	default:
		s.commitGroup(ctx, group)
	}
	return true
}

// until is ctx without its end, but with the first deadline of a group.
func until(ctx context.Context, group []*attempt) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	var first time.Time
	for _, a := range group {
		if first.IsZero() || !a.deadline.IsZero() && a.deadline.Before(first) {
			first = a.deadline
		}
	}
	if first.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, first)
}

// commitGroup runs one transaction for a group, and ends every attempt: placed,
// short of stock, or unknown where the outcome of COMMIT is. Whatever else came
// in the way, of one of them or of all, each is tried alone.
func (s *Store) commitGroup(ctx context.Context, group []*attempt) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Patience)
	defer cancel()
	began := time.Now()
	out, err := with(ctx, s, func(conn *pgx.Conn) (outcomes, error) { return createGroup(ctx, conn, group) })
	s.groups.learn(len(group), time.Since(began), err != nil)
	if err == nil && len(out.placed) > 0 {
		s.opts.Committed()
	}
	for _, a := range group {
		created, written := out.placed[a]
		switch {
		case written && errors.Is(err, order.ErrOutcomeUnknown):
			a.end(order.Order{}, err)
		case err == nil && written:
			a.end(created, nil)
		case err == nil && out.short[a] != nil:
			a.end(order.Order{}, out.short[a])
		default:
			a.end(order.Order{}, errAlone)
		}
	}
}
