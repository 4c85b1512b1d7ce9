package outbox

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// Case 61, MarcosRabadan/Agendia#260 and #322: an outage of any length kills
// nothing. Half an hour of one, with the default settings, is some 35 tries.
func TestTransportErrorsNeverMakeAnEventDead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", members("m", 3)...)
	down := errors.New("connection refused")
	f.sink.do = func(string, []string) error { return down }
	r := f.relay(Options{})
	for range 60 {
		f.due()
		_, err := r.round(t.Context())
		require.ErrorIs(t, err, down)
	}
	require.Equal(t, 3, f.count(`SELECT count(*) FROM outbox WHERE status = 'pending' AND attempts = 60 AND faults = 0 AND last_error = $1`, down.Error()))

	// Nor do they bring an event closer to its death.
	f.sink.do = func(string, []string) error { return Poison(errors.New("wrong type")) }
	f.due()
	f.round(r)
	require.Equal(t, 3, f.count(`SELECT count(*) FROM outbox WHERE status = 'pending' AND faults = 1`))
	f.sink.do = nil
	f.due()
	f.round(r)
	require.Equal(t, 3, f.status(Done))
}

// Case 63, zarusz/SlimMessageBus#475: one try per backoff, and the backoff grows
// to its bound.
func TestFailedEventsBackOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", members("m", 10)...)
	f.sink.do = func(string, []string) error { return errors.New("down") }
	r := f.relay(Options{})
	for n, bound := range []struct{ least, most float64 }{{0.1, 0.1}, {0.1, 0.2}, {0.2, 0.4}, {0.4, 0.8}, {0.8, 1.6}} {
		var before time.Time
		require.NoError(t, f.pool.QueryRow(t.Context(), `SELECT now()`).Scan(&before))
		_, err := r.round(t.Context())
		require.Error(t, err)
		var least, most float64
		var distinct int
		require.NoError(t, f.pool.QueryRow(t.Context(), `SELECT extract(epoch FROM min(next_attempt_at) - $1)::float8,
			extract(epoch FROM max(next_attempt_at) - now())::float8, count(DISTINCT next_attempt_at) FROM outbox`, before).Scan(&least, &most, &distinct))
		require.GreaterOrEqual(t, least, bound.least, "attempt %d", n+1)
		require.LessOrEqual(t, most, bound.most, "attempt %d", n+1)
		require.Equal(t, 1, distinct, "what failed together comes again together")
		require.Equal(t, n+1, f.sink.callCount())
		f.due()
	}
	f.exec(`UPDATE outbox SET attempts = 1000`)
	_, err := r.round(t.Context())
	require.Error(t, err)
	require.Equal(t, 10, f.count(`SELECT count(*) FROM outbox WHERE next_attempt_at BETWEEN now() + interval '25 s' AND now() + interval '60 s'`))
	require.False(t, f.round(r), "nothing is due")
	require.Equal(t, 6, f.sink.callCount())
}

// Case 63 as well: with thousands of events due, and pokes all the time, an
// outage is still tried once per pause and not once per poll.
func TestRelayAsAWholeBacksOffInAnOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", members("m", 3000)...)
	f.sink.do = func(string, []string) error { return errors.New("down") }
	r := f.relay(Options{Poll: time.Millisecond})
	began := time.Now()
	stop := f.start(r)
	harness.Eventually(t, long, "five tries", func() bool {
		r.Poke()
		return f.sink.callCount() >= 5
	})
	require.GreaterOrEqual(t, time.Since(began), (100+200+400+800)/2*time.Millisecond)
	require.NoError(t, stop())

	require.LessOrEqual(t, backoff(1), minBackoff)
	for _, n := range []int{20, 1 << 40} {
		require.LessOrEqual(t, backoff(n), maxPause)
		require.GreaterOrEqual(t, backoff(n), maxPause/2)
	}
}

func TestRoomInTroubleDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var failed int
	r := f.relay(Options{Observer: Observer{Failed: func(n int) { failed += n }}})
	f.append("away", "ann")
	f.append("well", "bob")
	f.sink.do = func(room string, _ []string) error {
		if room == "away" {
			return errors.New("down")
		}
		return nil
	}
	f.round(r)
	require.Equal(t, []string{"bob"}, f.sink.delivered())
	require.Equal(t, 1, failed)
}

func TestDatabaseOutOfReachIsSurvived(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", "ann")
	f.exec(`ALTER TABLE outbox RENAME TO away`)
	r := f.relay(Options{})
	_, err := r.round(t.Context())
	require.Error(t, err)
	stop := f.start(r)
	f.exec(`ALTER TABLE away RENAME TO outbox`)
	harness.Eventually(t, long, "it delivers when the table is back", func() bool { return f.status(Done) == 1 })
	require.NoError(t, stop())
}
