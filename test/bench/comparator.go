package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/internal/breaker"
	"github.com/linekeeper/linekeeper/internal/telemetry"
)

// The routes that a comparator answers in its own way.
const (
	enterRoute = "/v1/rooms/{room}/entries"
	pollRoute  = "/v1/rooms/{room}/entries/me"
	orderRoute = "/v1/orders"
)

// comparator is a process that answers some routes of the product, behind the
// product's router, middleware and server, and all else like the product without
// parts: not at all.
type comparator struct {
	router  chi.Router
	metrics *telemetry.Metrics
	log     *slog.Logger
	close   func() // what its handlers use
}

func newComparator() *comparator {
	c := &comparator{close: func() {}, metrics: telemetry.New("comparator"), log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	internal := func(w http.ResponseWriter, r *http.Request) { problem.Write(w, r, problem.New("internal")) }
	c.router = api.New(api.Options{
		Log:        c.log,
		Middleware: []func(http.Handler) http.Handler{c.metrics.HTTP, telemetry.Recover(c.log, internal), breaker.Requests},
	}).Handler()
	return c
}

// serve is what `linekeeper serve` does for its listeners, until ctx ends.
func (c *comparator) serve(ctx context.Context) error {
	defer c.close()
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	operators, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", c.metrics.Handler())
	servers := map[net.Listener]*http.Server{public: server(c.router), operators: server(mux)}
	ended := make(chan error, len(servers))
	for l, s := range servers {
		go func() { ended <- s.Serve(l) }()
		defer s.Close()
	}
	c.log.Info("serving", "public", public.Addr().String(), "admin", operators.Addr().String())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// server has the settings of the product's.
func server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 60 * time.Second, MaxHeaderBytes: 16 << 10,
	}
}

// canned is an answer of the product, for plain to give to everybody.
type canned struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

// plain answers the polls and the enters with those of a file: the size and the
// headers of the product's, and nothing behind it.
func plain(file string) (*comparator, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var answers struct{ Poll, Enter canned }
	if err := json.Unmarshal(b, &answers); err != nil {
		return nil, fmt.Errorf("answers of plain: %w", err)
	}
	if answers.Poll.Body == "" || answers.Enter.Body == "" {
		return nil, errors.New("answers of plain: none")
	}
	c := newComparator()
	c.router.Get(pollRoute, answers.Poll.handler())
	c.router.Post(enterRoute, answers.Enter.handler())
	return c, nil
}

// handler gives the answer. Headers that the middleware sets are its own.
func (a canned) handler() http.HandlerFunc {
	body := []byte(a.Body)
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range a.Header {
			if _, set := w.Header()[name]; !set {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write(body)
	}
}

// asJSON answers as the product does.
func asJSON(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
