package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/draw"
	"github.com/linekeeper/linekeeper/draw/closing"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/scheduler"
)

// drawing is a room whose draw ends when a test says so.
func drawing(s *room.Settings) {
	at := time.Now().Add(time.Hour)
	s.Draw, s.AdmitsAt, s.BatchSize = true, &at, 1000
}

// admitAt moves the end of the draw.
func (h *house) admitAt(at time.Time) {
	h.Helper()
	_, err := h.books.Update(h.Context(), theRoom, 0, func(s room.Settings) (room.Settings, error) { s.AdmitsAt = &at; return s, nil }, operator)
	require.NoError(h, err)
}

// draws ends the draws of the house, with books that a test may break.
func (h *house) draws(books closing.Books) func(*scheduler.Config) {
	return func(c *scheduler.Config) { c.Draws = closing.Closer{Line: h.Store, Books: books} }
}

// enterByLot puts n members where the draw of the room puts them.
func (h *house) enterByLot(n int) []string {
	h.Helper()
	rec, err := h.books.Draw(h.Context(), theRoom, 1)
	require.NoError(h, err)
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf("m%05d", i)
		_, err := h.EnterWith(h.Context(), theRoom, members[i], queue.Entry{Lot: queue.Lot{Sale: 1, First: rec.First(members[i], 0)}})
		require.NoError(h, err)
	}
	return members
}

func TestADrawIsListedAndThenTakenInItsOrder(t *testing.T) {
	h := setup(t, drawing, func(s *room.Settings) { s.BatchSize, s.IntervalMs = 20, 100 })
	h.open()
	members := h.enterByLot(200)
	h.admitAt(time.Now())
	for _, leader := range []string{"x", "y"} {
		h.run(leader, withoutLock, h.draws(h.books))
	}
	h.eventually(10*time.Second, "all are let through", func() bool { return h.admitted() == 200 })
	rec, err := h.books.Draw(t.Context(), theRoom, 1)
	require.NoError(t, err)
	require.True(t, rec.Listed)
	require.EqualValues(t, 200, rec.Header.Entrants)
	slices.SortFunc(members, func(a, b string) int { return int(rec.First(a, 0) - rec.First(b, 0)) })
	times := h.grantTimes(members)
	for i := 1; i < len(times); i++ {
		require.False(t, times[i].Before(times[i-1]), "%s was passed", members[i-1])
	}
	require.False(t, times[0].Before(h.life().Rules.AdmitsAt))
}

// dying books see the first list and never keep it, as a process that is killed
// while it writes.
type dying struct {
	closing.Books
	seen chan draw.Hash
	once *sync.Once
}

func (d dying) KeepList(ctx context.Context, l *draw.List) error {
	d.once.Do(func() { d.seen <- l.Root })
	<-ctx.Done()
	return ctx.Err()
}

func TestALeaderThatDiesOverTheListLeavesItToTheNext(t *testing.T) {
	h := setup(t, drawing)
	h.open()
	h.enterByLot(3000)
	h.admitAt(time.Now())
	first := dying{h.books, make(chan draw.Hash, 1), &sync.Once{}}
	stop := h.run("dies", h.draws(first))
	root := <-first.seen
	require.Zero(t, h.admitted(), "nobody is taken before the list is kept")
	stop()
	h.run("next", h.draws(h.books))
	h.eventually(10*time.Second, "people are let through", func() bool { return h.admitted() >= 1000 })
	rec, err := h.books.Draw(t.Context(), theRoom, 1)
	require.NoError(t, err)
	require.EqualValues(t, 3000, rec.Header.Entrants)
	require.Equal(t, root, rec.Header.Root, "the same line gives the same list")
}

// failing books can't keep a list for a while.
type failing struct {
	closing.Books
	until time.Time
}

func (f failing) KeepList(ctx context.Context, l *draw.List) error {
	if time.Now().Before(f.until) {
		return errors.New("connection refused")
	}
	return f.Books.KeepList(ctx, l)
}

func TestAListThatCantBeKeptIsTriedAgain(t *testing.T) {
	h := setup(t, drawing)
	h.open()
	h.admitAt(time.Now())
	h.run("only", h.draws(failing{h.books, time.Now().Add(1500 * time.Millisecond)}))
	h.eventually(10*time.Second, "the draw is listed", func() bool { return h.snapshot().Draw == queue.DrawListed })
}

// A failover may lose the end of a draw while its seed is public.
func TestARoomThatLostTheEndOfAListedDrawIsToldAgain(t *testing.T) {
	h := setup(t, drawing)
	h.open()
	h.admitAt(time.Now())
	h.run("only", h.draws(h.books))
	h.eventually(10*time.Second, "the draw is listed", func() bool { return h.snapshot().Draw == queue.DrawListed })
	h.admitAt(time.Now().Add(time.Hour))
	h.eventually(5*time.Second, "the room has the new time", func() bool { return h.snapshot().Rules.AdmitsAt.After(time.Now().Add(time.Minute)) })
	require.NoError(t, h.rdb.HDel(t.Context(), h.prefix+":{"+theRoom+"}:state", "draw").Err())
	h.eventually(5*time.Second, "the draw is over again", func() bool { return h.snapshot().Draw == queue.DrawListed })
}
