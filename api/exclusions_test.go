package api_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// memberOf is who holds a ticket.
func (f *fixture) memberOf(text string) room.Subject {
	f.t.Helper()
	c, err := f.ring.Ticket(text)
	require.NoError(f.t, err)
	return room.Subject{Member: c.Member}
}

func TestAMemberWhoIsKeptOutMayNotEnter(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mal, eve := f.enter(), f.enter()
	for _, text := range []string{mal, eve} {
		f.leave(ticket(text)).is(http.StatusNoContent)
	}
	require.NoError(t, f.rooms.Block(t.Context(), f.room, f.memberOf(mal), operator))
	require.NoError(t, f.rooms.Evict(t.Context(), f.room, f.memberOf(eve), operator))
	site := f.serve()
	before := f.dump()
	for _, text := range []string{mal, eve} {
		site.post(ticket(text)).refused(http.StatusForbidden, "member-blocked")
	}
	require.Equal(t, before, f.dump(), "who is kept out costs the line nothing")
	site.post().is(http.StatusCreated)

	require.NoError(t, f.rooms.Unblock(t.Context(), f.room, f.memberOf(mal), operator))
	f.serve().post(ticket(mal)).is(http.StatusCreated)
	_, err := f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	f.adopt(func() queue.Life {
		life, err := f.rooms.Begin(t.Context(), f.room, f.written().Generation)
		require.NoError(t, err)
		return life
	}())
	f.serve().post(ticket(eve)).is(http.StatusCreated)
}

// A process that runs learns of a block by itself.
func TestABlockIsInForceWithinASecond(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(named("127.0.0.0/8")))
	f.post(member("mal")).is(http.StatusCreated)
	require.NoError(t, f.rooms.Block(t.Context(), f.room, room.Subject{Member: "mal"}, operator))
	f.eventually("the running process refuses", func() bool {
		return f.post(member("mal")).status == http.StatusForbidden
	})
}

// The token is signed, not expired, and Redis knows its grant: a failover that has
// taken the end of the grant back, say.
func TestAFreshTokenOfABlockedMemberPaysForNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ticketOf, fresh := f.ready()
	require.NoError(t, f.rooms.Block(t.Context(), f.room, f.memberOf(ticketOf), operator))
	site := f.serve()
	site.order(oneA, token(fresh)).refused(http.StatusUnauthorized, "entry-token-invalid")
	require.NoError(t, f.rooms.Unblock(t.Context(), f.room, f.memberOf(ticketOf), operator))
	f.serve().order(oneA, token(fresh)).refused(http.StatusUnauthorized, "entry-token-invalid")
}

func TestABlockedMemberIsShownTheOrderThatExists(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ticketOf, spent := f.ready()
	f.order(oneA, token(spent)).is(http.StatusCreated)
	require.NoError(t, f.rooms.Block(t.Context(), f.room, f.memberOf(ticketOf), operator))
	a := f.serve().order(oneA, token(spent)).is(http.StatusOK)
	require.Equal(t, "true", a.header.Get("Idempotency-Replayed"))
}

// awayList is a list that can't be read while down.
type awayList struct {
	real   api.Exclusions
	down   atomic.Bool
	failed atomic.Int64
}

// Exclusions implements api.Exclusions.
func (l *awayList) Exclusions(ctx context.Context, seen string) ([]room.Bar, string, error) {
	if l.down.Load() {
		l.failed.Add(1)
		return nil, "", errors.New("connection refused")
	}
	return l.real.Exclusions(ctx, seen)
}

func TestAnOutageLeavesTheLastListInForceAndNoneIsNoEntry(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, fresh := f.ready()
	mal := f.enter()
	f.leave(ticket(mal)).is(http.StatusNoContent)
	require.NoError(t, f.rooms.Block(t.Context(), f.room, f.memberOf(mal), operator))
	list := &awayList{real: f.rooms}
	site := f.serve(func(o *api.Options) { o.KeptOut = list })
	list.down.Store(true)
	site.post().refused(http.StatusServiceUnavailable, "unavailable")
	site.order(oneA, token(fresh)).refused(http.StatusServiceUnavailable, "unavailable")
	list.down.Store(false)
	site.post(ticket(mal)).refused(http.StatusForbidden, "member-blocked")
	list.down.Store(true)
	list.failed.Store(0)
	f.eventually("the list was to be read again", func() bool {
		site.post(ticket(mal)).refused(http.StatusForbidden, "member-blocked")
		return list.failed.Load() > 0
	})
	site.post(ticket(mal)).refused(http.StatusForbidden, "member-blocked")
	site.post().is(http.StatusCreated)
}
