//go:build faults

package verify

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// written is an append-only file as it is now.
type written struct {
	path string
	size int64
}

func writtenBy(t *testing.T, r *fault.Redis) written {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.Server.Dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	st, err := os.Stat(files[0])
	require.NoError(t, err)
	return written{files[0], st.Size()}
}

// powerCut kills the server and leaves of its file what was there then: the rest
// had been acknowledged, and not reached the disk.
func (s *shop) powerCut(r *fault.Redis, w written) {
	s.t.Helper()
	over := s.lose(history.PartialLoss)
	r.Kill()
	require.NoError(s.t, os.Truncate(w.path, w.size))
	require.NoError(s.t, r.Start())
	over()
}

// Redis is killed, and with it goes what its append-only file had not kept. All
// that Redis had acknowledged since then is known to tickets and to Postgres.
func TestPartialLossIsMendedByTicketsAndPostgres(t *testing.T) {
	t.Parallel()
	r, url := ownRedis(t, "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.Paused, r.BatchSize, r.ClaimLeaseSeconds = true, 2, 11 })
	a, b := s.start(), s.start("LINEKEEPER_ROLES=api,relay") // so that who leads now leads then
	s.begun()
	before := s.line(3, a, b) // ann and bob will be let through and forgotten
	ann, bob := before[0], before[1]
	kept := writtenBy(t, r)
	life, ok := s.look()
	require.True(t, ok)

	s.setNow(func(r *room.Settings) { r.Paused = false })
	ann.until(a, queue.Ready)
	bob.until(b, queue.Ready)
	s.setNow(func(r *room.Settings) { r.Paused = true })
	made := ann.buy(b).is(http.StatusCreated).order
	ann.until(a, queue.Consumed)
	after := s.line(4, a, b)
	s.powerCut(r, kept)
	q := s.untilSnapshot("the pause is known again", func(q queue.Snapshot) bool { return q.Rules.Paused })
	require.Equal(t, life.Generation, q.Generation, "a part that is lost is not a new life")
	require.EqualValues(t, 3, q.Counters["entered"], "those who came last are not forgotten: this test shows nothing")

	for i, c := range after {
		at := c.poll([]*fault.Process{b, a}[i%2]).is(http.StatusOK).position
		require.Equal(t, queue.Waiting, at.Status)
		require.EqualValues(t, 3+i, *at.Rank, "the ticket brings the place back, in the old order")
	}
	bob.buy(a).is(http.StatusUnauthorized, "entry-token-invalid") // Redis does not know this grant
	require.EqualValues(t, 1, *bob.poll(a).is(http.StatusOK).position.Rank, "nobody has taken the place back")
	require.Equal(t, made.ID, ann.buy(b).is(http.StatusOK).order.ID, "Redis has forgotten the order, and Postgres has not")
	s.forgottenAndCounted(4)

	s.setNow(func(r *room.Settings) { r.Paused, r.IntervalMs = false, 200 })
	for i, c := range append(after, bob) {
		p := []*fault.Process{b, a}[i%2]
		c.until(p, queue.Ready)
		c.buy(p).is(http.StatusCreated)
	}
	require.Equal(t, 6, s.orders())
	s.judge()
}

// forgottenAndCounted checks that a loss is told by somebody who leads, and how
// many it cost nothing.
func (s *shop) forgottenAndCounted(restored int) {
	s.t.Helper()
	eventually(s.t, longEnough, "the loss is counted", func() bool { return s.metric(series("departures_total", "reason", "lost")) > 0 })
	require.Positive(s.t, s.logged("room lost acknowledged state"))
	require.InDelta(s.t, restored, s.metric(series("restores_total", "result", "restored")), 1)
	q, ok := s.look()
	require.True(s.t, ok)
	require.EqualValues(s.t, restored, q.Counters["restored"])
	require.Zero(s.t, q.Counters["passed"])
}

// Redis is away for so long that nobody leads any more when it is back, and has
// forgotten something meanwhile. Whoever leads then knows it from Postgres.
func TestLossDuringALongOutageIsSeenByTheNextLeader(t *testing.T) {
	t.Parallel()
	r, url := ownRedis(t, "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.BatchSize = 1 })
	a := s.start()
	s.begun()
	s.customer().admitted(a)
	kept := writtenBy(t, r)
	s.customer().admitted(a)
	over := s.lose(history.PartialLoss)
	r.Kill()
	require.NoError(t, os.Truncate(kept.path, kept.size))
	a.Kill() // and what it knew
	require.NoError(t, r.Start())
	over()
	next := s.start()
	eventually(t, longEnough, "the loss is told", func() bool { return len(next.Logged("room lost acknowledged state")) > 0 })
	require.EqualValues(t, 1, s.metric(series("departures_total", "reason", "lost")))
}
