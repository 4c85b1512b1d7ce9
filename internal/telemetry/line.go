package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// line counts what members do, and what happens to them.
type line struct {
	entries, departures, admissions, grants, polls, restores *prometheus.CounterVec
	lifts, elsewhere                                         *prometheus.CounterVec
	waits, estimates                                         *prometheus.HistogramVec
	polled                                                   *known[poll, prometheus.Counter]
	stretch                                                  prometheus.Gauge
}

// poll is what polls are counted by.
type poll struct{ room, status string }

func newLine(f promauto.Factory) line {
	return line{
		polled:     &known[poll, prometheus.Counter]{},
		entries:    f.NewCounterVec(counter("entries_total", "Calls of enter, by how they ended."), []string{"room", "result"}),
		departures: f.NewCounterVec(counter("departures_total", "Members who are in the room no more, by how that came."), []string{"room", "reason"}),
		admissions: f.NewCounterVec(counter("admissions_total", "Members let through."), []string{"room", "lane"}),
		lifts:      f.NewCounterVec(counter("lifted_total", "Members whom the longest-wait promise took before the lanes shared."), []string{"room"}),
		grants:     f.NewCounterVec(counter("grants_total", "What happened to grants."), []string{"room", "event"}),
		waits: f.NewHistogramVec(histogram("wait_seconds", "From enter to being let through.",
			prometheus.ExponentialBuckets(1, 2, 14)), []string{"room", "lane"}),
		estimates: f.NewHistogramVec(histogram("wait_estimate_ratio",
			"The wait that members were first told, divided by the one they had; of a sample of those let through. 1 is right.",
			estimateBuckets), []string{"room"}),
		polls:    f.NewCounterVec(counter("polls_total", "Polls, by the status answered."), []string{"room", "status"}),
		stretch:  f.NewGauge(gauge("poll_stretch", "By how much longer than usual this process tells people who wait to wait between polls: 1 is usual, 6 the most.")),
		restores: f.NewCounterVec(counter("restores_total", "Tickets of places that Redis has lost, by what became of them."), []string{"room", "result"}),
		elsewhere: f.NewCounterVec(counter("other_network_total", "Tickets and tokens shown in another network than the one they were given in: passed or refused."),
			[]string{"room", "credential", "result"}),
	}
}

// estimateBuckets have the fifth to either side that the estimate is to be
// within, and go as far as one that is off by a factor of ten.
var estimateBuckets = []float64{.1, .25, .5, .67, .8, .9, 1, 1.1, 1.2, 1.5, 2, 4, 10}

// Entered counts a call of enter and how it ended.
func (m *Metrics) Entered(room, result string) {
	m.line.entries.WithLabelValues(m.rooms.label(room), m.words.result.label(result)).Inc()
}

// Departed counts n members who are in the room no more.
func (m *Metrics) Departed(room, reason string, n int) {
	if n > 0 {
		m.line.departures.WithLabelValues(m.rooms.label(room), m.words.reason.label(reason)).Add(float64(n))
	}
}

// Admitted counts a member let through from a lane after a wait; a negative one
// is not known.
func (m *Metrics) Admitted(room, lane string, waited time.Duration) {
	room, lane = m.rooms.label(room), m.words.lane.label(lane)
	m.line.admissions.WithLabelValues(room, lane).Inc()
	if waited >= 0 {
		m.line.waits.WithLabelValues(room, lane).Observe(waited.Seconds())
	}
}

// Lifted counts n members whom the longest-wait promise took.
func (m *Metrics) Lifted(room string, n int) {
	if n > 0 {
		m.line.lifts.WithLabelValues(m.rooms.label(room)).Add(float64(n))
	}
}

// Waited compares the wait that a member was told with the one that came of it.
// Both count as a second at least: answers have whole seconds.
func (m *Metrics) Waited(room string, told, waited time.Duration) {
	ratio := max(told, time.Second).Seconds() / max(waited, time.Second).Seconds()
	m.line.estimates.WithLabelValues(m.rooms.label(room)).Observe(ratio)
}

// Granted counts an event (issued, claimed, released, ...) of n grants.
func (m *Metrics) Granted(room, event string, n int) {
	if n > 0 {
		m.line.grants.WithLabelValues(m.rooms.label(room), m.words.event.label(event)).Add(float64(n))
	}
}

// Polled counts a poll by the status that it answered.
func (m *Metrics) Polled(room, status string) {
	m.line.polled.of(poll{m.rooms.label(room), m.words.status.label(status)}, func(p poll) prometheus.Counter {
		return m.line.polls.WithLabelValues(p.room, p.status)
	}).Inc()
}

// SetStretch says by how much longer than usual this process tells people who wait
// to wait between polls.
func (m *Metrics) SetStretch(stretch float64) { m.line.stretch.Set(stretch) }

// Restored counts a ticket of a place that Redis has lost, by what became of it:
// restored, passed (restored behind others who had been let through) or refused.
func (m *Metrics) Restored(room, result string) {
	m.line.restores.WithLabelValues(m.rooms.label(room), m.words.result.label(result)).Inc()
}

// OtherNetwork counts a ticket or token that was shown in another network than
// the one it was given in, where the room observes that or refuses it.
func (m *Metrics) OtherNetwork(room, credential string, passed bool) {
	result := "refused"
	if passed {
		result = "passed"
	}
	m.line.elsewhere.WithLabelValues(m.rooms.label(room), credential, result).Inc()
}
