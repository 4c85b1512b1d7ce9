package main

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/internal/load"
	"github.com/linekeeper/linekeeper/queue"
)

// crowd is simulated shoppers, so that one sees the line move: each enters,
// polls as told, orders, and comes back as somebody else.
type crowd struct {
	api                                string
	client                             *http.Client
	waiting, ready, ordered, turnedOff atomic.Int64
}

// crowd lets d.Crowd shoppers go through the room until ctx ends, and says
// every two seconds how they fare.
func (d *dev) crowd(ctx context.Context, api string) {
	c := &crowd{api: api, client: &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{MaxIdleConns: 200, MaxIdleConnsPerHost: 200},
	}}
	d.say("letting %d shoppers in ...", d.Crowd)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range d.Crowd {
		wg.Go(func() {
			for ctx.Err() == nil {
				shopper{c, load.Address(i)}.shop(ctx)
			}
		})
	}
	for ctx.Err() == nil {
		d.say("crowd: %d waiting, %d with an entry token, %d orders placed, %d turned away",
			c.waiting.Load(), c.ready.Load(), c.ordered.Load(), c.turnedOff.Load())
		sleep(ctx, 2*time.Second)
	}
}

// shopper is one of the crowd.
type shopper struct {
	*crowd
	address string
}

// shop is one shopper's way through.
func (c shopper) shop(ctx context.Context) {
	p, ok := c.position(ctx, http.MethodPost, "/v1/rooms/default/entries", "")
	if !ok {
		sleep(ctx, 2*time.Second)
		return
	}
	ticket := *p.QueueTicket
	c.waiting.Add(1)
	for ok && p.Status == queue.Waiting {
		sleep(ctx, time.Duration(p.NextPollAfterMs)*time.Millisecond)
		p, ok = c.position(ctx, http.MethodGet, "/v1/rooms/default/entries/me", ticket)
	}
	c.waiting.Add(-1)
	if !ok || p.EntryToken == nil {
		return
	}
	c.ready.Add(1)
	defer c.ready.Add(-1)
	sleep(ctx, time.Duration(rand.IntN(2000))*time.Millisecond) // reading the page
	if c.order(ctx, *p.EntryToken) {
		c.ordered.Add(1)
	}
}

func (c shopper) position(ctx context.Context, method, path, ticket string) (p spec.Position, ok bool) {
	status, body := c.send(ctx, method, path, "X-Queue-Ticket", ticket, "")
	if status != http.StatusOK && status != http.StatusCreated {
		c.turnedOff.Add(1)
		return p, false
	}
	if err := json.Unmarshal(body, &p); err != nil || p.QueueTicket == nil && method == http.MethodPost {
		return p, false
	}
	return p, true
}

func (c shopper) order(ctx context.Context, token string) bool {
	status, _ := c.send(ctx, http.MethodPost, "/v1/orders", "X-Entry-Token", token, `{"items":[{"sku":"demo","quantity":1}]}`)
	return status == http.StatusCreated || status == http.StatusOK
}

// send returns status 0 where there was no answer.
func (c shopper) send(ctx context.Context, method, path, header, credential, body string) (int, []byte) {
	req, err := http.NewRequestWithContext(ctx, method, c.api+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	req.Header.Set("X-Forwarded-For", c.address)
	if credential != "" {
		req.Header.Set(header, credential)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return 0, nil
	}
	return resp.StatusCode, b
}
