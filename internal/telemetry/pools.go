package telemetry

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// WatchRedis exports the connections of a client under a name (main, lock, ...)
// that no other watched client has.
func (m *Metrics) WatchRedis(name string, client interface{ PoolStats() *redis.PoolStats }) error {
	return m.watch(name, pool[*redis.PoolStats]{stat: client.PoolStats, figures: redisFigures})
}

// WatchPostgres exports the connections of a pool under a name that no other
// watched pool has.
func (m *Metrics) WatchPostgres(name string, p interface{ Stat() *pgxpool.Stat }) error {
	return m.watch(name, pool[*pgxpool.Stat]{stat: p.Stat, figures: postgresFigures})
}

func (m *Metrics) watch(name string, c prometheus.Collector) error {
	err := prometheus.WrapRegistererWith(prometheus.Labels{"pool": name}, m.registry).Register(c)
	if err != nil {
		return fmt.Errorf("watch the pool %s: %w", name, err)
	}
	return nil
}

// figure is one metric of a pool, and how to read it from a snapshot.
type figure[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(S) float64
}

// pool reads a connection pool whenever metrics are scraped: its numbers are
// kept by the driver, and a copy would be late.
type pool[S any] struct {
	stat    func() S
	figures []figure[S]
}

// Describe lists the metrics.
func (p pool[S]) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range p.figures {
		ch <- f.desc
	}
}

// Collect takes one snapshot, so that the figures fit together.
func (p pool[S]) Collect(ch chan<- prometheus.Metric) {
	s := p.stat()
	for _, f := range p.figures {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.read(s))
	}
}

// connections is a figure of one metric for all states, so that their sum is
// the number of sockets; this one counts those in one state now.
func connections[S any](system, state string, read func(S) float64) figure[S] {
	name := prometheus.BuildFQName(namespace, system, "pool_connections")
	labels := prometheus.Labels{"state": state}
	return figure[S]{prometheus.NewDesc(name, "Connections to "+system+", by what they do.", nil, labels), prometheus.GaugeValue, read}
}

// rising is a figure that starts at 0 with the pool and never falls.
func rising[S any](name, help string, read func(S) float64) figure[S] {
	return figure[S]{prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, nil), prometheus.CounterValue, read}
}

var redisFigures = []figure[*redis.PoolStats]{
	connections("redis", "idle", func(s *redis.PoolStats) float64 { return float64(s.IdleConns) }),
	connections("redis", "in_use", func(s *redis.PoolStats) float64 { return float64(s.TotalConns) - float64(s.IdleConns) }),
	// Automatic pipelining, which serves polls, has connections of its own.
	connections("redis", "pipeline", func(s *redis.PoolStats) float64 {
		if s.PipelineStats == nil {
			return 0
		}
		return float64(s.PipelineStats.TotalConns)
	}),
	rising("redis_pool_hits_total", "Calls that found a free connection.", func(s *redis.PoolStats) float64 { return float64(s.Hits) }),
	rising("redis_pool_misses_total", "Calls that had to open a connection.", func(s *redis.PoolStats) float64 { return float64(s.Misses) }),
	rising("redis_pool_timeouts_total", "Calls that got no connection in time.", func(s *redis.PoolStats) float64 { return float64(s.Timeouts) }),
}

var postgresFigures = []figure[*pgxpool.Stat]{
	connections("postgres", "idle", func(s *pgxpool.Stat) float64 { return float64(s.IdleConns()) }),
	connections("postgres", "in_use", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }),
	connections("postgres", "opening", func(s *pgxpool.Stat) float64 { return float64(s.ConstructingConns()) }),
	rising("postgres_pool_acquires_total", "Connections taken from the pool.", func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) }),
	rising("postgres_pool_acquire_seconds_total", "Time spent on taking connections from the pool.", func(s *pgxpool.Stat) float64 { return s.AcquireDuration().Seconds() }),
	rising("postgres_pool_waits_total", "Connections that were waited for, because none was idle.", func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }),
	rising("postgres_pool_canceled_total", "Callers that gave up before they had a connection.", func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) }),
}
