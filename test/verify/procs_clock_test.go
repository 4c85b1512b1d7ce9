//go:build faults

package verify

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

// slack is what a loaded machine may add to a promised time.
const slack = 5 * time.Second

// quietFleet is a fleet that nothing breaks by itself, serving until the end of
// the test.
func quietFleet(t *testing.T, change func(*fleetPlan)) *fleet {
	t.Helper()
	seed := seedOf(t)
	f := newPlannedFleet(t, seed, func(p *fleetPlan) {
		p.commits, p.replies, p.points, p.lock, p.appendOnly = 0, 0, 0, "2s", true
		change(p)
	})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, s := range f.stations {
		all.Go(func() { s.run(ctx) })
	}
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
	for _, s := range f.stations {
		f.untilServing(s)
	}
	return f
}

// leader is the station whose process leads, once one does.
func (f *fleet) leader() (leading *station) {
	f.t.Helper()
	harness.Eventually(f.t, time.Minute, "somebody leads", func() bool {
		for _, s := range f.stations {
			if p := s.process(); p != nil && leads(p) {
				leading = s
			}
		}
		return leading != nil
	})
	return leading
}

// leads tells whether the process led when it last said anything about it.
func leads(p *fault.Process) bool {
	return len(p.Logged("leading")) > len(p.Logged("no longer leading"))
}

// ticked is the newest term in which the room has been reserved from; 0: none.
func (f *fleet) ticked() int64 {
	s, err := redisstore.New(f.redis.Client(), fleetPrefix).Snapshot(f.t.Context(), fleetRoom)
	if err != nil {
		return 0 // not begun yet
	}
	return s.Term
}

// I24 with I21: the lock is a key with an end by the clock of Redis, and a step
// back of that clock must not keep a dead leader's lock for an hour.
func TestLeaderKilledAfterAStepOfTheClockIsReplacedInTime(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := quietFleet(t, func(*fleetPlan) {})
			s := f.leader()
			harness.Eventually(t, time.Minute, "the room is ticked", func() bool { return f.ticked() > 0 })
			p := s.process()
			before := f.ticked()
			require.NoError(t, f.stepClock(step))
			p.Kill()
			killed := time.Now()
			harness.Eventually(t, 2*time.Second+time.Second+slack, "another leader ticks", func() bool { return f.ticked() > before })
			t.Logf("the next tick came after %v", time.Since(killed))
			tally.Faults(2)
		})
	}
}
