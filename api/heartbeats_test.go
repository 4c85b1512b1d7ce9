package api_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/room"
)

// run runs what belongs beside the routes; end stops it and waits.
func (s *site) run() (end func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.api.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		require.NoError(s.t, <-ended)
	})
	s.t.Cleanup(end)
	return end
}

func (f *fixture) seen(ticket string) time.Time {
	f.t.Helper()
	c, err := f.ring.Ticket(ticket)
	require.NoError(f.t, err)
	at, err := f.rdb.ZScore(f.t.Context(), f.key("seen"), c.Member).Result()
	require.NoError(f.t, err, "reap has made the entry")
	return time.UnixMicro(int64(at))
}

func TestAPollWritesNothingAndIsHeardAllTheSame(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, bob := f.enter(), f.enter()
	_, err := f.line.Reap(t.Context(), f.room)
	require.NoError(t, err)
	f.pass(5 * time.Second)
	before := f.dump()
	for range 10 {
		f.poll(ann)
	}
	require.Equal(t, before, f.dump(), "a poll of who waits costs no write")
	require.Equal(t, start, f.seen(ann))

	end := f.run()
	f.eventually("ann is heard", func() bool { return f.seen(ann).Equal(f.now()) })
	require.Equal(t, start, f.seen(bob), "who does not poll is not heard")
	snapshot, err := f.rdb.HGet(t.Context(), f.key("state"), "heard_at").Int64()
	require.NoError(t, err)
	require.Equal(t, f.now().UnixMicro(), snapshot, "the room can hear")

	// Nothing is lost at the end: what is not sent by then is sent last.
	f.pass(5 * time.Second)
	f.poll(bob)
	end()
	require.Equal(t, f.now(), f.seen(bob))
}

// TestARoomHearsAlsoWhereNobodyPolls keeps those who poll elsewhere from being
// excused for ever.
func TestARoomHearsAlsoWhereNobodyPolls(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.status(f.room)
	f.enter() // the process knows the room
	f.pass(time.Minute)
	f.run()
	f.eventually("the room is told that it can hear", func() bool {
		at, _ := f.rdb.HGet(t.Context(), f.key("state"), "heard_at").Int64()
		return at == f.now().UnixMicro()
	})
}

func TestOnlyThoseNearTheFrontAreHeard(t *testing.T) {
	t.Parallel()
	listening := &ear{}
	f := setUp(t, settings(func(s *room.Settings) { s.BatchSize = 1 }), // the horizon is 1,000
		options(func(o *api.Options) { listening.Hearer, o.Hearer = o.Hearer, listening }))
	front := f.enter()
	f.crowd(999)
	last := f.enter() // 1,000 ahead
	member := func(text string) string {
		c, err := f.ring.Ticket(text)
		require.NoError(t, err)
		return c.Member
	}
	require.EqualValues(t, 999, *f.poll(front).Rank)
	require.EqualValues(t, 1000, *f.poll(last).Rank)
	end := f.run()
	end()
	require.True(t, listening.has(member(front)))
	require.False(t, listening.has(member(last)), "absence matters near the front only")
}

func TestACrowdIsHeardInCallsOfFiveHundred(t *testing.T) {
	t.Parallel()
	listening := &ear{}
	f := setUp(t, options(func(o *api.Options) { listening.Hearer, o.Hearer = o.Hearer, listening }))
	const n = 1100
	handler := f.api.Handler()
	for range n {
		m := credential.NewMember()
		_, err := f.line.Enter(t.Context(), f.room, m, 0)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, serveOnce(handler, http.MethodGet, f.entries+"/me", f.bound(m)))
	}
	end := f.run()
	end()
	heard, most := listening.count()
	require.Equal(t, n, heard)
	require.Equal(t, 500, most)
}

// TestARoomNobodyAsksAboutCanHear holds for a process that was started after
// everybody had gone: without it nobody would ever be forgotten.
func TestARoomNobodyAsksAboutCanHear(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.pass(time.Minute)
	f.serve().run()
	f.eventually("the room is told", func() bool {
		at, _ := f.rdb.HGet(t.Context(), f.key("state"), "heard_at").Int64()
		return at == f.now().UnixMicro()
	})
}
