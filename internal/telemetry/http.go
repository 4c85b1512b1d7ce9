package telemetry

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// unmatched is the route of requests that no route takes.
const unmatched = "unmatched"

// requestBuckets begin where a poll from a pipeline is, and end beyond the
// deadline of an order.
var requestBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// httpMetrics is how requests are answered.
type httpMetrics struct {
	seconds *prometheus.HistogramVec
	routes  *limit
	series  *known[answer, prometheus.Observer]
}

// answer is what answers are measured by.
type answer struct {
	method, route string
	status        int
}

func newHTTPMetrics(f promauto.Factory) httpMetrics {
	opts := histogram("http_request_seconds", "How long requests took, by method, route and status code.", requestBuckets)
	return httpMetrics{
		seconds: f.NewHistogramVec(opts, []string{"method", "route", "code"}),
		routes:  newLimit(maxRoutes),
		series:  &known[answer, prometheus.Observer]{},
	}
}

// HTTP measures requests. It goes into a chi router with Use, first, because
// the route that it names them by is known to that router alone.
func (m *Metrics) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		// A panic must be counted too, and goes on: answering it is not our business.
		returned := false
		defer func() {
			m.measure(r, answered(ww.Status(), returned), time.Since(start))
		}()
		next.ServeHTTP(ww, r)
		returned = true
	})
}

// answered is the status that the client saw. A handler that writes nothing
// answers 200 if it returns, and with a broken connection if it panics.
func answered(status int, returned bool) int {
	switch {
	case status != 0:
		return status
	case returned:
		return http.StatusOK
	default:
		return http.StatusInternalServerError
	}
}

func (m *Metrics) measure(r *http.Request, status int, took time.Duration) {
	route := chi.RouteContext(r.Context()).RoutePattern()
	if route == "" {
		route = unmatched
	}
	m.http.series.of(answer{method(r.Method), m.http.routes.label(route), status}, func(a answer) prometheus.Observer {
		return m.http.seconds.WithLabelValues(a.method, a.route, code(a.status))
	}).Observe(took.Seconds())
}
