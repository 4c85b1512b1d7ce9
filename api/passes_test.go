package api_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

func TestAProcessPassesNoMoreThanTheBatchPerInterval(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(open), settings(func(s *room.Settings) { s.BatchSize, s.IntervalMs = 3, 60_000 }))
	f.pass(time.Since(f.now()))
	var passed, entered atomic.Int64
	s, _ := f.cut(func(o *api.Options) {
		o.Observer.PassedOpen = func(string) { passed.Add(1) }
		o.Observer.Entered = func(_, result string) {
			if result == "passed_open" {
				entered.Add(1)
			}
		}
	})
	f.eventually("the room fails open", func() bool { return isOpen(s.call("GET", "/v1/rooms/"+f.room)) })
	tickets, tokens := make([]string, 3), make([]string, 3)
	for i := range 3 {
		p := s.post().is(http.StatusOK).position()
		tickets[i], tokens[i] = *p.QueueTicket, *p.EntryToken
	}
	for range 2 {
		late := s.post().refused(http.StatusServiceUnavailable, "unavailable")
		require.NotEmpty(t, late.header.Get("Retry-After"))
		require.NotEqual(t, "2", late.header.Get("Retry-After"), "when the next may pass, a third of an interval later")
	}
	for i := range 3 { // who asks again takes nobody's turn
		require.Equal(t, tokens[i], *s.post(ticket(tickets[i])).is(http.StatusOK).position().EntryToken)
	}
	require.EqualValues(t, 6, passed.Load())
	require.EqualValues(t, 6, entered.Load())
}

func TestNobodyPassesWhereTheRoomWouldLetNobodyThrough(t *testing.T) {
	t.Parallel()
	hence, past := time.Now().Add(time.Hour).UTC(), time.Now().Add(-time.Hour).UTC()
	for name, change := range map[string]func(*room.Settings){
		"paused":              func(s *room.Settings) { s.Paused = true },
		"draining":            func(s *room.Settings) { s.Draining = true },
		"not open yet":        func(s *room.Settings) { s.OpensAt = &hence },
		"not letting through": func(s *room.Settings) { s.AdmitsAt = &hence },
		"closed":              func(s *room.Settings) { s.ClosesAt = &past },
		"sold out":            func(s *room.Settings) { sku := "b"; s.Stock = &sku },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t, settings(func(s *room.Settings) { open(s); change(s) }))
			_, err := f.db.Exec(t.Context(), "UPDATE products SET stock = 0 WHERE sku = 'b'")
			require.NoError(t, err)
			f.pass(time.Since(f.now()))
			var opened atomic.Bool
			s, _ := f.cut(func(o *api.Options) {
				o.Observer.FailedOpen = func(string, bool) { opened.Store(true) }
				o.Snapshots, o.Line = noSnapshots{}, brokenLine{queue.ErrUnavailable}
			})
			f.eventually("the time is over", opened.Load)
			s.post().refused(http.StatusServiceUnavailable, "unavailable")
			s.call("GET", "/v1/rooms/"+f.room).refused(http.StatusServiceUnavailable, "unavailable")
		})
	}
}

// noSnapshots is a Redis that is away.
type noSnapshots struct{}

func (noSnapshots) Snapshot(context.Context, string) (queue.Snapshot, error) {
	return queue.Snapshot{}, queue.ErrUnavailable
}
func (noSnapshots) SnapshotMarks(context.Context, string) (queue.Snapshot, error) {
	return queue.Snapshot{}, queue.ErrUnavailable
}

func TestWhomPostgresBarsDoesNotPass(t *testing.T) {
	t.Parallel()
	f, s, _ := away(t, func(s *room.Settings) { s.OneOrderPerMember = true })
	ann, bob := f.enter(), f.enter()
	c, err := f.ring.Ticket(bob)
	require.NoError(t, err)
	require.NoError(t, f.rooms.Block(t.Context(), f.room, room.Subject{Member: c.Member}, operator))
	for _, a := range []answer{s.post(ticket(bob)), s.get(ticket(bob))} {
		p := a.is(http.StatusOK).position()
		require.Equal(t, queue.NotEntered, p.Status)
		require.Equal(t, queue.OutcomeEvicted, *p.LastOutcome)
	}
	first := *s.post(ticket(ann)).is(http.StatusOK).position().EntryToken
	s.order(oneA, token(first)).is(http.StatusCreated)
	require.Equal(t, first, *s.get(ticket(ann)).is(http.StatusOK).position().EntryToken, "which is spent: it gives the same order")
	other, _ := f.cut()
	f.eventually("the room fails open at another process", func() bool { return isOpen(other.call("GET", "/v1/rooms/"+f.room)) })
	p := other.get(ticket(ann)).is(http.StatusOK).position()
	require.Equal(t, queue.NotEntered, p.Status, "one order each")
	require.Equal(t, queue.OutcomeConsumed, *p.LastOutcome)

	// Also against a token that the line gives the same member.
	require.Positive(t, f.tick())
	inside := *f.poll(ann).EntryToken
	s.order(oneA, token(inside)).refused(http.StatusConflict, "already-ordered")
	f.order(oneA, token(inside)).refused(http.StatusConflict, "already-ordered")
	require.Equal(t, 1, f.placed())
}

func TestWhoPollsInARoomThatFailsOpenPassesIfTheyWereInLine(t *testing.T) {
	t.Parallel()
	f, s, c := away(t, func(s *room.Settings) { s.EnterNeedsTicket = true })
	stranger := s.post().is(http.StatusOK).position()
	require.Equal(t, queue.NotEntered, stranger.Status, "the ticket comes first, as ever")
	require.Equal(t, queue.FailedOpen, stranger.RoomState)
	require.Equal(t, queue.NotEntered, s.poll(*stranger.QueueTicket).Status, "who has not entered was not in line")
	s.get().refused(http.StatusUnauthorized, "ticket-invalid")
	require.Equal(t, queue.Ready, s.post(ticket(*stranger.QueueTicket)).is(http.StatusOK).position().Status)

	fresh := f.post().is(http.StatusOK).position()
	ann := *f.post(ticket(*fresh.QueueTicket)).is(http.StatusCreated).position().QueueTicket
	passed := s.poll(ann)
	require.Equal(t, queue.Ready, passed.Status)
	c.back.Store(true)
	f.eventually("the line decides again", func() bool { return s.poll(ann).Status == queue.Waiting })
	// Also at a process that does not watch, as one that has just started.
	f.order(oneA, token(*passed.EntryToken)).is(http.StatusCreated)
	s.order(oneA, token(*passed.EntryToken)).is(http.StatusOK)
	f.order(oneA, token(*passed.EntryToken)).is(http.StatusOK)

	_, err := f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	c.back.Store(false)
	f.eventually("a new sale, open again", func() bool {
		a := s.get(ticket(ann))
		return a.status == http.StatusOK && a.position().LastOutcome != nil && *a.position().LastOutcome == queue.OutcomeReset
	})
}

// TestAnOpenTokenIsNotVoidedByComingBackAfterALoss: it is no proof of a place, and
// goes on being good for an order.
func TestAnOpenTokenIsNotVoidedByComingBackAfterALoss(t *testing.T) {
	t.Parallel()
	f, s, c := away(t)
	ann := f.enter()
	text := *s.post(ticket(ann)).is(http.StatusOK).position().EntryToken
	c.back.Store(true)
	f.relive()
	f.get(ticket(ann), token(text)).is(http.StatusOK)
	f.order(oneA, token(text)).is(http.StatusCreated)
	require.Equal(t, 1, f.placed())
}
