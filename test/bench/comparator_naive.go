package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/test/naive"
)

func naivePrefix(room string) string { return "naive:" + room }

// naiveLines is the naive design behind the routes: who asks is what a header says.
type naiveLines struct {
	client redis.UniversalClient
	lines  sync.Map // room -> *naive.Line
}

// naiveServer serves lines of the Redis at url.
func naiveServer(url string) (*comparator, error) {
	o, err := config.RedisOptions(config.URL(url))
	if err != nil {
		return nil, err
	}
	n := &naiveLines{client: config.OpenRedis(o)}
	c := newComparator()
	c.close = func() { _ = n.client.Close() }
	c.router.Get(pollRoute, n.poll)
	c.router.Post(enterRoute, n.enter)
	return c, nil
}

func (n *naiveLines) line(r *http.Request) *naive.Line {
	room := chi.URLParam(r, "room")
	if l, ok := n.lines.Load(room); ok {
		return l.(*naive.Line)
	}
	l, _ := n.lines.LoadOrStore(room, naive.New(n.client, naivePrefix(room), time.Now))
	return l.(*naive.Line)
}

// place is what the naive design tells somebody.
type place struct {
	Status               string `json:"status"`
	Rank                 int64  `json:"rank"`
	TotalWaiting         int64  `json:"totalWaiting"`
	EstimatedWaitSeconds int64  `json:"estimatedWaitSeconds"`
	Token                string `json:"token,omitempty"`
}

func (n *naiveLines) poll(w http.ResponseWriter, r *http.Request) {
	p, err := n.line(r).Position(r.Context(), r.Header.Get(memberHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	asJSON(w, http.StatusOK, place{p.Status, p.Rank, p.Total, int64(p.EstimatedWait.Seconds()), p.Token})
}

func (n *naiveLines) enter(w http.ResponseWriter, r *http.Request) {
	if err := n.line(r).Enter(r.Context(), r.Header.Get(memberHeader)); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	asJSON(w, http.StatusCreated, place{Status: "WAITING"})
}
