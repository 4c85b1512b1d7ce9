package api

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
)

// keepPace looks every second at how polls went, until ctx ends.
func (a *API) keepPace(ctx context.Context) error {
	tick := time.NewTicker(queue.StretchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if stretch := a.polls.Step(now); a.Observer.Stretched != nil {
				a.Observer.Stretched(stretch)
			}
		}
	}
}

// timed notes how long polls take. An error is none that was answered: what is
// refused costs little, and what Redis leaves without an answer ends by its own
// deadline, and is told when to come back by its problem.
func (a *API) timed(poll handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		began := time.Now()
		err := poll(w, r)
		if err == nil {
			a.polls.Took(time.Since(began))
		}
		return err
	}
}

// booked notes when a member was asked to poll again.
func (a *API) booked(v *view, st queue.Standing, p *spec.Position) {
	usual := queue.PollInterval(math.MaxInt64)
	switch {
	case st.Status == queue.NotEntered || st.Status == queue.Consumed:
		usual = 0 // nothing to poll for
	case st.Status == queue.Claimed:
		usual = queue.PollInterval(0)
	case st.Status == queue.Waiting && !v.Draw.Undecided():
		usual = v.Rules.PollAfter(st.Rank, 1)
	}
	a.polls.Answered(time.Now(), usual, time.Duration(p.NextPollAfterMs)*time.Millisecond)
}
