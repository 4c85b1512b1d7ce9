//go:build !linux

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// drive asks servers over conns connections, dealt out by turns, for d: each the next
// request as soon as the last is answered. It ends with the first wrong answer.
func drive(ctx context.Context, addrs []string, conns int, d time.Duration, t traffic) (tally, error) {
	clients := make([]*client, conns)
	for i := range clients {
		c, err := dial(ctx, addrs[i%len(addrs)])
		if err != nil {
			return tally{}, err
		}
		defer c.conn.Close()
		clients[i] = c
	}
	var over atomic.Bool
	var done sync.WaitGroup
	errs, answered := make([]error, conns), make([]int, conns)
	start := time.Now()
	for i, c := range clients {
		done.Go(func() {
			if answered[i], errs[i] = c.ask(t, i, &over); errs[i] != nil {
				over.Store(true)
			}
		})
	}
	timer := time.AfterFunc(d, func() { over.Store(true) })
	done.Wait()
	timer.Stop()
	out := tally{seconds: time.Since(start).Seconds()}
	for i := range clients {
		out.requests += answered[i]
		if errs[i] != nil {
			return tally{}, errs[i]
		}
	}
	return out, ctx.Err()
}

// ask asks until it is over, as connection number.
func (c *client) ask(t traffic, number int, over *atomic.Bool) (answered int, err error) {
	for !over.Load() {
		request, id := t.next(number)
		if request == nil {
			return answered, nil
		}
		if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return answered, err
		}
		status, body, err := c.exchange(request)
		if err == nil {
			err = t.check(id, status, body)
		}
		if err != nil {
			return answered, fmt.Errorf("%.60q: %w", request, err)
		}
		answered++
	}
	return answered, nil
}
