package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

func adaptive(r *queue.Rules) { r.Adaptive = true }

func (f *fixture) report(process string, number int64, h queue.Health) {
	f.Helper()
	require.NoError(f, f.AddHealth(f.Context(), f.room, queue.Report{Process: process, Number: number, Health: h}))
}

// tune keeps a round under the fixture's term.
func (f *fixture) tune(round int64, batch int, memory string) (bool, error) {
	return f.Tune(f.Context(), f.room, f.step, queue.Tuning{Round: round, Batch: batch, Verdict: "quiet", Memory: []byte(memory)})
}

func TestReportsOfAllProcessesAddUp(t *testing.T) {
	f := setup(t, adaptive)
	one := queue.Health{Done: [queue.Bands]int64{1, 2, 3, 4}, Failed: 5, Delay: 90 * time.Second}
	two := queue.Health{Done: [queue.Bands]int64{10, 0, 0, 1}, Delay: 1500 * time.Millisecond}
	f.report("p1", 1, one)
	f.report("p2", 1, two)
	f.report("p1", 2, one)
	require.Equal(t, one.Add(two).Add(one), f.snap().Health)
}

func TestAReportThatIsRepeatedCountsOnce(t *testing.T) {
	f := setup(t, adaptive)
	h := queue.Health{Done: [queue.Bands]int64{3}, Delay: time.Second}
	for range 3 {
		f.report("p1", 5, h)
	}
	f.report("p1", 4, h) // a copy that comes late
	require.Equal(t, h, f.snap().Health)
	f.report("p1", 6, h)
	require.Equal(t, h.Add(h), f.snap().Health)
}

func TestARoomThatDoesNotFollowItsOrdersCountsNone(t *testing.T) {
	f := setup(t)
	before := f.dump()
	f.report("p1", 1, queue.Health{Failed: 1})
	kept, err := f.tune(1, 5, "{}")
	require.NoError(t, err)
	require.False(t, kept)
	require.Equal(t, before, f.dump())
	require.Equal(t, 50, f.snap().InForce())
}

func TestWhatIsKeptOfARoundIsThereForAnotherLeader(t *testing.T) {
	f := setup(t, adaptive)
	require.Zero(t, f.snap().InForce(), "there has been no round")
	kept, err := f.tune(1, 12, `{"state":1}`)
	require.NoError(t, err)
	require.True(t, kept)
	want := queue.Tuning{Round: 1, At: start, Batch: 12, Verdict: "quiet", Memory: []byte(`{"state":1}`)}
	require.Equal(t, want, f.snap().Tuning)
	require.Equal(t, 12, f.snap().InForce())
	f.life.Rules.Batch, f.life.Version = 9, 2
	require.NoError(t, f.Update(t.Context(), f.life))
	require.Equal(t, 9, f.snap().InForce(), "never above the operator's")
}

func TestARoundIsKeptOnceWhoeverComesFirst(t *testing.T) {
	f := setup(t, adaptive)
	for _, c := range []struct {
		round  int64
		memory string
		kept   bool
	}{{1, "a", true}, {1, "a", true}, {1, "b", false}, {3, "c", true}, {2, "d", false}} {
		kept, err := f.tune(c.round, 5, c.memory)
		require.NoError(t, err)
		require.Equal(t, c.kept, kept, "round %d with %s", c.round, c.memory)
	}
	require.Equal(t, "c", string(f.snap().Tuning.Memory))
}

func TestARoundOfAnOvertakenLeaderIsRefused(t *testing.T) {
	f := setup(t, adaptive)
	f.step.Term = 4
	f.reserve()
	before := f.dump()
	for _, step := range []queue.Step{{Generation: 7, Term: 3, Leader: "a"}, {Generation: 7, Term: 4, Leader: "b"}} {
		_, err := f.Tune(t.Context(), f.room, step, queue.Tuning{Round: 1, Batch: 5, Memory: []byte("{}")})
		require.ErrorIs(t, err, queue.ErrStale)
	}
	_, err := f.Tune(t.Context(), f.room, queue.Step{Generation: 6, Term: 9, Leader: "a"}, queue.Tuning{Round: 1, Batch: 5})
	require.ErrorIs(t, err, queue.ErrGeneration)
	require.Equal(t, before, f.dump())
}

func TestARoomSwitchedOffForgetsItsBatch(t *testing.T) {
	f := setup(t, adaptive)
	f.report("p1", 1, queue.Health{Failed: 1})
	_, err := f.tune(1, 12, "{}")
	require.NoError(t, err)
	f.life.Rules.Adaptive, f.life.Version = false, 2
	require.NoError(t, f.Update(t.Context(), f.life))
	require.Equal(t, 50, f.snap().InForce())
	f.life.Rules.Adaptive, f.life.Version = true, 3
	require.NoError(t, f.Update(t.Context(), f.life))
	require.Zero(t, f.snap().Tuning.Round)
	require.Zero(t, f.snap().Health.Failed)
}

func TestProcessesLongSilentLeaveNothing(t *testing.T) {
	f := setup(t, adaptive)
	for i := range 20 {
		f.report(fmt.Sprint("p", i), 1, queue.Health{Failed: 1})
	}
	f.pass(11 * time.Minute)
	f.report("p3", 2, queue.Health{Failed: 1})
	_, err := f.tune(1, 12, "{}")
	require.NoError(t, err)
	require.Len(t, f.rdb.HGetAll(t.Context(), f.key("health")).Val(), len([]string{"failed", "of:p3", "round", "at", "batch", "verdict", "memory"}))
	require.Equal(t, int64(21), f.snap().Health.Failed)
}

// A grant is unused that ends without an order, however it ends.
func TestUnusedGrantsAreCounted(t *testing.T) {
	f := setup(t)
	f.enter("expires", "leaves", "never-fetches", "orders", "orders-late")
	f.tick()
	late := f.pickUp("orders-late")
	f.pickUp("expires")
	g := f.pickUp("orders")
	_, err := f.Leave(t.Context(), f.room, "leaves", 0, queue.OutcomeLeft)
	require.NoError(t, err)
	require.NoError(t, f.Claim(t.Context(), g, "c", time.Minute))
	_, err = f.Consume(t.Context(), f.room, []queue.Spent{{Member: "orders", Grant: g.ID, Order: "o1"}})
	require.NoError(t, err)
	require.Equal(t, int64(1), f.snap().Counters["unused"])
	f.pass(31 * time.Second)
	f.reap()
	require.Equal(t, int64(2), f.snap().Counters["unused"], "not fetched, and AWAY")
	f.pass(300 * time.Second)
	f.reap()
	require.Equal(t, int64(4), f.snap().Counters["unused"])
	_, err = f.Consume(t.Context(), f.room, []queue.Spent{{Member: "orders-late", Grant: late.ID, Order: "o2"}})
	require.NoError(t, err)
	require.Equal(t, int64(3), f.snap().Counters["unused"], "its order had been placed before it ended")
	f.conserved()
}
