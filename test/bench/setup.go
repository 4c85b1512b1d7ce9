package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/linekeeper/linekeeper/test/fault"
)

// startComparators has plain answer as the product just has, and gives all of them
// the runtime that the product has given itself.
func (w *world) startComparators(ctx context.Context) ([]string, error) {
	c, err := w.crowd(ctx, "model", small, 1, slow)
	if err != nil {
		return nil, err
	}
	poll, err := w.capture(ctx, c.requests[0])
	if err != nil {
		return nil, err
	}
	enter := enterRoom(c.room, &w.newcomers)
	request, _ := enter.next(0)
	entered, err := w.capture(ctx, request)
	if err != nil {
		return nil, err
	}
	w.plainSize = len(poll.Body)
	b, err := json.Marshal(map[string]canned{"poll": poll, "enter": entered})
	if err != nil {
		return nil, err
	}
	answers := filepath.Join(w.dir, "answers.json")
	if err := os.WriteFile(answers, b, 0o644); err != nil {
		return nil, err
	}
	tuning, err := w.tuning(ctx)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w.others = map[string]*fault.Process{}
	for kind, flags := range map[string][]string{
		"plain": {"-answers", answers},
		"naive": {"-redis", "redis://" + w.redis.Addr},
		"bare":  {"-database", w.postgres.DSN("bare")},
	} {
		if w.others[kind], err = w.start(ctx, self, tuning, append(flags, "comparator", kind)...); err != nil {
			return nil, err
		}
	}
	return tuning, nil
}

// capture sends a request to the product and keeps the answer.
func (w *world) capture(ctx context.Context, request []byte) (canned, error) {
	client, err := dial(ctx, host(w.product))
	if err != nil {
		return canned{}, err
	}
	defer client.conn.Close()
	status, body, err := client.exchange(request)
	if err != nil {
		return canned{}, err
	}
	if status/100 != 2 {
		return canned{}, wrongStatus(status, 200, body)
	}
	out := canned{Status: status, Header: http.Header{}, Body: string(body)}
	head, _, _ := bytes.Cut(client.buf, headEnd)
	for line := range strings.Lines(string(head)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if found && name != "Date" && name != "Content-Length" {
			out.Header.Add(name, value)
		}
	}
	return out, nil
}

// tuning is how the product's runtime collects garbage and how many threads it
// has, as the environment of another process.
func (w *world) tuning(ctx context.Context) ([]string, error) {
	text, err := w.product.Metrics(ctx, http.DefaultClient)
	if err != nil {
		return nil, err
	}
	var env []string
	for metric, variable := range map[string]string{
		"go_gc_gogc_percent": "GOGC", "go_gc_gomemlimit_bytes": "GOMEMLIMIT", "go_sched_gomaxprocs_threads": "GOMAXPROCS",
	} {
		v, err := text.Value(metric)
		if err != nil {
			return nil, err
		}
		if v < 1<<62 { // else there is no limit
			env = append(env, fmt.Sprintf("%s=%d", variable, int64(v)))
		}
	}
	return env, nil
}

// Allocs is what a poll allocates, over all goroutines of a process.
type Allocs struct {
	Product float64 `json:"product"`
	Plain   float64 `json:"plain"`
}

func (w *world) mallocs(ctx context.Context) (Allocs, error) {
	var counts [2]float64
	for i, p := range []*fault.Process{w.product, w.others["plain"]} {
		text, err := p.Metrics(ctx, http.DefaultClient)
		if err != nil {
			return Allocs{}, err
		}
		if counts[i], err = text.Value("go_memstats_mallocs_total"); err != nil {
			return Allocs{}, err
		}
	}
	return Allocs{counts[0], counts[1]}, nil
}

// allocs is that since at, for each of so many requests.
func (w *world) allocs(ctx context.Context, at Allocs, product, plain uint64) (Allocs, error) {
	now, err := w.mallocs(ctx)
	return Allocs{(now.Product - at.Product) / float64(product), (now.Plain - at.Plain) / float64(plain)}, err
}
