package scheduler

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// MaxTake is how many members a scheduler asks a script to move. Redis does nothing
// else meanwhile: for these it takes some 3 ms, in twice as many it would be 6.
const MaxTake = 250

const (
	// readEvery is how often the settings of all rooms are read: twice a second,
	// so that a change is in force within one.
	readEvery = 500 * time.Millisecond
	// longestSleep bounds what a room may ask for, because settings and the
	// schedule can change meanwhile.
	longestSleep = time.Second
	// shortestSleep keeps a room that always answers "now" from a hot loop.
	shortestSleep = 5 * time.Millisecond
	// gather is how long a write of progress waits for rooms that are still
	// reserving: it bounds the writes of a process to 100 a second.
	gather = 10 * time.Millisecond
	// maxCalls bounds the calls about rooms that are under way at once.
	maxCalls = 32
	// callLimit ends a call that would never answer. Its room is tried again.
	callLimit = 2 * time.Second
	// grace is what a stopping scheduler gives the work in hand.
	grace = time.Second
	// patience is how long a leader may be without effect before it makes room
	// for another, which may reach what this one does not.
	patience = 5 * time.Second
	// bookPatience is the same while only Postgres is out of reach: until then
	// reaping counts as an effect, because it keeps grants and leases ending.
	bookPatience = 3 * patience
)

// Config is what a scheduler is made of. All but Draws, Lock, Round and Observer
// is needed.
type Config struct {
	Line       Line
	Batches    Batches
	Rooms      Rooms
	Books      Books
	Admissions Admissions
	Terms      Terms
	Draws      Draws         // nil: rooms that have a draw wait for ever
	Lock       Lock          // nil: tick without leading, beside others who do so
	TTL        time.Duration // of the lock
	Round      time.Duration // of the controller of adaptive rooms; 0: controller.RoundLength
	Leader     string        // names this process in its steps, without spaces; random, new at each start
	NewGrant   func() string // a new grant id of 128 random bits
	Log        *slog.Logger
	Observer   Observer
}

// Scheduler ticks all rooms while it leads.
type Scheduler struct {
	Config
	// lives is what the last term knew, so that the next can reap before
	// Postgres has answered.
	lives []queue.Life
	// told is how far each room has told us to be, over all our terms: the outage
	// that loses something is often the one that ends a term.
	told map[string]*mark
	// owed says that the lock may still be held in this process's name, after an
	// unlock that Redis did not confirm.
	owed bool
	// unreachable says that the last attempt to lead found no Redis.
	unreachable bool
}

// New returns a scheduler; Run makes it work.
func New(c Config) *Scheduler {
	if c.Round == 0 {
		c.Round = controller.RoundLength
	}
	return &Scheduler{Config: c, told: map[string]*mark{}}
}

// Run leads whenever it can, until ctx ends. Then it takes nobody any more,
// finishes what it has in hand (for a second at most) and lets go of the lock,
// so that another leads at once. It leaves nothing behind and returns nil.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.Lock == nil {
		s.Observer.led(0, true)
		newTerm(s, 0, nil).run(ctx, context.WithoutCancel(ctx))
		s.Observer.led(0, false)
		return nil
	}
	for ctx.Err() == nil {
		pause := s.retryPause()
		if s.elected(ctx) {
			pause = max(pause, s.lead(ctx))
		}
		sleep(ctx, pause)
	}
	return nil
}

// retryPause is the time between two attempts to lead: a fifth of the TTL, up
// to a second, and spread so that candidates do not stay in step.
func (s *Scheduler) retryPause() time.Duration {
	return spread(min(s.TTL/5, time.Second))
}

// spread returns a random time from half of d to d.
func spread(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// backoff is how long to leave something alone after so many failures in a row.
func backoff(failures int) time.Duration {
	return spread(min(100*time.Millisecond<<min(failures-1, 4), time.Second))
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
