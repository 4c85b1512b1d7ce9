//go:build faults

package verify

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

// turns are the customers of before a loss who had had their turn.
type turns struct {
	bought, showing, silent []*customer
	orders                  map[*customer]string
}

// haveTurns lets thirty through: a third orders, a third will show the token
// after the loss, and a third the ticket alone.
func (s *shop) haveTurns(a, b *fault.Process) turns {
	s.t.Helper()
	all := s.line(30, a, b)
	inParallel(8, len(all), func(i int) { all[i].until(b, queue.Ready) })
	t := turns{bought: all[:10], showing: all[10:20], silent: all[20:], orders: map[*customer]string{}}
	for _, c := range t.bought {
		t.orders[c] = c.buy(a).is(http.StatusCreated).order.ID
	}
	return t
}

// after checks what those who had had their turn are told when all is lost.
func (h turns) after(t *testing.T, a, b *fault.Process) {
	t.Helper()
	for _, c := range h.bought {
		at := c.pollWith(a, c.token).is(http.StatusOK).position
		require.Equal(t, queue.Consumed, at.Status)
		require.Equal(t, h.orders[c], *at.OrderID)
		require.Equal(t, h.orders[c], c.buy(b).is(http.StatusOK).order.ID, "I5")
	}
	for _, c := range h.showing {
		spent, grant, place := c.token, c.grant, c.score
		at := c.pollWith(b, spent).is(http.StatusOK).position
		require.Equal(t, queue.Waiting, at.Status)
		require.Equal(t, place, *at.Score)
		ghost := &customer{s: c.s, name: c.s.customer().name, token: spent, grant: grant, member: c.member}
		ghost.buy(a).is(http.StatusUnauthorized, "entry-token-invalid")
	}
	for _, c := range h.silent {
		require.Equal(t, queue.NotEntered, c.poll(a).is(http.StatusOK).position.Status, "S4: a ticket of who was let through is worth nothing")
	}
}

// Total loss with a thousand who poll every thirty seconds, while the line moves.
func TestTotalLossOfAThousandPollersRestoresThemInTheOldOrder(t *testing.T) {
	t.Parallel()
	_, url := ownRedis(t)
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.BatchSize, r.IntervalMs, r.PickupTTLSeconds = 30, 200, 120 })
	a, b := s.start(), s.start()
	s.begun()
	served := s.haveTurns(a, b)
	s.setNow(func(r *room.Settings) { r.BatchSize, r.IntervalMs, r.Paused = 2, 1000, true })
	const n, tardy = 1000, 5
	line := s.line(n, a, b)
	late := line[n/2 : n/2+tardy] // who do not ask until it is too late
	waiting := s.wait(slices.Concat(line[:n/2], line[n/2+tardy:]), a, b)
	s.setNow(func(r *room.Settings) { r.Paused = false })
	s.untilSnapshot("the line moves", func(q queue.Snapshot) bool { return q.Lanes[0].Admitted >= 30+10 })

	life := s.forget()
	settled := life.Began.Add(life.Rules.Settle)
	served.after(t, a, b)
	newcomers := s.line(20, b, a)
	s.untilSnapshot("the line moves again", func(q queue.Snapshot) bool { return q.Now.After(settled) && q.Lanes[0].Admitted > 0 })
	had, restored := waiting.hadTurns(), waiting.restoredBy(settled)
	t.Logf("of %d pollers %d had been let through before the loss; %d of the others were restored within %v", n, had, restored, life.Rules.Settle)
	require.GreaterOrEqual(t, had+restored, n*99/100)
	require.Less(t, had, n/10, "too few are left to be restored: this test shows nothing")

	s.setNow(func(r *room.Settings) { r.BatchSize, r.IntervalMs = 100, 200 })
	s.untilSnapshot("the line has come by the late", func(q queue.Snapshot) bool { return q.Lanes[0].Watermark > late[tardy-1].score })
	for _, c := range late {
		place := c.score
		require.Equal(t, place, *c.poll(a).is(http.StatusOK).position.Score)
	}
	everybody := s.untilSnapshot("everybody is let through", func(q queue.Snapshot) bool { return q.Waiting() == 0 && q.Processing == 0 })
	waiting.end()
	s.judge()
	s.inOrder(everybody, settled, late)
	for _, c := range newcomers {
		require.Greater(t, c.score, line[n-1].score, "who comes after the loss stands behind all who were there")
	}
}

// inOrder checks in which order people were let through after a loss: the old
// one, but for those who came too late, and these are counted and told of.
func (s *shop) inOrder(q queue.Snapshot, settled time.Time, late []*customer) {
	t := s.t
	t.Helper()
	through := s.admissions()
	require.Empty(t, letThroughTwice(through))
	require.False(t, time.UnixMicro(through[0].at).Before(settled), "somebody was let through before the places were back")
	require.EqualValues(t, len(through), q.Lanes[0].Admitted)
	expected := map[string]bool{}
	for _, c := range late {
		expected[c.member] = true
	}
	require.Equal(t, expected, inversions(through), "who was passed by somebody behind")

	// The room has counted each. What a process tells of it is one less for each
	// reply that it did not get from a Redis on a busy machine.
	require.EqualValues(t, len(late), q.Counters["passed"])
	told := s.metric(series("restores_total", "result", "passed"))
	require.InDelta(t, len(late), told, 1)
	require.EqualValues(t, told, s.logged("place restored behind others who were let through"))
	require.InDelta(t, q.Counters["restored"]-q.Counters["passed"], s.metric(series("restores_total", "result", "restored")), 10)
	require.Positive(t, s.metric(series("restores_total", "result", "refused")))
	require.Positive(t, s.metric(series("departures_total", "reason", "lost")))
	require.Positive(t, s.logged("room lost all its data"))
}
