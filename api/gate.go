package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
)

const (
	// gateTimeout is how long a newcomer waits for the word of Postgres that would
	// let them straight in. Standing in line takes a tick, so more makes no sense.
	gateTimeout = 300 * time.Millisecond
	// gateCalls is how many of these questions a process has open at once: they
	// share their connections with the scheduler, which must not wait for a crowd.
	gateCalls = 3
)

// gate asks about those who may not need to wait at all. Whoever it does not
// answer for in time stands in line as anybody: the next tick asks about many of
// them in one go.
type gate struct {
	books Books
	slots *semaphore.Weighted
}

func newGate(b Books) *gate { return &gate{books: b, slots: semaphore.NewWeighted(gateCalls)} }

// grant is a fresh grant for a member who may be let straight in; empty where the
// room has no such thing, where somebody is in line already or a draw is to come,
// as far as the view shows, and where Postgres bars the member or does not say. The script has the
// last word on all but that.
func (g *gate) grant(ctx context.Context, v *view, member string) string {
	if state := v.State(v.now()); state != queue.Off && !(v.Rules.Direct && state == queue.Open) {
		return ""
	}
	if v.Waiting()+v.Processing > 0 || v.Draw.Undecided() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	if g.slots.Acquire(ctx, 1) != nil {
		return ""
	}
	defer g.slots.Release(1)
	barred, err := g.books.Barred(ctx, v.Room, v.Sale, []string{member}, v.Rules.OneOrder)
	if err != nil || barred[member] {
		return ""
	}
	return credential.NewGrantID()
}

// enterLine gives the member a place, at the end of the line or where the lot puts
// it; or, where the room lets people straight in, a grant.
func (a *API) enterLine(ctx context.Context, v *view, member string, lane int) (queue.Standing, error) {
	lot, unknown := a.lot(ctx, v, member, lane)
	e := queue.Entry{Lane: lane, Lot: lot, Asked: v.now()}
	e.Grant = a.gate.grant(ctx, v, member)
	// Also without the lot: whoever has a place is told so.
	st, err := a.Line.EnterWith(ctx, v.Room, member, e)
	if unknown != nil && errors.Is(err, queue.ErrGeneration) {
		err = fmt.Errorf("%w: %v", queue.ErrUnavailable, unknown) // that there is no draw is no answer to who enters
	}
	return st, err
}

// straightIn tells an enter that has led to a grant in the same step.
func straightIn(st queue.Standing) bool { return st.New && st.Status == queue.Ready }
