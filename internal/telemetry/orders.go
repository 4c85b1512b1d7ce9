package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// orderBuckets end at the deadline of an attempt.
var orderBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 4, 8}

// orders is how placing orders is going.
type orders struct {
	total    *prometheus.CounterVec
	seconds  prometheus.Histogram
	inFlight prometheus.Gauge
}

func newOrders(f promauto.Factory) orders {
	return orders{
		total:    f.NewCounterVec(counter("orders_total", "Attempts to place an order, by how they ended."), []string{"result"}),
		seconds:  f.NewHistogram(histogram("order_seconds", "How long an attempt to place an order took.", orderBuckets)),
		inFlight: f.NewGauge(gauge("orders_in_flight", "Attempts to place an order that have begun and not ended.")),
	}
}

// OrderBegan counts an attempt that OrderEnded will end.
func (m *Metrics) OrderBegan() { m.orders.inFlight.Inc() }

// OrderEnded counts how an attempt ended, and how long it took.
func (m *Metrics) OrderEnded(result string, took time.Duration) {
	m.orders.inFlight.Dec()
	m.orders.total.WithLabelValues(m.words.result.label(result)).Inc()
	m.orders.seconds.Observe(took.Seconds())
}

// outbox is how events are leaving. Its gauges are of shared Postgres: every
// process that relays exports the same numbers.
type outbox struct {
	pending, oldest, dead prometheus.Gauge
	delivered, failures   prometheus.Counter
}

func newOutbox(f promauto.Factory) outbox {
	return outbox{
		pending:   f.NewGauge(gauge("outbox_pending", "Events that wait to be delivered.")),
		oldest:    f.NewGauge(gauge("outbox_oldest_age_seconds", "Age of the oldest event that waits; 0 if none does.")),
		dead:      f.NewGauge(gauge("outbox_dead", "Events that are not tried any more: an operator has to look.")),
		delivered: f.NewCounter(counter("outbox_delivered_total", "Events that this process delivered.")),
		failures:  f.NewCounter(counter("outbox_failures_total", "Attempts of this process to deliver an event that did not succeed.")),
	}
}

// SetOutbox says how many events wait, how old the oldest is, and how many are
// dead.
func (m *Metrics) SetOutbox(pending, dead int64, oldest time.Duration) {
	m.outbox.pending.Set(float64(pending))
	m.outbox.dead.Set(float64(dead))
	m.outbox.oldest.Set(oldest.Seconds())
}

// Delivered counts n events delivered.
func (m *Metrics) Delivered(n int) { m.outbox.delivered.Add(float64(max(n, 0))) }

// DeliveryFailed counts n events that could not be delivered this time.
func (m *Metrics) DeliveryFailed(n int) { m.outbox.failures.Add(float64(max(n, 0))) }
