package api_test

import (
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// from is a client behind the proxy.
func from(address string) with { return header("X-Forwarded-For", address) }

// elsewhere counts what is shown in other networks.
type elsewhere struct {
	mu    sync.Mutex
	count map[string]int
}

func (e *elsewhere) observe(o *api.Options) {
	e.count = map[string]int{}
	o.Trusted = append(o.Trusted, netip.MustParsePrefix("127.0.0.0/8"))
	o.Observer.OtherNetwork = func(_, credential string, passed bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.count[credential]++
		if passed {
			e.count["passed"]++
		}
	}
}

func binding(word string) func(*plan) {
	return settings(func(s *room.Settings) { s.Binding = word })
}

func TestAStrictRoomRefusesWhatIsShownInAnotherNetwork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, given, near, far string }{
		{"IPv4", "192.0.2.7", "192.0.2.250", "192.0.3.7"},
		{"IPv6", "2001:db8:1:1::7", "2001:db8:1:ffff::1", "2001:db8:2:1::7"},
		{"another kind", "192.0.2.7", "::ffff:192.0.2.9", "2001:db8:2:1::7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var seen elsewhere
			f := setUp(t, binding("strict"), options(seen.observe))
			mine := *f.post(from(c.given)).is(http.StatusCreated).position().QueueTicket
			require.Equal(t, queue.Waiting, f.get(from(c.near), ticket(mine)).is(http.StatusOK).position().Status)
			require.Equal(t, 1, f.tick())
			p := f.get(from(c.near), ticket(mine)).is(http.StatusOK).position()
			entry := *p.EntryToken
			require.Equal(t, entry, *f.get(from(c.given), ticket(mine)).is(http.StatusOK).position().EntryToken, "one network, one token")
			before := f.dump()

			f.get(from(c.far), ticket(mine)).refused(http.StatusUnauthorized, "ticket-invalid")
			f.post(from(c.far), ticket(mine)).refused(http.StatusUnauthorized, "ticket-invalid")
			f.leave(from(c.far), ticket(mine)).refused(http.StatusUnauthorized, "ticket-invalid")
			f.get(from(c.far), cookie("linekeeper_"+f.room, mine)).refused(http.StatusUnauthorized, "ticket-invalid")
			f.order(oneA, from(c.far), token(entry)).refused(http.StatusUnauthorized, "entry-token-invalid")
			f.order(oneA, token(entry)).refused(http.StatusUnauthorized, "entry-token-invalid")
			require.Equal(t, before, f.dump(), "nothing has changed")
			require.Equal(t, map[string]int{"ticket": 4, "token": 2}, seen.count)

			o := f.order(oneA, from(c.near), token(entry), ticket(mine)).is(http.StatusCreated).order()
			for _, shown := range []with{token(entry), ticket(mine)} {
				f.call("GET", "/v1/orders/"+o.ID, from(c.given), shown).is(http.StatusOK)
				f.call("GET", "/v1/orders/"+o.ID, from(c.far), shown).refused(http.StatusNotFound, "order-not-found")
			}
			require.Equal(t, http.StatusCreated, f.post(from(c.far), cookie("linekeeper_"+f.room, mine)).status, "who has moved enters again")
		})
	}
}

func TestTheTicketOfAPuzzleIsBoundToo(t *testing.T) {
	t.Parallel()
	var seen elsewhere
	f := setUp(t, binding("strict"), working(easy), options(seen.observe))
	near, far := from("192.0.2.7"), from("198.51.100.7")
	text, puzzle := f.post(near).asked()
	f.get(far, ticket(text)).refused(http.StatusUnauthorized, "ticket-invalid")
	f.post(far, ticket(text), solved(t, puzzle)).refused(http.StatusUnauthorized, "ticket-invalid")
	f.post(near, ticket(text), solved(t, puzzle)).is(http.StatusCreated)
	f.get(far, ticket(text)).refused(http.StatusUnauthorized, "ticket-invalid")
}

func TestARoomThatObservesCountsAndPasses(t *testing.T) {
	t.Parallel()
	var seen elsewhere
	f := setUp(t, binding("observe"), options(seen.observe))
	mine := *f.post(from("192.0.2.7")).is(http.StatusCreated).position().QueueTicket
	require.Equal(t, 1, f.tick())
	p := f.get(from("198.51.100.1"), ticket(mine)).is(http.StatusOK).position()
	f.order(oneA, from("192.0.2.7"), token(*p.EntryToken)).is(http.StatusCreated)
	require.Equal(t, map[string]int{"ticket": 1, "token": 1, "passed": 2}, seen.count)
}

func TestCredentialsOfARoomThatBindsNothingSayNothingOfANetwork(t *testing.T) {
	t.Parallel()
	var seen elsewhere
	f := setUp(t, options(seen.observe))
	mine := *f.post(from("192.0.2.7")).is(http.StatusCreated).position().QueueTicket
	require.Equal(t, 1, f.tick())
	entry := *f.get(from("192.0.2.7"), ticket(mine)).is(http.StatusOK).position().EntryToken
	c, err := f.ring.Ticket(mine)
	require.NoError(t, err)
	require.Empty(t, c.Binding)
	_, bound, err := f.ring.Bound(entry)
	require.NoError(t, err)
	require.Empty(t, bound)

	f.change(func(s *room.Settings) { s.Binding = room.BindingStrict })
	strict := f.serve(seen.observe)
	strict.get(from("198.51.100.1"), ticket(mine)).is(http.StatusOK)
	strict.order(oneA, from("198.51.100.1"), token(entry)).is(http.StatusCreated)
	require.Empty(t, seen.count, "who came before the room wanted to know passes")
}

func TestWhatWasBoundPassesOnceTheRoomBindsNoMore(t *testing.T) {
	t.Parallel()
	var seen elsewhere
	f := setUp(t, binding("strict"), options(seen.observe))
	mine := *f.post(from("192.0.2.7")).is(http.StatusCreated).position().QueueTicket
	f.change(func(s *room.Settings) { s.Binding = room.BindingOff })
	f.serve(seen.observe).get(from("198.51.100.1"), ticket(mine)).is(http.StatusOK)
	require.Empty(t, seen.count)
}

func TestAStrictRoomKeepsItsMembersThroughARotationOfKeys(t *testing.T) {
	t.Parallel()
	var seen elsewhere
	oldKey, newKey := credential.GenerateKey(), credential.GenerateEd25519Key()
	f := setUp(t, binding("strict"), options(seen.observe), func(p *plan) { p.keys = oldKey })
	mine := *f.post(from("192.0.2.7")).is(http.StatusCreated).position().QueueTicket
	rotated := f.serve(seen.observe, func(o *api.Options) { o.Ring = ringOf(t, newKey+","+oldKey) })
	p := rotated.get(from("192.0.2.7"), ticket(mine)).is(http.StatusOK).position()
	require.NotNil(t, p.QueueTicket, "the ticket is renewed with the new key")
	rotated.get(from("192.0.2.7"), ticket(*p.QueueTicket)).is(http.StatusOK)
	rotated.get(from("192.0.3.7"), ticket(*p.QueueTicket)).refused(http.StatusUnauthorized, "ticket-invalid")
}
