package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// access is who tries to operate rooms.
type access struct{ unknown *prometheus.CounterVec }

func newAccess(f promauto.Factory) access {
	return access{f.NewCounterVec(counter("operator_failures_total",
		"Requests to the operators' API without a known credential, by result: unknown (401), or limited (429).",
	), []string{"result"})}
}

// OperatorUnknown counts a request to the operators' API that showed no credential
// that is known.
func (m *Metrics) OperatorUnknown(result string) {
	m.access.unknown.WithLabelValues(m.words.result.label(result)).Inc()
}
