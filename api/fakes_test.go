package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// The fakes of this file stand in front of the real parts and inject one
// failure, or count.

func (f *fixture) eventually(what string, ok func() bool) {
	f.t.Helper()
	harness.Eventually(f.t, 10*time.Second, what, ok)
}

// frozen shows a room as it once was.
type frozen struct {
	api.Snapshots
	at queue.Snapshot
}

func (f frozen) Snapshot(context.Context, string) (queue.Snapshot, error) { return f.at, nil }

// behind lists the rooms as they once were.
type behind struct {
	api.Books
	at map[string]int64
}

func (b behind) Generations(context.Context) (map[string]int64, error) { return b.at, nil }

// brokenLine fails every call in one way.
type brokenLine struct{ err error }

func (b brokenLine) EnterWith(context.Context, string, string, queue.Entry) (queue.Standing, error) {
	return queue.Standing{}, b.err
}
func (b brokenLine) PollLine(context.Context, string, string, queue.Place, int) (queue.Standing, error) {
	return queue.Standing{}, b.err
}

func (b brokenLine) Poll(context.Context, string, string, queue.Place) (queue.Standing, error) {
	return queue.Standing{}, b.err
}
func (b brokenLine) Standing(context.Context, string, string) (queue.Standing, error) {
	return queue.Standing{}, b.err
}
func (b brokenLine) Leave(context.Context, string, string, int64, queue.Outcome) (bool, error) {
	return false, b.err
}

// brokenOrders refuses every order in one way.
type brokenOrders struct{ err error }

func (b brokenOrders) Place(context.Context, order.Request) (order.Placed, error) {
	return order.Placed{}, b.err
}

// before lets something happen between standing and pick-up.
type before struct {
	api.Returns
	pickUp func()
}

func (b before) PickUp(ctx context.Context, g queue.Grant, key string) (queue.Grant, error) {
	b.pickUp()
	return b.Returns.PickUp(ctx, g, key)
}

// countedBooks counts how often the rooms are listed.
type countedBooks struct {
	api.Books
	names atomic.Int64
}

func (c *countedBooks) Generations(ctx context.Context) (map[string]int64, error) {
	c.names.Add(1)
	return c.Books.Generations(ctx)
}

// countedSnapshots counts how often a room is read.
type countedSnapshots struct {
	api.Snapshots
	reads atomic.Int64
}

func (c *countedSnapshots) Snapshot(ctx context.Context, room string) (queue.Snapshot, error) {
	c.reads.Add(1)
	return c.Snapshots.Snapshot(ctx, room)
}

func (c *countedSnapshots) SnapshotMarks(ctx context.Context, room string) (queue.Snapshot, error) {
	c.reads.Add(1)
	return c.Snapshots.SnapshotMarks(ctx, room)
}

// ear remembers whom a line was told to be there.
type ear struct {
	api.Hearer
	mu    sync.Mutex
	heard map[string]int
	most  int // in one call
}

func (e *ear) Heard(ctx context.Context, room string, members []string) error {
	e.mu.Lock()
	if e.heard == nil {
		e.heard = map[string]int{}
	}
	for _, m := range members {
		e.heard[m]++
	}
	e.most = max(e.most, len(members))
	e.mu.Unlock()
	return e.Hearer.Heard(ctx, room, members)
}

func (e *ear) has(member string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard[member] > 0
}

// count is how many members were heard, and how many at most in one call.
func (e *ear) count() (members, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.heard), e.most
}

// serveOnce answers one request without a network.
func serveOnce(h http.Handler, method, path, ticket string) int {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
	r.Header.Set("X-Queue-Ticket", ticket)
	h.ServeHTTP(w, r)
	return w.Code
}
