package pgstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/order"
)

// groupsAtOnce is how many groups are committed at a time: while one waits for
// the disk another is written.
const groupsAtOnce = 2

// groups has the orders that wait for a transaction. Those that are ready while
// others are being committed form the next group; nobody waits for company.
//
// Nothing runs by itself: of those who wait, whoever gets one of the slots takes
// the first in line, and commits for all of them.
type groups struct {
	most  int // orders in one transaction
	slots chan struct{}

	mu   sync.Mutex
	line []*attempt
}

// attempt is an order that waits for a group, and then for what becomes of it.
type attempt struct {
	order    order.Order
	deadline time.Time // zero: none
	done     chan struct{}

	// Written before done is closed, and not after.
	created order.Order
	err     error
}

// errAlone says that an order is not written and has to be tried by itself.
var errAlone = errors.New("not in a group")

func newGroups(most int) *groups {
	return &groups{most: most, slots: make(chan struct{}, groupsAtOnce)}
}

func (g *groups) join(ctx context.Context, o order.Order) *attempt {
	a := &attempt{order: o, done: make(chan struct{})}
	a.deadline, _ = ctx.Deadline()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line = append(g.line, a)
	return a
}

// take returns those whose turn it is, first come first.
func (g *groups) take() []*attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(g.most, len(g.line))
	taken := g.line[:n:n]
	g.line = g.line[n:]
	return taken
}

// withdraw takes a out of the line, and says whether it was still there.
func (g *groups) withdraw(a *attempt) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, b := range g.line {
		if a == b {
			g.line = append(g.line[:i:i], g.line[i+1:]...)
			return true
		}
	}
	return false
}

func (a *attempt) end(o order.Order, err error) {
	a.created, a.err = o, err
	close(a.done)
}

// grouped writes o with others that are ready, or says errAlone. Once a group
// has o its client can't call it off any more: the others are not to suffer.
func (s *Store) grouped(ctx context.Context, o order.Order) (order.Order, error) {
	g, a := s.groups, s.groups.join(ctx, o)
	for {
		select {
		case <-a.done:
			return a.created, a.err
		case g.slots <- struct{}{}:
			s.commitNext(ctx)
			<-g.slots
		case <-ctx.Done():
			if g.withdraw(a) {
				return order.Order{}, unavailable(ctx.Err())
			}
			<-a.done
			return a.created, a.err
		}
	}
}

// commitNext commits the next group, whoever is in it.
func (s *Store) commitNext(ctx context.Context) {
	group := s.groups.take()
	switch len(group) {
	case 0:
	case 1:
		a := group[0]
		ctx, cancel := until(ctx, group)
		defer cancel()
		a.end(s.alone(ctx, a.order))
	default:
		ctx, cancel := until(ctx, group)
		defer cancel()
		s.commitGroup(ctx, group)
	}
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
	connected := false
	out, err := with(ctx, s, func(conn *pgx.Conn) (outcomes, error) {
		connected = true
		return createGroup(ctx, conn, group)
	})
	if err == nil && len(out.placed) > 0 {
		s.opts.Committed()
	}
	for _, a := range group {
		created, written := out.placed[a]
		switch {
		case !connected, written && errors.Is(err, order.ErrOutcomeUnknown):
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
