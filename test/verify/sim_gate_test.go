//go:build faults

package verify

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// gate is where everything that a simulated process says to Redis or Postgres,
// and every failpoint it passes, stands still until the simulation lets it on.
// One goes on at a time, so the interleaving is the simulation's choice and not
// the machine's.
type gate struct {
	mu      sync.Mutex
	waiting []*stop
	order   int
	arrived chan struct{} // holds one token while somebody may be waiting
}

// stop is one goroutine standing at the gate.
type stop struct {
	node    *node
	kind    string // "redis", "postgres", "point"
	what    string // script, statement or failpoint
	order   int    // of arrival
	verdict chan verdict
}

// verdict is what becomes of whoever stood at the gate.
type verdict struct {
	fate  fate
	delay time.Duration // of delayed and late
}

// fate is one way in which a call can go.
type fate int

// The fates. A call that is "late" has failed for its caller, who has waited
// for delay, and is carried out some time after that.
const (
	carriedOut fate = iota
	replyLost       // carried out, and the caller never learns of it
	echoed          // carried out, and after delay once more
	twice           // carried out, the reply lost, and sent again by the driver
	notSent         // the server can't be reached
	delayed         // carried out after delay
	late            // the caller gives up; carried out after delay
	noAnswer        // sent and carried out; the connection ends instead of an answer
	spoilt          // of a COMMIT: its transaction has failed before, unnoticed
)

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1)} }

// pass waits for the verdict. Of a node that has crashed nothing goes on.
func (g *gate) pass(ctx context.Context, n *node, kind, what string) verdict {
	s := &stop{node: n, kind: kind, what: what, verdict: make(chan verdict, 1)}
	g.mu.Lock()
	if n.crashed() {
		g.mu.Unlock()
		return verdict{fate: notSent}
	}
	g.order++
	s.order = g.order
	g.waiting = append(g.waiting, s)
	g.mu.Unlock()
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	v := <-s.verdict
	if v.fate == delayed {
		pause(ctx, v.delay)
		if n.crashed() {
			return verdict{fate: notSent}
		}
	}
	return v
}

// pick takes one of those who wait. Which one only the seed decides: they are
// sorted by who they are before it is asked.
func (g *gate) pick(rnd *rand.Rand) *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return nil
	}
	slices.SortStableFunc(g.waiting, func(a, b *stop) int {
		return cmp.Or(cmp.Compare(a.node.name, b.node.name), cmp.Compare(a.kind, b.kind), cmp.Compare(a.what, b.what), cmp.Compare(a.order, b.order))
	})
	i := rnd.IntN(len(g.waiting))
	s := g.waiting[i]
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return s
}

// dismiss lets everybody of a crashed node go, with nothing done.
func (g *gate) dismiss(n *node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(s *stop) bool {
		if s.node != n {
			return false
		}
		s.verdict <- verdict{fate: notSent}
		return true
	})
}

func (s *stop) String() string { return fmt.Sprintf("%s %s %s", s.node.name, s.kind, s.what) }

// pause sleeps, but not beyond ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
