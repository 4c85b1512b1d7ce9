package api_test

import (
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// oneKey is for rooms that share a ring, as those of a process do.
var oneKey = credential.GenerateKey()

// setCookie is the one cookie of an answer, nil if it has none.
func (a answer) setCookie() *http.Cookie {
	a.t.Helper()
	cookies := (&http.Response{Header: a.header}).Cookies()
	require.LessOrEqual(a.t, len(cookies), 1)
	if len(cookies) == 0 {
		return nil
	}
	return cookies[0]
}

func TestTheTicketIsACookieToo(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		f := setUp(t, options(func(o *api.Options) { o.CookieSecure = secure }))
		name := map[bool]string{false: "linekeeper_", true: "__Host-linekeeper_"}[secure] + f.room
		entered := f.post().is(http.StatusCreated)
		c, text := entered.setCookie(), *entered.position().QueueTicket
		require.NotNil(t, c)
		c.Raw = ""
		require.Equal(t, &http.Cookie{Name: name, Value: text, Path: "/", MaxAge: 86400, HttpOnly: true,
			Secure: secure, SameSite: http.SameSiteLaxMode}, c)

		polled := f.get(cookie(name, text)).is(http.StatusOK)
		require.Equal(t, entered.position().Score, polled.position().Score)
		require.Nil(t, polled.setCookie(), "a cookie that is good is not set again")
		require.Equal(t, http.StatusOK, f.post(cookie(name, text)).status, "the cookie is the member")
		f.leave(cookie(name, text)).is(http.StatusNoContent)
		require.Equal(t, of(queue.OutcomeLeft), f.poll(text).LastOutcome)
	}
}

func TestABadCookieCountsAsNoneAndABadHeaderDoesNot(t *testing.T) {
	t.Parallel()
	keys := func(p *plan) { p.keys = oneKey }
	f, other := setUp(t, keys), setUp(t, keys)
	name := "linekeeper_" + f.room
	good := f.enter()
	for what, text := range map[string]string{
		"no ticket at all": "x", "of another room": other.enter(), "forged": good[:len(good)-4] + "AAAA", "a second signature": good + ".e30",
	} {
		f.get(cookie(name, text)).refused(http.StatusUnauthorized, "ticket-invalid")
		a := f.post(cookie(name, text)).is(http.StatusCreated)
		require.NotNil(t, a.setCookie(), "%s: the cookie is replaced", what)
		f.post(ticket(text)).refused(http.StatusUnauthorized, "ticket-invalid")
		f.get(ticket(text), cookie(name, good)).refused(http.StatusUnauthorized, "ticket-invalid")
		f.leave(ticket(text)).refused(http.StatusUnauthorized, "ticket-invalid")
	}
	f.get().refused(http.StatusUnauthorized, "ticket-invalid")
	f.leave().refused(http.StatusUnauthorized, "ticket-invalid")
	require.Equal(t, queue.Waiting, f.get(ticket(good), cookie(name, "x")).is(http.StatusOK).position().Status)
}

func TestATicketEndsByTheClockOfRedis(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann := f.enter()
	f.pass(24*time.Hour - time.Minute)
	require.Equal(t, queue.Waiting, f.serve().poll(ann).Status)
	f.pass(time.Hour)
	late := f.serve()
	late.get(ticket(ann)).refused(http.StatusUnauthorized, "ticket-invalid")
	late.post(ticket(ann)).refused(http.StatusUnauthorized, "ticket-invalid")
	late.get(cookie("linekeeper_"+f.room, ann)).refused(http.StatusUnauthorized, "ticket-invalid")
	late.post(cookie("linekeeper_"+f.room, ann)).is(http.StatusCreated)
}

func TestATicketIsRenewedInItsSecondHalf(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	old := f.enter()
	f.pass(12*time.Hour - time.Minute)
	require.Nil(t, f.serve().poll(old).QueueTicket)
	f.pass(time.Minute)
	site := f.serve()
	a := site.get(ticket(old)).is(http.StatusOK)
	renewed := a.position().QueueTicket
	require.NotNil(t, renewed)
	require.Equal(t, *renewed, a.setCookie().Value)
	before, err := f.ring.Ticket(old)
	require.NoError(t, err)
	after, err := f.ring.Ticket(*renewed)
	require.NoError(t, err)
	require.WithinDuration(t, f.now(), after.IssuedAt, 10*time.Second)
	after.IssuedAt = before.IssuedAt
	require.Equal(t, before, after, "only the time is new")
	require.Nil(t, site.poll(*renewed).QueueTicket)
	require.Equal(t, queue.Waiting, site.poll(old).Status, "the old one is good to its end")
}

