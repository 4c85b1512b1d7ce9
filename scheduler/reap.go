package scheduler

import (
	"context"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// reapEvery is how often a room is reaped: with each tick, within bounds.
// Nobody's right ends later for it, but who comes next moves up later.
func reapEvery(rules queue.Rules) time.Duration {
	return min(max(rules.Interval, 200*time.Millisecond), time.Second)
}

// reap ends what time has ended in r. It goes on whatever becomes of the ticks,
// also while Postgres is away.
func (t *term) reap(ctx context.Context, r *room) {
	if r.life.Generation == 0 || r.create {
		t.schedule(r.reap, r, time.Now().Add(reapEvery(r.life.Rules)))
		return
	}
	t.spawnForRoom(ctx, func(ctx context.Context) then {
		counts, err := t.Line.Reap(ctx, r.name)
		return func(context.Context) { t.reaped(r, counts, err) }
	})
}

func (t *term) reaped(r *room, counts queue.Reaped, err error) {
	now := time.Now()
	if err != nil {
		r.reapFailures++
		if r.reapFailures == 1 && r.failures == 0 && !t.stopping {
			t.Log.Warn("reap failed", "room", r.name, "error", err)
		}
		t.schedule(r.reap, r, now.Add(backoff(r.reapFailures)))
		return
	}
	r.reapFailures = 0
	if t.books.down() && now.Sub(t.books.since) < bookPatience {
		t.effect()
	}
	t.Observer.reaped(r.name, counts)
	wait := reapEvery(r.life.Rules)
	if counts.More {
		wait = shortestSleep
	}
	t.schedule(r.reap, r, now.Add(wait))
}
