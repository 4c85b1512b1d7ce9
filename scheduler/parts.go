package scheduler

import (
	"context"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Line is what a tick asks of a room's waiting line. Each call is one atomic
// step and safe to repeat: the same step does its work once.
type Line interface {
	// Reserve takes members out of their lanes. It returns queue.ErrNoRoom,
	// queue.GenerationError or queue.StaleError where the room refuses the step.
	Reserve(ctx context.Context, room string, step queue.Step, take queue.Take) (queue.Reservation, error)
	// Issue grants or refuses what the same step has reserved, 500 at most.
	Issue(ctx context.Context, room string, step queue.Step, decisions []queue.Decision) (queue.Issued, error)
	// Reap ends what time has ended. It needs no term.
	Reap(ctx context.Context, room string) (queue.Reaped, error)
}

// Batches keeps where the batches of adaptive rooms stand.
type Batches interface {
	// Snapshot reads a room, with what all processes have counted of its orders.
	Snapshot(ctx context.Context, room string) (queue.Snapshot, error)
	// Tune keeps a round of the controller, and tells whether it has: not where
	// that round, or a later one, was kept before. Of the step Seq does not count.
	// Its errors are those of Reserve.
	Tune(ctx context.Context, room string, step queue.Step, t queue.Tuning) (kept bool, err error)
}

// Rooms puts what Postgres holds of a room in force in Redis.
type Rooms interface {
	// Create begins life.Generation, which must just have been won by Begin. It
	// does nothing where the room has that generation or a newer one.
	Create(ctx context.Context, life queue.Life) error
	// Update puts newer settings in force. It never begins a room:
	// queue.ErrNoRoom or queue.GenerationError where there is nothing to update.
	Update(ctx context.Context, life queue.Life) error
	// Drop removes what is left of a deleted room. It does nothing where a newer
	// generation has begun.
	Drop(ctx context.Context, life queue.Life) error
}

// Books is what Postgres has of rooms.
type Books interface {
	// Lives returns all rooms, deleted ones until Dropped; beside an error, those
	// that could be read.
	Lives(ctx context.Context) ([]queue.Life, error)
	// Begin ends the given generation and returns the next; queue.ErrGeneration
	// when another process has done so first.
	Begin(ctx context.Context, room string, generation int64) (queue.Life, error)
	// Dropped notes that nothing is left of a deleted room.
	Dropped(ctx context.Context, room string, generation int64) error
}

// Admissions is what Postgres says and is told of those who are let through.
type Admissions interface {
	// Advance keeps how far rooms have got, all in one statement. Nothing goes back.
	Advance(ctx context.Context, rooms []queue.Progress) error
	// Barred tells which members may not be let through: blocked, evicted from
	// the sale, or, with oneOrder, with an order in it.
	Barred(ctx context.Context, room string, sale int64, members []string, oneOrder bool) (map[string]bool, error)
}

// Terms counts leadership periods, over all processes.
type Terms interface {
	// Next returns a new term.
	Next(ctx context.Context) (int64, error)
	// Raise returns a new term above the given one, which a room has seen: a
	// failover may have rolled the counter back.
	Raise(ctx context.Context, above int64) (int64, error)
}

// Lock is the part of a *redsync.Mutex that leading needs. The scheduler never
// has two calls under way at once: redsync keeps the deadline in a plain field.
type Lock interface {
	TryLockContext(ctx context.Context) error
	ExtendContext(ctx context.Context) (bool, error)
	UnlockContext(ctx context.Context) (bool, error)
	Until() time.Time
}
