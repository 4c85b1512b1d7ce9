//go:build faults

package verify

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// holdProgress keeps everybody from writing how far rooms have got, until the
// function returned is called.
func (s *shop) holdProgress() (release func()) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	tx, err := s.pool.Begin(ctx)
	require.NoError(s.t, err)
	_, err = tx.Exec(ctx, `LOCK TABLE room_progress IN EXCLUSIVE MODE`)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = tx.Rollback(ctx) })
	return func() { require.NoError(s.t, tx.Commit(ctx)) }
}

// other is the process that is not p.
func (s *shop) other(p *fault.Process) *fault.Process {
	return s.all[slices.IndexFunc(s.all, func(o *fault.Process) bool { return o != p })]
}

// stepsOf are the scheduler's steps of one term, from the nth step on.
func (s *shop) stepsOf(term int64, n int) (found []history.Step) {
	s.t.Helper()
	lives := s.steps.Lives()
	for _, step := range lives[len(lives)-1].Steps[n:] {
		if (step.Script == "reserve" || step.Script == "issue") && step.Args[1] == strconv.FormatInt(term, 10) {
			found = append(found, step)
		}
	}
	return found
}

// T5: a leader stands still for ten seconds in the middle of a tick: it has taken
// people, and is about to let them through. Another leads meanwhile.
func TestLeaderThatStoodStillInATickChangesNothingAfterwards(t *testing.T) {
	t.Parallel()
	_, url := ownRedis(t)
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.BatchSize, r.IntervalMs, r.Paused = 3, 500, true })
	s.start()
	s.start()
	s.begun()
	old := s.leader()
	next := s.other(old)
	line := s.line(150, next)
	release := s.holdProgress()
	s.setNow(func(r *room.Settings) { r.Paused = false })
	taken := s.untilSnapshot("somebody is taken", func(q queue.Snapshot) bool { return q.Processing > 0 })
	require.NoError(t, old.Stop())
	stopped := time.Now()
	tally.Faults(1)
	release()

	q := s.untilSnapshot("another leads and lets people through", func(q queue.Snapshot) bool {
		return q.Term > taken.Term && q.Lanes[0].Admitted >= 6
	})
	t.Logf("the next leader let people through %v after the first stood still", time.Since(stopped).Round(time.Millisecond))
	pause(t.Context(), time.Until(stopped.Add(10*time.Second)))
	require.NoError(t, s.steps.Collect(t.Context()))
	lives := s.steps.Lives()
	before := len(lives[0].Steps)
	require.NoError(t, old.Continue())
	eventually(t, longEnough, "it notices", func() bool { return len(old.Logged("no longer leading")) > 0 })
	waits, _ := s.look()
	s.untilSnapshot("the line goes on", func(n queue.Snapshot) bool { return n.Lanes[0].Admitted >= waits.Lanes[0].Admitted+6 })
	require.NoError(t, s.steps.Collect(t.Context()))
	for _, step := range s.stepsOf(taken.Term, before) {
		require.Equal(t, "STALE", step.Word(), "I12: a step of the old term was taken")
		require.Empty(t, step.Members)
	}
	require.GreaterOrEqual(t, q.Term, taken.Term+1)
	for _, c := range line {
		require.NotEqual(t, queue.NotEntered, c.poll(next).position.Status)
	}
	s.judge()
}

// A failover sets the counter of terms back, and the leader dies with it.
func TestTermCounterSetBackByTwoKeepsTheNextLeaderOutForNoLonger(t *testing.T) {
	t.Parallel()
	_, url := ownRedis(t)
	s := openShop(t, url, harness.DSN(t), func(*room.Settings) {})
	s.start()
	s.begun()
	for range 2 { // so that there are terms to go back to
		s.terminate(s.leader())
		s.start()
	}
	old := s.leader()
	s.start()
	q := s.untilSnapshot("the leader ticks", func(q queue.Snapshot) bool { return q.Term >= 3 })
	tally.Faults(2)
	killed := time.Now()
	old.Kill()
	require.NoError(t, s.rdb.DecrBy(t.Context(), s.prefix+":term", 2).Err())
	const ttl = 2 * time.Second // shop.settings
	s.untilSnapshot("the next leader ticks", func(n queue.Snapshot) bool { return n.Term > q.Term })
	took := time.Since(killed)
	t.Logf("ticks go on %v after the leader was killed", took.Round(time.Millisecond))
	require.Less(t, took, ttl+time.Second+mayBeLate)
	s.judge()
}
