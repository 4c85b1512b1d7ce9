package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/api/problem"
)

// How often the parts are asked whether they take writes, and how long a part
// may stay without a good answer before this process wants no requests.
const (
	probeEvery = time.Second
	probeGrace = 5 * time.Second
)

// readiness is whether this process should be sent requests.
type readiness struct {
	mu       sync.Mutex
	draining bool
	good     map[string]time.Time // when each part last took a write
}

func (r *readiness) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
}

// parting makes each answer of a draining process the last on its connection.
// A proxy would else send its next request on one that is just being closed, and
// could not tell whether it was taken. One that closes idle connections sooner
// than the shutdown delay ends never meets that (deploy/nginx.conf).
func (r *readiness) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		next.ServeHTTP(&lastWriter{ResponseWriter: w, last: r.isDraining}, req)
	})
}

func (r *readiness) isDraining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// lastWriter asks when an answer begins, not when its request came: some take a
// while.
type lastWriter struct {
	http.ResponseWriter
	last  func() bool
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (w *lastWriter) WriteHeader(status int) {
	if !w.begun && w.last() {
		w.Header().Set("Connection", "close")
	}
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *lastWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *lastWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// missing lists what is lacking; empty when ready.
func (r *readiness) missing() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining {
		return []string{"draining"}
	}
	var out []string
	for _, part := range []string{"redis", "postgres"} {
		if time.Since(r.good[part]) > probeGrace {
			out = append(out, part)
		}
	}
	return out
}

// run asks the parts until ctx ends. Each question is a write, because a server
// that is read-only, or has lost its scripts, answers a PING.
func (r *readiness) run(ctx context.Context, redis, postgres func(context.Context) error) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		var wg sync.WaitGroup
		for part, ask := range map[string]func(context.Context) error{"redis": redis, "postgres": postgres} {
			wg.Go(func() { r.probe(ctx, part, ask) })
		}
		wg.Wait()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *readiness) probe(ctx context.Context, part string, ask func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, 2*probeEvery)
	defer cancel()
	if ask(ctx) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.good == nil {
		r.good = map[string]time.Time{}
	}
	r.good[part] = time.Now()
}

// writable asks Postgres for a write that changes nothing.
func (s *server) writable(ctx context.Context) error {
	_, err := s.books.Exec(ctx, "UPDATE room_progress SET written_at = written_at WHERE false")
	if err != nil {
		return fmt.Errorf("postgres takes no writes: %w", err)
	}
	return nil
}

// healthOnly serves a process without the api role.
func (s *server) healthOnly(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.URL.Path == "/livez", r.URL.Path == "/readyz" && len(s.ready.missing()) == 0:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"status":"ok"}`)
	case r.URL.Path == "/readyz":
		problem.Write(w, r, problem.New("unavailable").WithRetryAfter(time.Second))
	default:
		problem.Write(w, r, problem.New("not-found"))
	}
}
