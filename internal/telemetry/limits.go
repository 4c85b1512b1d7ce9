package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func newDecisions(f promauto.Factory) *prometheus.CounterVec {
	return f.NewCounterVec(counter("ratelimit_decisions_total", "Decisions of rate limits: allowed, refused, or unknown, where Redis did not say and the request went on."),
		[]string{"policy", "algorithm", "result"})
}

// RateLimitDecision returns what to call each time that policy, which counts by
// algorithm, decides so. All three are constants or an operator's.
func (m *Metrics) RateLimitDecision(policy, algorithm, result string) func() {
	return m.decisions.WithLabelValues(policy, algorithm, m.words.result.label(result)).Inc
}
