package api

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// watched is a watch whose rounds are data.
type watched struct {
	*failing
	now  time.Time
	told []bool
}

func watch(t *testing.T, after int) *watched {
	t.Helper()
	s := room.Defaults()
	s.Fail, s.FailOpenAfterSeconds = "open", after
	text, err := json.Marshal(s)
	require.NoError(t, err)
	w := &watched{now: time.Now()}
	w.failing = newFailing(Options{Log: slog.New(slog.DiscardHandler), Observer: Observer{FailedOpen: func(_ string, open bool) { w.told = append(w.told, open) }}})
	w.lives = []queue.Life{{Room: "r", Generation: 1, Sale: 1, Settings: text, Rules: s.Rules()}}
	return w
}

// round is what one look has found, some time after the last.
func (w *watched) round(after time.Duration, away bool) bool {
	w.now = w.now.Add(after)
	w.asked = w.now
	w.conclude(w.seen.Load(), map[string]bool{"r": away}, w.now)
	d := w.seen.Load().doors["r"]
	return d != nil && d.open
}

func TestARoomFailsOpenAfterItsTimeWithoutABreak(t *testing.T) {
	t.Parallel()
	w := watch(t, 30)
	require.False(t, w.round(0, true))
	for range 29 {
		require.False(t, w.round(time.Second, true))
	}
	require.True(t, w.round(time.Second, true))
	require.False(t, w.round(time.Second, false), "one good probe closes it at once")
	for range 30 {
		require.False(t, w.round(time.Second, true), "and the time begins anew")
	}
	require.True(t, w.round(time.Second, true))
	require.Equal(t, []bool{true, false, true}, w.told)
}

// TestAProcessThatStoodStillHasSeenNothing: neither an answer nor a refusal.
func TestAProcessThatStoodStillHasSeenNothing(t *testing.T) {
	t.Parallel()
	w := watch(t, 30)
	require.False(t, w.round(0, true))
	require.False(t, w.round(time.Minute, true))
	for range 29 {
		require.False(t, w.round(time.Second, true))
	}
	require.True(t, w.round(time.Second, true))
}

func TestWhatPostgresHasNotSaidLatelyCountsForNothing(t *testing.T) {
	t.Parallel()
	w := watch(t, 1)
	w.round(0, true)
	require.True(t, w.round(time.Second, true))
	w.conclude(w.seen.Load(), map[string]bool{"r": true}, w.now.Add(4*time.Second))
	require.NotNil(t, w.seen.Load().doors["r"], "the list may be some seconds old")
	w.conclude(w.seen.Load(), map[string]bool{"r": true}, w.now.Add(6*time.Second))
	require.Empty(t, w.seen.Load().doors, "Postgres is away: no room fails open")
	require.Equal(t, []bool{true, false}, w.told)
	w.seen.Store(&sighting{at: time.Now().Add(-6 * time.Second), doors: map[string]*door{"r": {open: true, view: &view{}}}})
	require.Nil(t, w.open("r"), "a watch that hangs opens nothing")
}

func TestARoomThatNoLongerFailsOpenIsClosedAtOnce(t *testing.T) {
	t.Parallel()
	w := watch(t, 1)
	w.round(0, true)
	require.True(t, w.round(time.Second, true))
	closed, err := json.Marshal(room.Defaults())
	require.NoError(t, err)
	w.lives[0].Settings = closed
	require.False(t, w.round(time.Second, true))
	w.lives = nil
	require.False(t, w.round(time.Second, true))
	require.Equal(t, []bool{true, false}, w.told)
}
