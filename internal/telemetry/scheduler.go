package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// ticks is how the scheduler of this process is doing.
type ticks struct {
	leader, term prometheus.Gauge
	total        *prometheus.CounterVec
	seconds      prometheus.Histogram
}

func newTicks(f promauto.Factory) ticks {
	return ticks{
		leader:  f.NewGauge(gauge("scheduler_leader", "1 while this process leads.")),
		term:    f.NewGauge(gauge("scheduler_term", "Newest term in which this process led; 0 without a lock.")),
		total:   f.NewCounterVec(counter("scheduler_ticks_total", "Ticks, by how they ended."), []string{"result"}),
		seconds: f.NewHistogram(histogram("scheduler_tick_seconds", "How long one tick of one room took.", scriptBuckets)),
	}
}

// Led says that this process leads in a term, or no longer does; then all that
// SetRoom and SetBatch said is dropped.
func (m *Metrics) Led(term int64, leads bool) {
	m.view.lead(leads)
	m.tick.term.Set(float64(term))
	m.tick.leader.Set(0)
	if leads {
		m.tick.leader.Set(1)
	}
}

// Ticked counts one tick of a room that ended at the given time.
func (m *Metrics) Ticked(room, result string, took time.Duration, at time.Time) {
	m.tick.total.WithLabelValues(m.words.result.label(result)).Inc()
	m.tick.seconds.Observe(took.Seconds())
	m.view.ticked(room, at)
}
