package api

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
)

// HealthKeeper adds up how orders go, over all processes.
type HealthKeeper interface {
	// AddHealth counts a report of this process once, however often it is sent.
	AddHealth(ctx context.Context, room string, r queue.Report) error
}

// healths gathers how the orders of adaptive rooms went, so that an order waits
// for no counter. They are reported every second, and once more at the end.
//
// A report whose answer did not come is sent again under its number, and so
// counts once. After reportAge it is dropped: the room has forgotten by then
// which reports it had, and rather lacks one than has it twice.
type healths struct {
	keeper  HealthKeeper // nil: nothing is counted
	process string

	mu    sync.Mutex
	rooms map[string]*queue.Health

	// Of run alone.
	number int64
	unsent map[string]report
	failed bool
}

// report is one that is to be sent, or to be sent again.
type report struct {
	queue.Report
	since time.Time
}

const (
	healthEvery = time.Second
	// reportAge stays well below the time for which the room remembers the newest
	// report of each process.
	reportAge = time.Minute
	// reportTime bounds one round of reports; the rest comes with the next.
	reportTime = 2 * time.Second
	// longestDelay is believed of one order: more is a step of a clock.
	longestDelay = time.Hour
)

func newHealths(k HealthKeeper) *healths {
	return &healths{keeper: k, process: uuid.NewString(), rooms: map[string]*queue.Health{}, unsent: map[string]report{}}
}

// attempt is one order on its way.
type attempt struct {
	h     *healths // nil: of a room that does not follow its orders
	room  string
	began time.Time
	delay time.Duration // from the grant to now, by the clock of Redis
}

func (h *healths) begin(v *view, g queue.Grant) attempt {
	a := attempt{began: time.Now()}
	if h.keeper != nil && v != nil && v.Rules.Adaptive {
		a.h, a.room, a.delay = h, g.Room, min(max(v.now().Sub(g.IssuedAt), 0), longestDelay)
	}
	return a
}

// end counts the attempt: one that placed an order now, and one that failed
// without its member's fault. Who hung up at once tells nothing.
func (a attempt) end(placed order.Placed, err error) {
	if a.h == nil {
		return
	}
	took := time.Since(a.began)
	impatient := errors.Is(err, context.Canceled) && queue.Band(took) == 0
	a.h.mu.Lock()
	defer a.h.mu.Unlock()
	switch {
	case err == nil && !placed.Replayed:
		a.h.of(a.room).Placed(took, a.delay)
	case order.OurFault(err) && !impatient:
		a.h.of(a.room).Fail(a.delay)
	}
}

// of is what is gathered of a room; the caller holds the mutex. There are no more
// of them than rooms: only a room that exists has settings to be adaptive by.
func (h *healths) of(room string) *queue.Health {
	if h.rooms[room] == nil {
		h.rooms[room] = &queue.Health{}
	}
	return h.rooms[room]
}

// run reports until ctx ends.
func (h *healths) run(ctx context.Context, log *slog.Logger) error {
	if h.keeper == nil {
		return nil
	}
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			h.flush(context.WithoutCancel(ctx), log)
			return nil
		case <-tick.C:
			h.flush(ctx, log)
		}
	}
}

// flush sends what failed before first, under its old number: a later report
// would make it count as sent.
func (h *healths) flush(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	err := h.sendAll(ctx)
	h.mu.Lock()
	gathered := h.rooms
	h.rooms = map[string]*queue.Health{}
	h.mu.Unlock()
	for room, counts := range gathered {
		if _, waits := h.unsent[room]; waits {
			h.giveBack(room, *counts)
			continue
		}
		h.number++
		h.unsent[room] = report{queue.Report{Process: h.process, Number: h.number, Health: *counts}, time.Now()}
	}
	if err == nil {
		err = h.sendAll(ctx)
	}
	if err != nil && !h.failed {
		log.WarnContext(ctx, "counts of orders not written", "err", err)
	}
	h.failed = err != nil
}

// sendAll sends until something fails: then what comes after would, too.
func (h *healths) sendAll(ctx context.Context) error {
	for room, r := range h.unsent {
		err := h.keeper.AddHealth(ctx, room, r.Report)
		if err == nil || !errors.Is(err, queue.ErrUnavailable) || time.Since(r.since) > reportAge {
			delete(h.unsent, room)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// giveBack keeps counts for the report after the one that is not through yet.
func (h *healths) giveBack(room string, counts queue.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.of(room) = h.of(room).Add(counts)
}