func TestKeysRotateWithoutAnybodyNoticing(t *testing.T) {
	t.Parallel()
	oldKey, newKey := credential.GenerateKey(), credential.GenerateKey()
	f := setUp(t, func(p *plan) { p.keys = oldKey + "," + newKey })
	ann, entry := f.ready()
	bob := f.enter()

	second := f.serve(func(o *api.Options) { o.Ring = ringOf(t, newKey+","+oldKey) })
	p := second.poll(bob)
	require.Equal(t, queue.Waiting, p.Status)
	require.NotNil(t, p.QueueTicket, "a ticket of a key that is no longer the first is renewed")
	require.Nil(t, second.poll(*p.QueueTicket).QueueTicket)
	require.Equal(t, entry, *second.poll(ann).EntryToken, "one grant, one token, byte for byte")
	require.Equal(t, entry, *f.poll(ann).EntryToken)

	// Whoever is let through from now on has a token of the new key, everywhere.
	f.pass(time.Second)
	require.Equal(t, 1, f.tick())
	fresh := *second.poll(*p.QueueTicket).EntryToken
	require.Equal(t, fresh, *f.poll(bob).EntryToken)
	require.NotEqual(t, strings.Split(entry, ".")[0], strings.Split(fresh, ".")[0])
	second.order(`[{"sku":"a","quantity":1}]`, token(entry)).is(http.StatusCreated)
	f.order(`[{"sku":"a","quantity":1}]`, token(fresh)).is(http.StatusCreated)

	// And when the old key has gone, its tickets have.
	third := f.serve(func(o *api.Options) { o.Ring = ringOf(t, newKey) })
	third.get(ticket(bob)).refused(http.StatusUnauthorized, "ticket-invalid")
	require.Equal(t, queue.Claimed, third.poll(*p.QueueTicket).Status)
}

// Three processes change their keys one after the other, in the three steps, while
// people poll all of them.
func TestKeysAreRotatedUnderLoadAndNobodyIsRefused(t *testing.T) {
	t.Parallel()
	oldKey, newKey := credential.GenerateKey(), credential.GenerateKey()
	f := setUp(t, func(p *plan) { p.keys = oldKey })
	rings, sites := make([]*credential.Ring, 3), make([]*site, 3)
	for i := range sites {
		rings[i] = ringOf(t, oldKey)
		sites[i] = f.serve(func(o *api.Options) { o.Ring = rings[i] })
	}
	ann, entry := f.ready()
	tickets := []string{ann}
	for range 5 {
		tickets = append(tickets, f.enter())
	}
	stale := tickets[1] // kept by a client that never takes a new one

	var load errgroup.Group
	var over atomic.Bool
	var polls, refused atomic.Int64
	for i, text := range tickets {
		load.Go(func() error {
			for n := i; !over.Load(); n++ {
				s := sites[n%len(sites)]
				a, err := s.try(t.Context(), "GET", s.entries+"/me", ticket(text))
				if err != nil {
					return err
				}
				polls.Add(1)
				if a.status != http.StatusOK {
					refused.Add(1)
				} else if renewed := a.position().QueueTicket; renewed != nil {
					text = *renewed
				}
			}
			return nil
		})
	}
	for _, keys := range []string{oldKey + "," + newKey, newKey + "," + oldKey} {
		for _, r := range rings {
			require.NoError(t, r.Replace(keys))
			for n := polls.Load() + 30; polls.Load() < n; {
				runtime.Gosched()
			}
		}
	}
	over.Store(true)
	require.NoError(t, load.Wait())
	require.Zero(t, refused.Load(), "of %d", polls.Load())
	require.Greater(t, polls.Load(), int64(150))

	for _, s := range sites {
		s.poll(stale)
	}
	sites[0].order(`[{"sku":"a","quantity":1}]`, token(entry)).is(http.StatusCreated)
	for _, r := range rings {
		require.NoError(t, r.Replace(newKey))
	}
	sites[1].get(ticket(stale)).refused(http.StatusUnauthorized, "ticket-invalid")
	sites[2].order(`[{"sku":"a","quantity":1}]`, token(entry)).refused(http.StatusUnauthorized, "entry-token-invalid")
}

