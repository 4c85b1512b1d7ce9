package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/draw"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// slowDraws answers once told to, or when who asked has gone; and counts.
type slowDraws struct {
	api.Draws
	asked  atomic.Int64
	answer chan struct{}
}

func (s *slowDraws) Draw(ctx context.Context, room string, sale int64) (draw.Record, error) {
	s.asked.Add(1)
	select {
	case <-s.answer:
	case <-ctx.Done():
		return draw.Record{}, ctx.Err()
	}
	return s.Draws.Draw(ctx, room, sale)
}

func TestWhoHangsUpWhileTheSeedIsReadFailsNobodyElse(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	slow := &slowDraws{Draws: f.rooms, answer: make(chan struct{})}
	site := f.serve(byName, func(o *api.Options) { o.Draws = slow })
	ctx, hangUp := context.WithCancel(t.Context())
	var g, first errgroup.Group
	first.Go(func() error {
		_, err := site.try(ctx, "POST", site.entries, member("ann"))
		return err
	})
	f.eventually("the seed is asked for", func() bool { return slow.asked.Load() == 1 })
	for i := range 20 {
		g.Go(func() error {
			a, err := site.try(t.Context(), "POST", site.entries, member(fmt.Sprint("m", i)))
			if err == nil && a.status != http.StatusCreated {
				err = fmt.Errorf("status %d: %s", a.status, a.body)
			}
			return err
		})
	}
	hangUp()
	require.ErrorIs(t, first.Wait(), context.Canceled)
	close(slow.answer)
	require.NoError(t, g.Wait())
	require.EqualValues(t, 1, slow.asked.Load(), "all share one read")
}

func TestADrawThatNeverWasIsNotAskedForAgainAndAgain(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	_, err := f.db.Exec(t.Context(), `DELETE FROM draws WHERE room = $1`, f.room)
	require.NoError(t, err)
	slow := &slowDraws{Draws: f.rooms, answer: make(chan struct{})}
	close(slow.answer)
	site, begun := f.serve(byName, func(o *api.Options) { o.Draws = slow }), time.Now()
	for range 100 {
		site.call("GET", strings.TrimSuffix(site.entries, "entries")+"draw").refused(http.StatusNotFound, "draw-not-found")
	}
	require.LessOrEqual(t, slow.asked.Load(), 1+int64(time.Since(begun)/time.Second))
}

// countedBars counts the questions who is barred.
type countedBars struct {
	api.Books
	n atomic.Int64
}

func (c *countedBars) Barred(ctx context.Context, room string, sale int64, members []string, ordered bool) (map[string]bool, error) {
	c.n.Add(1)
	return c.Books.Barred(ctx, room, sale, members, ordered)
}

// Nobody is let through before the list is kept: also not where the room is off.
func TestBeforeItsListARoomThatIsOffAsksPostgresNothingAndPromisesNothing(t *testing.T) {
	t.Parallel()
	f := drawing(t, settings(func(s *room.Settings) { s.Off = true }))
	bars := &countedBars{Books: f.rooms}
	site := f.serve(byName, func(o *api.Options) { o.Books = bars })
	f.open()
	p := site.post(member("ann")).is(http.StatusCreated).position()
	require.Equal(t, queue.Waiting, p.Status)
	require.Zero(t, bars.n.Load())
}

func TestTheTimeInWhichAListIsMadeIsNoMeasurementOfTheRate(t *testing.T) {
	t.Parallel()
	f := drawing(t, settings(func(s *room.Settings) { s.BatchSize = 10 }))
	f.crowd(300)
	f.open()
	ann := *f.post(member("ann")).is(http.StatusCreated).position().QueueTicket
	now := func() (p spec.Position) {
		f.eventually("an answer of this moment", func() bool {
			p = f.get(member("ann"), ticket(ann)).is(http.StatusOK).position()
			return !p.ServerTime.Before(f.now())
		})
		return p
	}
	for range 4 {
		f.pass(5 * time.Second)
		require.Nil(t, now().EstimatedWaitSeconds)
	}
	f.list()
	for range 6 {
		f.pass(time.Second)
		require.Equal(t, 10, f.tick())
		now()
	}
	p := now()
	require.NotNil(t, p.EstimatedWaitSeconds)
	require.InEpsilon(t, float64(*p.Rank+1)/10, float64(*p.EstimatedWaitSeconds), 0.2, "with %d ahead, at 10 a second", *p.Rank)
}
