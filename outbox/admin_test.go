package outbox

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

func TestListPagesByStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", members("m", 5)...)
	f.exec(`UPDATE outbox SET status = 'dead', last_error = 'why' WHERE payload->>'member' <> 'm0002'`)
	var seen []string
	var after int64
	for {
		page, err := f.List(t.Context(), Dead, 3, after)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		require.LessOrEqual(t, len(page), 3)
		for _, row := range page {
			c, err := row.Consume()
			require.NoError(t, err)
			seen, after = append(seen, c.Member), row.ID
			require.Equal(t, Dead, row.Status)
			require.Equal(t, "why", row.LastError)
			require.Equal(t, "r", row.Room)
			require.NotEmpty(t, row.OrderID)
			require.False(t, row.CreatedAt.IsZero())
			require.True(t, row.DoneAt.IsZero())
		}
	}
	require.Equal(t, []string{"m0000", "m0001", "m0003", "m0004"}, seen)

	f.round(f.relay(Options{}))
	done, err := f.List(t.Context(), Done, 10, 0)
	require.NoError(t, err)
	require.Len(t, done, 1)
	require.False(t, done[0].DoneAt.IsZero())
	require.Equal(t, 1, done[0].Attempts)
}

func TestOnlyTheDeadAreRequeued(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	require.ErrorIs(t, f.Requeue(t.Context(), 1), ErrNotDead)
	f.append("r", "ann")
	pending, err := f.List(t.Context(), Pending, 1, 0)
	require.NoError(t, err)
	require.ErrorIs(t, f.Requeue(t.Context(), pending[0].ID), ErrNotDead)
	f.round(f.relay(Options{}))
	require.ErrorIs(t, f.Requeue(t.Context(), pending[0].ID), ErrNotDead)
	require.Equal(t, 1, f.status(Done))
}

func TestStatsCountWhatIsNotDone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s, err := f.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, Stats{}, s)

	f.append("r", members("m", 6)...)
	f.exec(`UPDATE outbox SET status = 'dead' WHERE payload->>'member' IN ('m0000', 'm0001')`)
	f.exec(`UPDATE outbox SET status = 'done', created_at = now() - interval '1 day' WHERE payload->>'member' = 'm0002'`)
	f.exec(`UPDATE outbox SET created_at = now() - interval '1 hour' WHERE payload->>'member' = 'm0003'`)
	s, err = f.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), s.Pending)
	require.Equal(t, int64(2), s.Dead)
	require.InDelta(t, time.Hour, s.OldestAge, float64(time.Minute))
}

// X8.
func TestDoneEventsAreDeletedAfterTheRetention(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", members("m", 2504)...)
	f.exec(`UPDATE outbox SET status = 'done', done_at = now() - interval '25 h'`)
	f.exec(`UPDATE outbox SET done_at = now() - interval '23 h' WHERE payload->>'member' = 'm0000'`)
	f.exec(`UPDATE outbox SET status = 'dead', done_at = NULL WHERE payload->>'member' = 'm0001'`)
	f.exec(`UPDATE outbox SET status = 'pending', done_at = NULL, next_attempt_at = now() + interval '1 h' WHERE payload->>'member' = 'm0002'`)
	r := f.relay(Options{Poll: time.Millisecond})
	more, err := r.prune(t.Context())
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, 1504, f.count(`SELECT count(*) FROM outbox`), "in small batches")

	stop := f.start(r)
	harness.Eventually(t, long, "the rest is deleted", func() bool { return f.count(`SELECT count(*) FROM outbox`) == 3 })
	require.NoError(t, stop())
	require.Equal(t, []int{1, 1, 1}, []int{f.status(Done), f.status(Dead), f.status(Pending)})
	require.True(t, r.pruneAt.After(time.Now()), "and then not looked for all the time")
}

func TestErrorsAreKeptAsPostgresCanKeepThem(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ab", printable(text("a\x00\xffb")))
	require.Equal(t, strings.Repeat("x", 499), printable(text(strings.Repeat("x", 499)+"ä")))
}

type text string

func (t text) Error() string { return string(t) }