func TestThePublicKeysAreServed(t *testing.T) {
	t.Parallel()
	f := setUp(t, func(p *plan) { p.keys = credential.GenerateEd25519Key() })
	a := f.call("GET", "/.well-known/jwks.json").is(http.StatusOK)
	require.Equal(t, "application/jwk-set+json", a.header.Get("Content-Type"))
	require.Equal(t, "public, max-age=300", a.header.Get("Cache-Control"))
	require.JSONEq(t, string(f.ring.JWKS()), string(a.body))
}

func TestWhereATicketIsNeededTheFirstEnterWritesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.EnterNeedsTicket = true }))
	before := f.dump()
	var tickets []string
	for range 20 {
		p := f.post().is(http.StatusOK).position()
		require.Equal(t, queue.NotEntered, p.Status)
		require.NotNil(t, p.QueueTicket)
		tickets = append(tickets, *p.QueueTicket)
	}
	require.Equal(t, before, f.dump(), "S5: the room keeps something of who has shown nothing")

	entered := f.post(ticket(tickets[0])).is(http.StatusCreated).position()
	require.Equal(t, queue.Waiting, entered.Status)
	require.EqualValues(t, 1, *entered.CurrentTotalWaitingCount)
	require.NotNil(t, entered.QueueTicket, "the ticket now says where they stand")
	bound, err := f.ring.Ticket(tickets[0])
	require.NoError(t, err)
	placed, err := f.ring.Ticket(*entered.QueueTicket)
	require.NoError(t, err)
	require.Equal(t, bound.Member, placed.Member)
	require.Equal(t, *entered.Score, placed.Place.Score)
	again := f.post(ticket(tickets[0])).is(http.StatusOK).position()
	require.Equal(t, entered.Score, again.Score, "one ticket is one member, however often it is shown")
}

func TestLeavingWithAnOldTicketLeavesTheNewPlaceAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	old := f.enter()
	f.leave(ticket(old)).is(http.StatusNoContent)
	f.pass(time.Second)
	entered := f.post(ticket(old)).is(http.StatusCreated).position()
	require.Greater(t, *entered.Score, start.UnixMicro(), "a new place, at the end")
	f.leave(ticket(old)).is(http.StatusNoContent)
	require.Equal(t, queue.Waiting, f.poll(*entered.QueueTicket).Status)
	f.leave(ticket(*entered.QueueTicket)).is(http.StatusNoContent)
	require.Equal(t, queue.NotEntered, f.poll(*entered.QueueTicket).Status)
}

// TestATicketSaysWhatTheLineSays is about a process that has not yet seen that
// the room was flushed, and lets somebody in.
func TestATicketSaysWhatTheLineSays(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	old, err := f.line.Snapshot(t.Context(), f.room)
	require.NoError(t, err)
	_, err = f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	f.pass(time.Second)
	f.begin(f.written().Generation)
	late := f.serve(func(o *api.Options) {
		o.Snapshots, o.Books = frozen{o.Snapshots, old}, behind{o.Books, map[string]int64{f.room: old.Generation}}
	})
	c, err := f.ring.Ticket(late.enter())
	require.NoError(t, err)
	require.Equal(t, []int64{f.life.Sale, f.life.Generation}, []int64{c.Sale, c.Generation})
}

// TestAnOlderTicketIsAnsweredWithThePlaceOfNow is about two windows of one
// browser: in one of them the member has left and entered again.
func TestAnOlderTicketIsAnsweredWithThePlaceOfNow(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	old := f.enter()
	f.leave(ticket(old)).is(http.StatusNoContent)
	f.pass(time.Second)
	entered := f.post(ticket(old)).is(http.StatusCreated).position()
	p := f.poll(old)
	require.Equal(t, entered.Score, p.Score, "I6: a score never changes, whichever ticket is shown")
	require.Equal(t, entered.EnteredAt, p.EnteredAt)
	require.NotNil(t, p.QueueTicket, "with the old ticket the place could not be left")
	f.leave(ticket(*p.QueueTicket)).is(http.StatusNoContent)
	require.Equal(t, queue.NotEntered, f.poll(*entered.QueueTicket).Status)
}
