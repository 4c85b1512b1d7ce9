package telemetry

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const namespace = "linekeeper"

// Metrics is every metric of the process, on a registry of its own. Its
// methods are safe for concurrent use, cost well below a microsecond, and never
// fail. A room given to a method must be one that exists: names that clients
// made up would use up the limit of rooms.
type Metrics struct {
	registry *prometheus.Registry
	rooms    *limit
	words    *limits
	line     line
	view     *roomViews
	tick     ticks
	orders   orders
	outbox   outbox
	redis    redisMetrics
	http     httpMetrics
	access   access
	outage   outage

	decisions *prometheus.CounterVec
}

// limits is one limit for each label of free words.
type limits struct{ lane, result, reason, event, status, state, script, breaker *limit }

// New returns the metrics of a process of the given version.
func New(version string) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := promauto.With(registry)
	f.NewGaugeVec(gauge("build_info", "Version of Linekeeper and of Go; always 1."), []string{"version", "goversion"}).
		WithLabelValues(version, runtime.Version()).Set(1)
	m := &Metrics{
		registry: registry,
		rooms:    newLimit(maxRooms),
		words: &limits{
			lane: newLimit(maxWords), result: newLimit(maxWords), reason: newLimit(maxWords), event: newLimit(maxWords),
			status: newLimit(maxWords), state: newLimit(maxWords), script: newLimit(maxWords), breaker: newLimit(maxWords),
		},
		line:   newLine(f),
		tick:   newTicks(f),
		orders: newOrders(f),
		outbox: newOutbox(f),
		redis:  newRedisMetrics(f),
		http:   newHTTPMetrics(f),
		access: newAccess(f),
		outage: newOutage(f),

		decisions: newDecisions(f),
	}
	m.view = newRoomViews(m.rooms, m.words.state)
	registry.MustRegister(m.view)
	return m
}

// Handler serves the metrics to scrapers. Where one collector fails the rest
// is served: half a page tells more about an outage than none.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// gauge, counter and histogram keep the namespace in one place.
func gauge(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}
}

func counter(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
}

func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
}
