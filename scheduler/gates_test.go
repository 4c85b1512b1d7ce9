package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

// handedOn is how long it took, each of n times, until a place that was consumed
// in a full room went to the next.
func (h *house) handedOn(members []string, n int) []time.Duration {
	h.Helper()
	var took []time.Duration
	for i := range n {
		h.eventually(5*time.Second, members[i]+" is let through", func() bool {
			return h.standing(members[i]).Status == queue.Ready
		})
		// Anywhere between two ticks.
		time.Sleep(time.Duration(i*37%100) * 5 * time.Millisecond)
		g := h.standing(members[i]).Grant
		at := h.snapshot().Now
		_, err := h.Consume(h.Context(), theRoom, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: "o"}})
		require.NoError(h, err)
		h.eventually(5*time.Second, "the next is let through", func() bool {
			return h.standing(members[i+1]).Status == queue.Ready
		})
		took = append(took, h.standing(members[i+1]).Grant.IssuedAt.Sub(at))
	}
	slices.Sort(took)
	return took
}

func TestAPlaceInAnEagerRoomGoesToTheNextAtOnce(t *testing.T) {
	t.Parallel()
	middle := map[string]time.Duration{}
	for _, name := range []string{"ordinary", "eager"} {
		t.Run(name, func(t *testing.T) {
			h := on(t, harness.Redis(t), harness.Database(t), rate(100, 2*time.Second), func(s *room.Settings) { s.Capacity, s.Eager = 1, name == "eager" })
			h.open()
			members := h.enter(12)
			h.run("only")
			took := h.handedOn(members, 9)
			t.Logf("from consume to the next grant: %v", took)
			middle[name] = took[len(took)/2]
		})
	}
	require.Less(t, middle["eager"], 200*time.Millisecond)
	require.Greater(t, middle["ordinary"], 2*middle["eager"], "the ordinary room waits for its next tick")
}

func TestAReleaseByHandIsInForceWithinASecondAlsoWhilePaused(t *testing.T) {
	h := setup(t, rate(10, 200*time.Millisecond), func(s *room.Settings) { s.Paused = true })
	h.open()
	members := h.enter(40)
	h.run("a")
	h.run("b")
	h.eventually(5*time.Second, "the room is ticked", func() bool { return !h.snapshot().TickedAt.IsZero() })
	asked := time.Now()
	_, err := h.books.Release(t.Context(), theRoom, 25, 0, room.Actor{Name: "olaf"})
	require.NoError(t, err)
	h.eventually(5*time.Second, "25 are let through", func() bool { return h.admitted() == 25 })
	require.Less(t, time.Since(asked), 2*time.Second)
	time.Sleep(time.Second)
	require.EqualValues(t, 25, h.admitted(), "and no more")
	require.Equal(t, queue.Waiting, h.standing(members[25]).Status)
}

func TestARoomSwitchedOffEmptiesItsLineInOrder(t *testing.T) {
	h := setup(t, rate(1, time.Minute), func(s *room.Settings) { s.Capacity = 1 })
	h.open()
	members := h.enter(1000)
	h.exclude(members[500:510])
	h.run("only")
	_, err := h.books.Update(t.Context(), theRoom, 0, func(s room.Settings) (room.Settings, error) {
		s.Off = true
		return s, nil
	}, room.Actor{Name: "olaf"})
	require.NoError(t, err)
	h.eventually(10*time.Second, "all but the barred are let through", func() bool { return h.admitted() == 990 })
	times := h.grantTimes(append(slices.Clone(members[:500]), members[510:]...))
	for i := 1; i < len(times); i++ {
		require.False(t, times[i].Before(times[i-1]), "in order")
	}
	require.Equal(t, queue.OutcomeEvicted, h.standing(members[505]).Outcome)
	require.GreaterOrEqual(t, h.snapshot().Counters["passed_off"], int64(989))
}
