package scheduler

import (
	"context"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Draws ends the draws of rooms.
type Draws interface {
	// End keeps the list of everybody who takes part in the draw of life, which is
	// over, unless it is kept already, and lets the room go on. It may take minutes,
	// and may be called again whenever it has not returned nil, by any process.
	End(ctx context.Context, life queue.Life) error
}

// listLimit ends the making of a list that would never be done. A million
// entrants take some ten seconds.
const listLimit = 10 * time.Minute

// drawWaits sees to it that a room which waits for the list of its draw gets it.
// One whose list Postgres has already has lost the end of its draw: it is told
// again, since the seed is public.
func (t *term) drawWaits(ctx context.Context, v *visit) {
	r := v.room
	due := v.reserved.Draw == queue.DrawClosed || v.reserved.Draw == queue.DrawOpen && v.life.Listed
	if !due || r.listing || r.gone || t.stopping || t.Draws == nil {
		return
	}
	r.listing = true
	t.flying++
	go func() {
		ctx, cancel := context.WithTimeout(ctx, listLimit)
		defer cancel()
		began := time.Now()
		err := t.Draws.End(ctx, v.life)
		t.done <- func(context.Context) { t.drawEnded(r, err, time.Since(began)) }
	}()
}

func (t *term) drawEnded(r *room, err error, took time.Duration) {
	r.listing = false
	if err != nil {
		if !t.stopping && !r.gone { // the next tick tries again
			t.Log.Error("draw not listed yet, nobody is let through", "room", r.name, "error", err)
		}
		return
	}
	t.Log.Info("draw listed", "room", r.name, "took", took)
	t.agenda.hasten(r.tick, time.Now())
}
