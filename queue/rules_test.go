package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func TestRoomStates(t *testing.T) {
	open := Rules{Settle: 40 * time.Second}
	with := func(change func(*Rules)) Rules {
		r := open
		change(&r)
		return r
	}
	for _, tc := range []struct {
		name      string
		rules     Rules
		restoring bool
		want      RoomState
	}{
		{"plain", open, false, Open},
		{"a later generation settles", open, true, Restoring},
		{"before opensAt", with(func(r *Rules) { r.OpensAt = noon.Add(1) }), false, NotOpen},
		{"at opensAt", with(func(r *Rules) { r.OpensAt = noon }), false, Open},
		{"before admitsAt", with(func(r *Rules) { r.AdmitsAt = noon.Add(1) }), false, PreQueue},
		{"at admitsAt", with(func(r *Rules) { r.AdmitsAt = noon }), false, Open},
		{"before closesAt", with(func(r *Rules) { r.ClosesAt = noon.Add(1) }), false, Open},
		{"at closesAt", with(func(r *Rules) { r.ClosesAt = noon }), false, Closed},
		{"draining outlives closesAt", with(func(r *Rules) { r.ClosesAt, r.Draining = noon, true }), false, Draining},
		{"draining", with(func(r *Rules) { r.Draining = true }), false, Draining},
		{"paused", with(func(r *Rules) { r.Paused = true }), false, Paused},
		{"paused while draining", with(func(r *Rules) { r.Paused, r.Draining = true, true }), false, Paused},
		{"off", with(func(r *Rules) { r.Off = true }), false, Off},
		{"off, whatever its times", with(func(r *Rules) { r.Off, r.OpensAt, r.ClosesAt = true, noon.Add(1), noon.Add(2) }), true, Off},
		{"paused wins over off", with(func(r *Rules) { r.Off, r.Paused = true, true }), false, Paused},
		{"draining wins over off", with(func(r *Rules) { r.Off, r.Draining = true, true }), false, Draining},
		{"paused before opensAt", with(func(r *Rules) { r.Paused, r.OpensAt = true, noon.Add(1) }), false, NotOpen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.rules.State(noon, noon.Add(-39*time.Second), tc.restoring))
		})
	}
	require.Equal(t, Open, open.State(noon, noon.Add(-40*time.Second), true), "settled")
}

func TestPollIntervalGrowsWithTheLine(t *testing.T) {
	for ahead, want := range map[int64]time.Duration{
		0: time.Second, 99: time.Second, 100: 3 * time.Second, 999: 3 * time.Second, 1000: 5 * time.Second, 1 << 40: 5 * time.Second,
	} {
		require.Equal(t, want, PollInterval(ahead), "%d ahead", ahead)
	}
}

func TestHorizonIsWhoCouldBeServedBeforeAbsenceShows(t *testing.T) {
	for _, tc := range []struct {
		batch int
		every time.Duration
		want  int64
	}{
		{50, time.Second, 9000},
		{1, time.Second, 1000},
		{10_000, time.Second, 100_000},
		{7, 100 * time.Millisecond, 12_600},
	} {
		r := Rules{Batch: tc.batch, Interval: tc.every, AwayAfter: 120 * time.Second}
		require.Equal(t, tc.want, r.Horizon(), fmt.Sprint(tc))
	}
}

// Whoever polls as told, near the front, is neither taken for absent nor
// misses a pick-up, however busy we are.
func TestPoliteMembersNearTheFrontAreHeardInTime(t *testing.T) {
	for _, r := range []Rules{
		{Batch: 50, Interval: time.Second, AwayAfter: 90 * time.Second, PickupTTL: 10 * time.Second},
		{Batch: 50, Interval: time.Second, AwayAfter: 90 * time.Second, PickupTTL: 300 * time.Second},
	} {
		for _, stretch := range []float64{1, 1.7, MostStretch} {
			for ahead := range r.Horizon() {
				for _, chance := range []float64{0, 0.5, 0.999} {
					told := r.Spread(r.PollAfter(ahead, stretch), ahead, chance)
					require.LessOrEqual(t, told, min(r.AwayAfter, r.PickupTTL)/3, "%d ahead", ahead)
				}
			}
		}
		require.Equal(t, 5*time.Second, r.PollAfter(r.Horizon(), 1), "behind it the line's length decides")
		require.Equal(t, 20*time.Second, r.PollAfter(r.Horizon(), 4), "and how busy we are")
	}
}

func TestNobodyIsToldToPollLaterThanTheLongestPoll(t *testing.T) {
	r := Rules{Batch: 50, Interval: time.Second, AwayAfter: 24 * time.Hour, PickupTTL: time.Hour}
	for _, ahead := range []int64{0, 500, 5000, r.Horizon(), 1 << 40} {
		for stretch := 1.0; stretch < 40; stretch *= 1.5 {
			d := r.PollAfter(ahead, stretch)
			early, late := r.Spread(d, ahead, 0), r.Spread(d, ahead, 0.999999)
			require.LessOrEqual(t, late, LongestPoll)
			require.InDelta(t, 0.8*d.Seconds(), early.Seconds(), 0.001)
			require.Greater(t, late-early, d/6, "polls that are not spread come at once")
		}
	}
}

func TestErrorsWithDataMatchTheirKind(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("in room x: %w", err) }
	require.ErrorIs(t, wrapped(StaleError{Term: 3}), ErrStale)
	require.ErrorIs(t, wrapped(GenerationError{Generation: 3}), ErrGeneration)
	require.ErrorIs(t, wrapped(BusyError{Left: time.Second}), ErrBusy)
	require.False(t, errors.Is(StaleError{}, ErrBusy))
}
