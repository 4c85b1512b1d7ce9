package outbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// MaxBatch is how many events are taken at once, and so the most that one call
// of a Sink gets.
const MaxBatch = 500

const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Minute
	// maxPause bounds how long the relay as a whole waits while nothing gets
	// through. It is shorter than maxBackoff, so that new events find a sink
	// that is back within seconds.
	maxPause   = 5 * time.Second
	pruneBatch = 1000
	pruneEvery = time.Minute
)

// Options of a Relay. A zero field gets the value in its comment.
type Options struct {
	Log         *slog.Logger  // discards
	Observer    Observer      // none
	Poll        time.Duration // 200 ms: how often to look without being poked
	Gather      time.Duration // 50 ms: from one round to the next where events come one by one, so that they share calls
	Lease       time.Duration // 30 s: for which rows are taken; a relay that died lets go by then
	Timeout     time.Duration // 5 s: of one call of the sink
	MaxAttempts int           // 20: deliveries that fail as poison until an event is dead
	Retention   time.Duration // 24 h: for which done events are kept
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Poll = cmp.Or(o.Poll, 200*time.Millisecond)
	o.Gather = cmp.Or(o.Gather, 50*time.Millisecond)
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 20)
	o.Retention = cmp.Or(o.Retention, 24*time.Hour)
	return o
}

// Relay delivers due events to a sink. Any number may run, in any number of
// processes: each takes rows that no other has.
type Relay struct {
	pool  *pgxpool.Pool
	sink  Sink
	opts  Options
	owner string
	poke  chan struct{}

	// Of the loop in Run alone.
	failures int       // rounds in a row in which nothing got through
	pruneAt  time.Time // not before
}

// NewRelay returns a Relay from the outbox behind pool to sink.
func NewRelay(pool *pgxpool.Pool, sink Sink, opts Options) *Relay {
	return &Relay{
		pool:  pool,
		sink:  sink,
		opts:  opts.withDefaults(),
		owner: uuid.NewString(),
		poke:  make(chan struct{}, 1),
	}
}

// Poke makes the relay look: at once, if it has rested for a while, or when it has,
// so that a crowd of orders costs few rounds. It never blocks; the process that has
// committed an event calls it. While nothing gets through it has no effect.
func (r *Relay) Poke() {
	select {
	case r.poke <- struct{}{}:
	default: // it will look anyway
	}
}

// Run delivers until ctx ends, and then returns nil as soon as the delivery in
// hand is written down and the rest of the rows in hand are given back.
func (r *Relay) Run(ctx context.Context) error {
	for {
		began := time.Now()
		more, err := r.round(ctx)
		if ctx.Err() != nil {
			return nil
		}
		r.tidy(ctx)
		if !r.rest(ctx, began, more, err) {
			return nil
		}
	}
}

// rest waits for the round after the one that has begun then, and says whether there
// is to be one.
func (r *Relay) rest(ctx context.Context, began time.Time, more bool, err error) bool {
	if err != nil {
		r.failures++
		pause := backoff(r.failures)
		r.opts.Log.WarnContext(ctx, "outbox not delivered", "err", err, "rounds", r.failures, "pause", pause)
		return wait(ctx, pause, nil)
	}
	r.failures = 0
	if more {
		return ctx.Err() == nil
	}
	return wait(ctx, r.opts.Poll, r.poke) && wait(ctx, time.Until(began.Add(r.opts.Gather)), nil)
}

// wait returns after d, or when woken; false if ctx has ended.
func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return true
}

// backoff is how long the relay as a whole waits after n failed rounds. Without
// it each poll of an outage would try the next 500 events.
func backoff(n int) time.Duration {
	d := min(maxPause, minBackoff<<min(n-1, 10))
	return time.Duration(float64(d) * jitter())
}

func jitter() float64 { return 0.5 + rand.Float64()/2 }

// tidy deletes old rows now and then.
func (r *Relay) tidy(ctx context.Context) {
	if time.Now().Before(r.pruneAt) {
		return
	}
	more, err := r.prune(ctx)
	if err != nil {
		r.opts.Log.WarnContext(ctx, "outbox not pruned", "err", err)
	}
	if !more {
		r.pruneAt = time.Now().Add(pruneEvery)
	}
}

// round takes what is due and delivers it room by room. An error says that
// nothing got through, more that there may be more to take.
func (r *Relay) round(ctx context.Context) (more bool, err error) {
	batch, err := r.take(ctx)
	if err != nil || len(batch) == 0 {
		return false, err
	}
	// Half of the lease is for deliveries, the other half for writing them down.
	due := time.Now().Add(r.opts.Lease / 2)
	through := false
	var failure error
	rest := batch
	slices.SortFunc(rest, func(a, b taken) int {
		return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.id, b.id))
	})
	for len(rest) > 0 && ctx.Err() == nil && time.Now().Before(due) {
		n := 1
		for n < len(rest) && rest[n].Room == rest[0].Room {
			n++
		}
		if err := r.deliver(ctx, rest[:n], due); err != nil {
			failure = err
		} else {
			through = true
		}
		rest = rest[n:]
	}
	if err := r.giveBack(ctx, rest); err != nil {
		failure = err
	}
	if !through {
		return false, failure
	}
	return len(batch) == MaxBatch || len(rest) > 0, nil
}

// deliver hands the events of one room to the sink and writes down what became
// of them. An error says that the way to the sink or to Postgres is closed.
func (r *Relay) deliver(ctx context.Context, batch []taken, due time.Time) error {
	err := r.send(ctx, batch)
	switch {
	case err == nil:
		return r.done(ctx, batch)
	case errors.Is(err, ErrPoison) && len(batch) > 1:
		return r.oneByOne(ctx, batch, due)
	case errors.Is(err, ErrPoison):
		return r.poisoned(ctx, batch, err)
	}
	_, put := r.fail(ctx, batch, 0, err)
	return errors.Join(err, put)
}

// oneByOne finds the poison among events that failed together. It stops where
// the way to the sink is closed, so that an outage is not tried 500 times.
func (r *Relay) oneByOne(ctx context.Context, batch []taken, due time.Time) error {
	for i := range batch {
		if ctx.Err() != nil || time.Now().After(due) {
			return r.giveBack(ctx, batch[i:])
		}
		if err := r.deliver(ctx, batch[i:i+1], due); err != nil {
			return errors.Join(err, r.putOff(ctx, batch[i+1:], err))
		}
	}
	return nil
}

func (r *Relay) putOff(ctx context.Context, batch []taken, cause error) error {
	if len(batch) == 0 {
		return nil
	}
	_, err := r.fail(ctx, batch, 0, cause)
	return err
}

// poisoned counts a failure against the one event that it is the fault of.
func (r *Relay) poisoned(ctx context.Context, batch []taken, cause error) error {
	dead, err := r.fail(ctx, batch, 1, cause)
	level, msg := slog.LevelWarn, "event is poison"
	if dead > 0 {
		level, msg = slog.LevelError, "event is dead"
	}
	e := batch[0]
	r.opts.Log.Log(ctx, level, msg, "event", e.id, "kind", e.Kind, "order", e.OrderID, "room", e.Room, "err", cause)
	return err
}

// send outlives the stop of the relay, so that a delivery in hand is not cut
// off where nobody knows whether it had its effect.
func (r *Relay) send(ctx context.Context, batch []taken) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.Timeout)
	defer cancel()
	events := make([]Event, len(batch))
	for i, t := range batch {
		events[i] = t.Event
	}
	return r.sink.Deliver(ctx, batch[0].Room, events)
}
