package main

import (
	"context"
	"sync/atomic"
)

// sizesContest compares two lines of the product, polls and enters. Whom a round
// of enters has added is taken away again before the next, so that the small line
// stays small.
func (w *world) sizesContest(ctx context.Context, short, long *crowd) (poll, enter Contest, err error) {
	addr, pid := host(w.product), w.product.Pid()
	poll, err = w.contest(ctx, "poll_sizes", 64,
		side{name: "1m", addr: addr, load: long, pid: pid},
		side{name: "10k", addr: addr, load: short, pid: pid})
	if err != nil {
		return poll, enter, err
	}
	entering := func(name string, c *crowd) side {
		return side{name: name, addr: addr, load: enterRoom(c.room, &w.newcomers), pid: pid, before: w.cutting(c)}
	}
	enter, err = w.contest(ctx, "enter_sizes", 64, entering("1m", long), entering("10k", short))
	return poll, enter, err
}

// cutting takes everybody out of the lane who has entered behind the crowd.
func (w *world) cutting(c *crowd) func(context.Context) error {
	last := c.members[len(c.members)-1].score
	return func(ctx context.Context) error {
		return w.rdb.ZRemRangeByScore(ctx, key(c.room, "lane0"), "("+itoa(last), "+inf").Err()
	}
}

// newcomers counts strangers.
type newcomers = atomic.Uint64
