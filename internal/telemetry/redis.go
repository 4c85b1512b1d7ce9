package telemetry

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
)

// scriptBuckets reach from a script that does nothing to the longest timeout;
// 5 ms is where a script is too long.
var scriptBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}

// redisMetrics is how Redis answers, as this process sees it.
type redisMetrics struct {
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
}

func newRedisMetrics(f promauto.Factory) redisMetrics {
	return redisMetrics{
		seconds: f.NewHistogramVec(histogram("redis_script_seconds", "How long a script took, with its round trip and retries.", scriptBuckets), []string{"script"}),
		errors:  f.NewCounterVec(counter("redis_errors_total", "Scripts that got no reply or an error, by the kind of error."), []string{"kind"}),
	}
}

// ObserveScript counts a call of a script; err is what go-redis returned, and
// redis.Nil is no error.
func (m *Metrics) ObserveScript(script string, d time.Duration, err error) {
	m.redis.seconds.WithLabelValues(m.words.script.label(script)).Observe(d.Seconds())
	if err != nil && !errors.Is(err, redis.Nil) {
		m.redis.errors.WithLabelValues(errorKind(err)).Inc()
	}
}

// replyKinds sorts what Redis itself answered, by the first word.
var replyKinds = map[string]string{
	"OOM": "oom", "READONLY": "readonly", "LOADING": "loading", "BUSY": "busy",
	"NOSCRIPT": "noscript", "WRONGTYPE": "wrongtype",
	"CLUSTERDOWN": "cluster", "MASTERDOWN": "cluster", "MOVED": "cluster", "ASK": "cluster",
	"TRYAGAIN": "cluster", "CROSSSLOT": "cluster",
}

// errorKind is one of a dozen words: the text of an error may hold keys.
func errorKind(err error) string {
	var reply redis.Error
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout):
		return "timeout"
	case errors.As(err, &reply):
		return replyKind(reply.Error())
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "network"
	}
	return other
}

// replyKind wants the whole first word: BUSYGROUP is not BUSY.
func replyKind(reply string) string {
	word, _, _ := strings.Cut(reply, " ")
	if kind, ok := replyKinds[word]; ok {
		return kind
	}
	return other
}
