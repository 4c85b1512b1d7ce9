package e2e

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// balancer sends requests to processes that say they are ready, in turn, as
// what stands in front of them does.
type balancer struct {
	w    *world
	next func() *process
	red  map[*process]*atomic.Bool
}

func (w *world) balance(all ...*process) *balancer {
	l := &balancer{w: w, next: turns(all...), red: map[*process]*atomic.Bool{}}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	for _, p := range all {
		l.red[p] = &atomic.Bool{}
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for p, red := range l.red {
				red.Store(p.ended() || w.health(p) != 200)
			}
			time.Sleep(20 * time.Millisecond) // between two looks, as a balancer's
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	return l
}

func (l *balancer) pick() *process {
	p := l.next()
	for range l.red {
		if !l.red[p].Load() {
			break
		}
		p = l.next()
	}
	return p
}

// No request at all may fail: the leader says that it wants no more, goes on
// answering while the balancer takes note, and lets go of the lock.
func TestSIGTERMOfTheLeaderLosesNoAnswerAndAnotherLeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// A lock that was not let go would keep the other from leading for long.
	given := []string{"LINEKEEPER_SHUTDOWN_DELAY=3s", "LINEKEEPER_LEADER_TTL=30s"}
	w.start(given...)
	w.start(given...)
	w.open(settings{"batchSize": 20, "intervalMs": 200})
	old := w.leader()
	other := w.otherThan(old)
	lb := w.balance(old, other)
	c := (&crowd{w: w, at: lb.pick, ordering: true}).come(6)
	c.goesOn(20)
	term := w.snapshotAt(other).Term

	stopped := time.Now()
	old.signal(syscall.SIGTERM)
	w.untilHealth(3*time.Second, 503, old) // it answers, so it goes on serving
	w.nextTerm(other, term, stopped, 2*time.Second)
	require.NotEmpty(t, old.logged("no longer leading"))
	old.awaitEnd(patience)
	require.Equal(t, 0, old.exitCode())
	require.GreaterOrEqual(t, time.Since(stopped), 3*time.Second)
	c.goesOn(20)
	require.Zero(t, c.failures())
	c.verify(other)
	require.Equal(t, c.ordered(), w.placed(), "an order without an answer")
	w.conserved(w.snapshotAt(other))
}

// Requests that a dying process had in hand fail; nothing it has answered may.
func TestSIGKILLOfTheLeaderLosesNothingAnsweredAndAnotherLeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("LINEKEEPER_LEADER_TTL=2s")
	w.start("LINEKEEPER_LEADER_TTL=2s")
	w.open(settings{"batchSize": 5, "intervalMs": 200, "pickupTtlSeconds": 120})
	dying := w.leader()
	other := w.otherThan(dying)
	lb := w.balance(dying, other)
	c := (&crowd{w: w, at: lb.pick, mayFail: func(a answer) bool { return a.err != nil }}).come(6)
	c.goesOn(20)
	term := w.snapshotAt(other).Term

	killed := time.Now()
	dying.kill()
	w.nextTerm(other, term, killed, 2*time.Second+time.Second)
	c.goesOn(20)
	c.verify(other)
	for _, s := range c.entered {
		s.until(other, queue.Ready)
	}
	w.conserved(w.snapshotAt(other))
}

func (w *world) otherThan(p *process) *process {
	w.t.Helper()
	for _, other := range w.replicas {
		if other != p {
			return other
		}
	}
	w.t.Fatal("there is no other process")
	return nil
}

// nextTerm waits for the first tick of a later term and holds it against the
// promised time since a moment.
func (w *world) nextTerm(p *process, old int64, since time.Time, promised time.Duration) {
	w.t.Helper()
	harness.Eventually(w.t, promised+slack, "another process ticks", func() bool {
		s := w.snapshotAt(p)
		return s.Term > old && s.TickedAt.After(since)
	})
}
