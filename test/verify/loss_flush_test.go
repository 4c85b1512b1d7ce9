//go:build faults

package verify

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// flush begins a new sale, as an operator does.
func (s *shop) flush() queue.Snapshot {
	s.t.Helper()
	before, ok := s.look()
	require.True(s.t, ok)
	over := s.lose(history.Flush)
	_, err := s.rooms.Flush(s.t.Context(), shopRoom, operatorOfShop)
	require.NoError(s.t, err)
	q := s.untilSnapshot("the new sale begins", func(q queue.Snapshot) bool { return q.Generation > before.Generation })
	over()
	require.Equal(s.t, before.Sale+1, q.Sale)
	s.begun()
	return q
}

// An order holds its claim, and its transaction is open, while the room is
// flushed around it.
func TestAFlushEndsEveryPlaceAndLetsAClaimedOrderComplete(t *testing.T) {
	t.Parallel()
	_, url := ownRedis(t)
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.BatchSize = 2 })
	a, b := s.start(), s.start()
	s.begun()
	ann, bob := s.customer().admitted(a), s.customer().admitted(b)
	s.setNow(func(r *room.Settings) { r.Paused = true })
	line := s.line(3, a, b)

	release := s.holdStock("demo")
	ordered := make(chan heard, 1)
	go func() { ordered <- ann.buy(a) }()
	s.waiting(1)
	sale := s.flush()
	release()
	made := (<-ordered).is(http.StatusCreated).order
	require.Equal(t, made.ID, ann.twin().buy(b).is(http.StatusOK).order.ID)
	eventually(t, longEnough, "its event has ended", func() bool {
		return sqlValue[int](s, "SELECT count(*) FROM outbox WHERE status = 'done'") == 1
	})
	bob.buy(b).is(http.StatusUnauthorized, "entry-token-invalid")
	for _, c := range append(line, ann, bob) {
		at := c.poll(a).is(http.StatusOK).position
		require.Equal(t, queue.NotEntered, at.Status)
		require.Equal(t, queue.OutcomeReset, *at.LastOutcome)
	}
	require.Zero(t, s.metric(series("restores_total", "result", "restored")))
	require.Zero(t, s.metric(series("departures_total", "reason", "lost")), "a flush is no loss")

	require.EqualValues(t, 0, *bob.enter(a).is(http.StatusCreated).position.Rank, "the new sale begins empty")
	s.setNow(func(r *room.Settings) { r.Paused = false })
	bob.until(b, queue.Ready)
	bob.buy(a).is(http.StatusCreated)
	require.Equal(t, 2, s.orders())
	require.Equal(t, sale.Sale, sqlValue[int64](s, "SELECT max(sale) FROM orders"))
	s.judge()
}
