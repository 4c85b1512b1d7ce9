package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// line counts what members do, and what happens to them.
type line struct {
	entries, departures, admissions, grants, polls, restores *prometheus.CounterVec
	waits                                                    *prometheus.HistogramVec
}

func newLine(f promauto.Factory) line {
	return line{
		entries:    f.NewCounterVec(counter("entries_total", "Calls of enter, by how they ended."), []string{"room", "result"}),
		departures: f.NewCounterVec(counter("departures_total", "Members who are in the room no more, by how that came."), []string{"room", "reason"}),
		admissions: f.NewCounterVec(counter("admissions_total", "Members let through."), []string{"room", "lane"}),
		grants:     f.NewCounterVec(counter("grants_total", "What happened to grants."), []string{"room", "event"}),
		waits: f.NewHistogramVec(histogram("wait_seconds", "From enter to being let through.",
			prometheus.ExponentialBuckets(1, 2, 14)), []string{"room", "lane"}),
		polls:    f.NewCounterVec(counter("polls_total", "Polls, by the status answered."), []string{"room", "status"}),
		restores: f.NewCounterVec(counter("restores_total", "Tickets of places that Redis has lost, by what became of them."), []string{"room", "result"}),
	}
}

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

// Granted counts an event (issued, claimed, released, ...) of n grants.
func (m *Metrics) Granted(room, event string, n int) {
	if n > 0 {
		m.line.grants.WithLabelValues(m.rooms.label(room), m.words.event.label(event)).Add(float64(n))
	}
}

// Polled counts a poll by the status that it answered.
func (m *Metrics) Polled(room, status string) {
	m.line.polls.WithLabelValues(m.rooms.label(room), m.words.status.label(status)).Inc()
}

// Restored counts a ticket of a place that Redis has lost, by what became of it:
// restored, passed (restored behind others who had been let through) or refused.
func (m *Metrics) Restored(room, result string) {
	m.line.restores.WithLabelValues(m.rooms.label(room), m.words.result.label(result)).Inc()
}
