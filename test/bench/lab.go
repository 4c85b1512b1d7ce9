package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/naive"
)

// lab is a Redis that nothing else uses, with one room of a million, and the
// product's store on it.
type lab struct {
	plan plan
	rdb  redis.UniversalClient
	line *redisstore.Store
	life queue.Life
	step queue.Step
	all  []member
}

const labRoom = "lab"

// rules are the defaults of a room, with no end to who may come.
func rules() queue.Rules {
	return queue.Rules{
		Batch: 50, Interval: time.Second, TokenTTL: 300 * time.Second, PickupTTL: time.Hour, ClaimLease: 15 * time.Second,
		ProcessingTimeout: 5 * time.Second, AwayAfter: 120 * time.Second, ForgetAfter: 30 * time.Minute, DoneTTL: time.Hour,
		MaxWaiting: 1 << 30, Weights: []int{1},
	}
}

func (w *world) openLab(ctx context.Context) (*lab, error) {
	p, err := devstack.StartRedis(ctx, devstack.Options{Dir: filepath.Join(w.dir, "redis", "lab"), Args: redisArgs})
	if err != nil {
		return nil, err
	}
	w.atEnd(p.Close)
	rdb, err := w.openRedis(redisURL(p))
	if err != nil {
		return nil, err
	}
	l := &lab{plan: w.plan, rdb: rdb, line: redisstore.New(rdb, prefix)}
	l.life = queue.Life{Room: labRoom, Generation: 1, Sale: 1, RestorableFrom: 1, Version: 1, Rules: rules(),
		Lanes: []string{"standard"}, Settings: []byte("{}"), Floors: make([]int64, queue.MaxLanes)}
	l.step = queue.Step{Generation: 1, Term: 1, Leader: "bench"}
	return l, l.line.Create(ctx, l.life)
}

// bytesPerWaiting fills the room and returns what a member takes. Those near the
// front are listened to, as a scheduler sees to it.
func (l *lab) bytesPerWaiting(ctx context.Context) (float64, error) {
	before, err := l.used(ctx)
	if err != nil {
		return 0, err
	}
	if l.all, err = fill(ctx, l.rdb, labRoom, l.plan.large); err != nil {
		return 0, err
	}
	if err := l.listen(ctx); err != nil {
		return 0, err
	}
	after, err := l.used(ctx)
	return float64(after-before) / float64(len(l.all)), err
}

// listen reaps until everybody before the horizon is listened to.
func (l *lab) listen(ctx context.Context) error {
	want := int64(min(l.life.Rules.Horizon(), int64(len(l.all))))
	return eventually(ctx, "the front is listened to", func() (bool, error) {
		if _, err := l.line.Reap(ctx, labRoom); err != nil {
			return false, err
		}
		n, err := l.rdb.ZCard(ctx, key(labRoom, "seen")).Result()
		return n >= want, err
	})
}

// used is the memory of the data: what waits to be written to a file passes.
func (l *lab) used(ctx context.Context) (int64, error) {
	info, err := l.rdb.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return infoNumber(info, "used_memory") - infoNumber(info, "mem_aof_buffer") - infoNumber(info, "mem_clients_normal"), nil
}

func infoNumber(info, name string) int64 {
	_, rest, _ := strings.Cut(info, "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\r")
	n, _ := strconv.ParseInt(line, 10, 64)
	return n
}

// batches are those that a tick is measured with.
var batches = []int{50, 200, 1_000, 5_000, 10_000}

const tickEvery = 100 * time.Millisecond

// setBatch gives the room another batch and the shortest interval.
func (l *lab) setBatch(ctx context.Context, batch int) error {
	l.life.Version++
	l.life.Rules.Batch, l.life.Rules.Interval = batch, tickEvery
	return l.line.Update(ctx, l.life)
}

// ticks returns how many microseconds the calls of a tick take for each member
// that it lets through, in several ticks of full batches.
func (l *lab) ticks(ctx context.Context, batch int) (Spread, error) {
	if err := l.setBatch(ctx, batch); err != nil {
		return Spread{}, err
	}
	var micros []float64
	enough := l.plan.ticks
	if batch <= 1_000 {
		enough *= 3 // short ones vary more
	}
	for len(micros) < enough {
		time.Sleep(tickEvery) // until the rate allows a batch again
		took, grants, err := l.tick(ctx, batch)
		if err != nil {
			return Spread{}, err
		}
		if len(grants) < batch {
			return Spread{}, fmt.Errorf("a tick of %d let %d through", batch, len(grants))
		}
		micros = append(micros, float64(took.Nanoseconds())/1e3/float64(len(grants)))
	}
	return spreadOf(micros), nil
}

// naiveTicks are those of the naive line, of its own batch.
func (l *lab) naiveTicks(ctx context.Context) (Spread, error) {
	line := naive.New(l.rdb, naivePrefix(labRoom), time.Now)
	if err := add(ctx, l.rdb, naivePrefix(labRoom)+":waiting", l.all); err != nil {
		return Spread{}, err
	}
	var micros []float64
	for range l.plan.ticks {
		start := time.Now()
		through, err := line.Tick(ctx)
		if err != nil {
			return Spread{}, err
		}
		micros = append(micros, float64(time.Since(start).Nanoseconds())/1e3/float64(len(through)))
	}
	return spreadOf(micros), nil
}

// tick is reserve and issue, as often as a batch needs.
func (l *lab) tick(ctx context.Context, batch int) (took time.Duration, grants []queue.Decision, err error) {
	keep := l.step.Seq + 1
	for more := true; more && len(grants) < batch; {
		l.step.Seq++
		start := time.Now()
		res, err := l.line.Reserve(ctx, labRoom, l.step, queue.Take{Keep: keep, Effective: batch, Max: scheduler.MaxTake})
		took += time.Since(start)
		if err != nil {
			return took, grants, err
		}
		decisions := make([]queue.Decision, len(res.Taken))
		for i, c := range res.Taken {
			decisions[i] = queue.Decision{Member: c.Member, Grant: credential.NewGrantID()}
		}
		more = res.More
		if len(decisions) == 0 {
			continue
		}
		start = time.Now()
		_, err = l.line.Issue(ctx, labRoom, l.step, decisions)
		took += time.Since(start)
		if err != nil {
			return took, grants, err
		}
		grants = append(grants, decisions...)
	}
	return took, grants, nil
}
