package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// outage is what this process does while Redis is away.
type outage struct {
	breaker, failedOpen *prometheus.GaugeVec
	passes              *prometheus.CounterVec
}

func newOutage(f promauto.Factory) outage {
	return outage{
		breaker:    f.NewGaugeVec(gauge("breaker_state", "What a breaker does with requests: 0 they go through, 1 one tries, 2 they are refused."), []string{"name"}),
		failedOpen: f.NewGaugeVec(gauge("failed_open", "1 while this process passes everybody in a room, because Redis is out of reach."), []string{"room"}),
		passes:     f.NewCounterVec(counter("passed_open_total", "Answers with an entry token given while Redis was out of reach, repeats included."), []string{"room"}),
	}
}

// SetBreaker says what a breaker does with requests: 0 lets them through, 1 lets one
// try, 2 refuses them.
func (m *Metrics) SetBreaker(name string, state int) {
	m.outage.breaker.WithLabelValues(m.words.breaker.label(name)).Set(float64(state))
}

// FailedOpen says that a room passes people without Redis, or no longer does.
func (m *Metrics) FailedOpen(room string, open bool) {
	value := 0.0
	if open {
		value = 1
	}
	m.outage.failedOpen.WithLabelValues(m.rooms.label(room)).Set(value)
}

// PassedOpen counts an answer with a token in such a room.
func (m *Metrics) PassedOpen(room string) {
	m.outage.passes.WithLabelValues(m.rooms.label(room)).Inc()
}
