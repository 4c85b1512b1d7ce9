package api_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/queue"
)

func member(id string) with { return header("X-Member-Id", id) }

// named is a process that is told by a proxy at these addresses who asks.
func named(trusted ...string) func(*api.Options) {
	return func(o *api.Options) {
		o.MemberHeader = true
		for _, t := range trusted {
			o.Trusted = append(o.Trusted, netip.MustParsePrefix(t))
		}
	}
}

func TestAProxySaysWhoTheMemberIs(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(named("10.0.0.0/8", "127.0.0.0/8")))
	entered := f.post(member("ann")).is(http.StatusCreated).position()
	require.Equal(t, queue.Waiting, f.get(member("ann")).is(http.StatusOK).position().Status, "no ticket need be shown")
	require.Equal(t, entered.Score, f.post(member("ann")).is(http.StatusOK).position().Score)
	c, err := f.ring.Ticket(*entered.QueueTicket)
	require.NoError(t, err)
	require.Equal(t, "ann", c.Member)

	f.get(member("ann"), ticket(*entered.QueueTicket)).is(http.StatusOK)
	f.get(member("bob"), ticket(*entered.QueueTicket)).refused(http.StatusUnauthorized, "ticket-invalid")
	require.Equal(t, queue.NotEntered, f.get(member("bob")).is(http.StatusOK).position().Status)

	require.Equal(t, 1, f.tick())
	entry := *f.get(member("ann")).is(http.StatusOK).position().EntryToken
	f.order(oneA, token(entry)).refused(http.StatusUnauthorized, "entry-token-invalid")
	f.order(oneA, token(entry), member("bob")).refused(http.StatusUnauthorized, "entry-token-invalid")
	o := f.order(oneA, token(entry), member("ann")).is(http.StatusCreated).order()
	require.Equal(t, "ann", o.Member)
	f.call("GET", "/v1/orders/"+o.ID, member("ann")).is(http.StatusOK)
	f.call("GET", "/v1/orders/"+o.ID, member("bob")).refused(http.StatusNotFound, "order-not-found")
	f.call("GET", "/v1/orders/"+o.ID, token(entry)).refused(http.StatusNotFound, "order-not-found")
}

// TestOnlyOneSaneNameFromATrustedPeerIsBelieved covers reading, entering and
// leaving alike.
func TestOnlyOneSaneNameFromATrustedPeerIsBelieved(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(named("127.0.0.1/32")))
	f.post(member("ann")).is(http.StatusCreated)
	for what, shown := range map[string][]with{
		"none":             {},
		"empty":            {member("")},
		"a space":          {member("ann bob")},
		"not ASCII":        {member("änn")},
		"too long":         {member(strings.Repeat("a", 129))},
		"two":              {member("ann"), member("bob")},
		"two in one value": {member("ann, bob")},
		"by another name":  {header("X-User-Id", "ann")},
	} {
		for _, a := range []answer{f.post(shown...), f.get(shown...), f.leave(shown...)} {
			require.Equal(t, http.StatusUnauthorized, a.status, what)
			a.refused(http.StatusUnauthorized, "unauthorized")
		}
	}
	far := f.serve(named("10.0.0.0/8", "::1/128"))
	for _, forwarded := range []string{"10.0.0.1", "::1", "127.0.0.1"} {
		far.get(member("ann"), header("X-Forwarded-For", forwarded), header("X-Real-IP", forwarded)).
			refused(http.StatusUnauthorized, "unauthorized") // S6: the peer itself counts
	}
	require.Equal(t, queue.Waiting, f.get(member("ann")).is(http.StatusOK).position().Status)
}

// TestTheCookieOfAnotherMemberCountsAsNone is about two people who share a
// browser: neither can take the other's cookie back.
func TestTheCookieOfAnotherMemberCountsAsNone(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(named("127.0.0.0/8")))
	anns := *f.post(member("ann")).is(http.StatusCreated).position().QueueTicket
	left := cookie("linekeeper_"+f.room, anns)
	require.Equal(t, queue.NotEntered, f.get(member("bob"), left).is(http.StatusOK).position().Status)
	a := f.post(member("bob"), left).is(http.StatusCreated)
	require.EqualValues(t, 1, *a.position().Rank)
	c, err := f.ring.Ticket(a.setCookie().Value)
	require.NoError(t, err)
	require.Equal(t, "bob", c.Member)
	f.leave(member("bob"), left).is(http.StatusNoContent)
	require.Equal(t, queue.Waiting, f.get(member("ann"), left).is(http.StatusOK).position().Status)
	f.get(member("bob"), ticket(anns), left).refused(http.StatusUnauthorized, "ticket-invalid")
}

func TestWithoutAProxyTheHeaderMeansNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	entered := f.post(member("ann")).is(http.StatusCreated).position()
	c, err := f.ring.Ticket(*entered.QueueTicket)
	require.NoError(t, err)
	require.NotEqual(t, "ann", c.Member, "S2: a member is who a verified credential says")
	f.get(member("ann")).refused(http.StatusUnauthorized, "ticket-invalid")
}
