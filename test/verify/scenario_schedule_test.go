//go:build faults

package verify

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

// timetable is a shop with a schedule, on a Redis whose clock is stepped by
// hours, which is what decides what the room does.
type timetable struct {
	*shop
	clock *fault.Clock
	at    *fault.Process
}

// openTimetable has a room that opens in half an hour, admits an hour later and
// closes an hour after that.
func openTimetable(t *testing.T) *timetable {
	clock, url := clockedRedis(t)
	opens := time.Now().Add(30 * time.Minute)
	admits, closes := opens.Add(time.Hour), opens.Add(2*time.Hour)
	d := &timetable{clock: clock, shop: openShop(t, url, harness.DSN(t), func(r *room.Settings) {
		r.OpensAt, r.AdmitsAt, r.ClosesAt, r.BatchSize, r.IntervalMs = &opens, &admits, &closes, 10, 100
	})}
	d.at = d.start()
	d.begun()
	return d
}

// step moves the clock and waits until everybody is told what the room does.
func (d *timetable) step(by time.Duration, want queue.RoomState) {
	d.t.Helper()
	d.mu.Lock()
	if by < -time.Minute {
		d.facts.TimeSteps++
	}
	d.mu.Unlock()
	tally.Faults(1)
	require.NoError(d.t, d.clock.Step(by))
	eventually(d.t, longEnough, "the room is "+string(want), func() bool {
		q, ok := d.look()
		return ok && q.State(q.Now) == want
	})
	pause(d.t.Context(), 400*time.Millisecond) // processes look four times a second
}

func (d *timetable) admitted() int64 {
	d.t.Helper()
	q, ok := d.look()
	require.True(d.t, ok)
	return q.Lanes[0].Admitted
}

// nobody waits for some ticks, in which nobody may be let through.
func (d *timetable) nobody(why string) {
	d.t.Helper()
	before := d.admitted()
	pause(d.t.Context(), 1500*time.Millisecond)
	require.Equal(d.t, before, d.admitted(), "somebody is let through although the room is %s", why)
}

func (d *timetable) everybody(all []*customer) {
	d.t.Helper()
	for _, c := range all {
		c.until(d.at, queue.Ready)
	}
}

// I21 of a schedule and a pause: what a room does follows the clock of Redis, an
// hour forward and an hour back, and a pause stays one whatever the clock does.
func TestScheduleAndPauseFollowTheClockOfRedisThroughStepsOfAnHour(t *testing.T) {
	t.Parallel()
	d := openTimetable(t)
	d.customer().enter(d.at).is(http.StatusForbidden, "room-not-open")

	d.step(time.Hour, queue.PreQueue)
	first := d.line(5, d.at)
	d.nobody("not admitting yet")
	d.step(time.Hour, queue.Open)
	d.everybody(first)

	d.setNow(func(r *room.Settings) { r.Paused = true })
	pause(t.Context(), 400*time.Millisecond)
	second := d.line(3, d.at)
	d.nobody("paused")
	d.step(-time.Hour, queue.Paused)
	d.nobody("paused, an hour earlier")
	d.setNow(func(r *room.Settings) { r.Paused = false })
	d.nobody("no longer paused, and again not admitting yet")
	d.step(time.Hour, queue.Open)
	d.everybody(second)

	d.step(-time.Hour, queue.PreQueue)
	third := d.line(3, d.at)
	d.nobody("not admitting any more")
	d.step(2*time.Hour, queue.Closed)
	d.customer().enter(d.at).is(http.StatusForbidden, "room-closed")
	d.nobody("closed")
	d.step(-time.Hour, queue.Open)
	d.everybody(third)
	d.judge()
}
