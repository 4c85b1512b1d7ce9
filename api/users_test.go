package api_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/identity"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/provider"
)

func bearer(token string) with { return header("Authorization", "Bearer "+token) }

// users is a process that believes the user tokens of a provider.
func users(t *testing.T, p *provider.Provider) func(*api.Options) {
	source, err := identity.From(p.KeysURL())
	require.NoError(t, err)
	v := identity.New(identity.Config{Source: source, Algorithms: []string{"ES256"}, Issuer: p.URL, Audience: provider.Audience,
		Claims: []string{"sub", "lane"}}, slog.New(slog.DiscardHandler))
	return func(o *api.Options) { o.Users = identity.Users{Verifier: v, MemberClaim: "sub", LaneClaim: "lane"} }
}

func TestAUserTokenSaysWhoTheMemberIs(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	f := setUp(t, options(users(t, p)))
	as := func(name string) with { return bearer(p.Token(t, name, nil)) }
	entered := f.post(as("ann")).is(http.StatusCreated).position()
	require.Equal(t, entered.Score, f.post(as("ann")).is(http.StatusOK).position().Score, "another token of the same member is the same place")
	c, err := f.ring.Ticket(*entered.QueueTicket)
	require.NoError(t, err)
	require.Equal(t, "ann", c.Member)

	f.get(as("ann"), ticket(*entered.QueueTicket)).is(http.StatusOK)
	f.get(as("bob"), ticket(*entered.QueueTicket)).refused(http.StatusUnauthorized, "ticket-invalid")
	f.get(ticket(*entered.QueueTicket)).refused(http.StatusUnauthorized, "unauthorized")
	f.get(member("ann")).refused(http.StatusUnauthorized, "unauthorized")

	require.Equal(t, 1, f.tick())
	entry := *f.get(as("ann")).is(http.StatusOK).position().EntryToken
	f.order(oneA, token(entry)).refused(http.StatusUnauthorized, "entry-token-invalid")
	f.order(oneA, token(entry), as("bob")).refused(http.StatusUnauthorized, "entry-token-invalid")
	o := f.order(oneA, token(entry), as("ann")).is(http.StatusCreated).order()
	f.call("GET", "/v1/orders/"+o.ID, as("ann")).is(http.StatusOK)
	f.call("GET", "/v1/orders/"+o.ID, as("bob")).refused(http.StatusNotFound, "order-not-found")
	f.call("GET", "/v1/orders/"+o.ID, token(entry)).refused(http.StatusNotFound, "order-not-found")
}

// S2, S4: whatever is wrong with a token, the answer is one, and Redis is as it
// was.
func TestBadUserTokensAreAnsweredAlikeAndChangeNothing(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	f := setUp(t, options(users(t, p)))
	good := p.Token(t, "ann", nil)
	f.post(bearer(good)).is(http.StatusCreated)
	before := f.dump()
	for what, shown := range map[string][]with{
		"none":                   {},
		"another scheme":         {header("Authorization", "Basic "+good)},
		"no scheme":              {header("Authorization", good)},
		"two":                    {bearer(good), bearer(good)},
		"expired":                {bearer(p.Token(t, "ann", map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}))},
		"foreign audience":       {bearer(p.Token(t, "ann", map[string]any{"aud": "other"}))},
		"foreign issuer":         {bearer(p.Token(t, "ann", map[string]any{"iss": "other"}))},
		"a stranger's":           {bearer(provider.Start(t).Token(t, "ann", map[string]any{"iss": p.URL}))},
		"a member with spaces":   {bearer(p.Token(t, "ann bob", nil))},
		"a member with a line":   {bearer(p.Token(t, "ann\r\nX: y", nil))},
		"no member":              {bearer(p.Token(t, "", map[string]any{"sub": nil}))},
		"in the query":           {func(r *http.Request) { r.URL.RawQuery = "access_token=" + good }},
		"a ticket as user token": {bearer(*f.post(bearer(good)).position().QueueTicket)},
	} {
		for _, a := range []answer{f.post(shown...), f.get(shown...), f.leave(shown...)} {
			a.refused(http.StatusUnauthorized, "unauthorized")
			require.NotContains(t, string(a.body), good, what)
		}
	}
	require.Equal(t, before, f.dump())
}

func TestTheLaneComesFromTheClaimOfAUserToken(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	f := setUp(t, options(users(t, p)), settings(func(s *room.Settings) {
		s.Lanes = []room.Lane{{Name: "standard", Weight: 1}, {Name: "vip", Weight: 3}}
	}))
	as := func(name string, lane any) with { return bearer(p.Token(t, name, map[string]any{"lane": lane})) }
	for name, c := range map[string]struct {
		claim any
		want  string
	}{"ann": {"vip", "vip"}, "bob": {nil, "standard"}, "cid": {[]string{"vip"}, "vip"}} {
		require.Equal(t, c.want, *f.post(as(name, c.claim), header("X-Member-Lane", "vip")).is(http.StatusCreated).position().Lane, name)
	}
	require.Equal(t, "vip", *f.post(as("ann", "standard")).is(http.StatusOK).position().Lane, "who has a place stays in its lane")
	before := f.dump()
	for _, lane := range []any{"gold", "", true, 1, []string{}, []string{"vip", "standard"}} {
		f.post(as("eve", lane)).refused(http.StatusBadRequest, "bad-request")
	}
	require.Equal(t, before, f.dump())
}

func TestWithoutKeysUserTokensAreNotCalledWrong(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	f := setUp(t, options(users(t, p)))
	entry := func() string {
		ticket := f.serve().enter() // an anonymous member of a process that has no users
		f.tick()
		return *f.serve().poll(ticket).EntryToken
	}()
	p.Answer(http.NotFound)
	as := bearer(p.Token(t, "ann", nil))
	f.post(as).refused(http.StatusServiceUnavailable, "unavailable")
	f.get(as).refused(http.StatusServiceUnavailable, "unavailable")
	f.order(oneA, token(entry), as).refused(http.StatusServiceUnavailable, "unavailable")
	f.call("GET", "/v1/orders/x", as).refused(http.StatusServiceUnavailable, "unavailable")
}

// TestNobodyCanPollLeaveOrOrderForAnother is S2 in each identity: ann shows all
// that is hers, and bob's place beside it.
func TestNobodyCanPollLeaveOrOrderForAnother(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	for name, mode := range map[string]struct {
		option func(*api.Options)
		as     func(name string) []with
	}{
		"ticket": {func(*api.Options) {}, func(string) []with { return nil }},
		"header": {named("127.0.0.0/8"), func(name string) []with { return []with{member(name)} }},
		"jwt":    {users(t, p), func(name string) []with { return []with{bearer(p.Token(t, name, nil))} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t, options(mode.option))
			enter := func(name string) string {
				return *f.post(mode.as(name)...).is(http.StatusCreated).position().QueueTicket
			}
			ann, bob := enter("ann"), enter("bob")
			asAnn := append(mode.as("ann"), ticket(ann))
			require.Equal(t, 2, f.tick())
			token1 := *f.get(append(mode.as("bob"), ticket(bob))...).is(http.StatusOK).position().EntryToken
			f.get(asAnn...).is(http.StatusOK)
			before := f.dump()

			mixed := append(mode.as("ann"), ticket(bob))
			if name != "ticket" { // there the ticket is all there is: who holds it is the member
				f.get(mixed...).refused(http.StatusUnauthorized, "ticket-invalid")
				f.leave(mixed...).refused(http.StatusUnauthorized, "ticket-invalid")
			}
			f.order(oneA, append(asAnn, token(token1))...).refused(http.StatusUnauthorized, "entry-token-invalid")
			f.call("GET", f.entries+"/bob", asAnn...).is(http.StatusNotFound)
			f.call("POST", f.entries, append(asAnn, body(`{"memberId":"bob"}`))...).refused(http.StatusBadRequest, "bad-request")
			require.Equal(t, before, f.dump(), "nothing of bob's has changed")

			require.Equal(t, queue.Ready, f.get(append(mode.as("bob"), ticket(bob))...).is(http.StatusOK).position().Status)
			f.order(oneA, append(mode.as("bob"), ticket(bob), token(token1))...).is(http.StatusCreated)
		})
	}
}

// TestAllTabsOfAMemberShareOnePlace: a tab is a request with what the browser or
// the application keeps for all of them.
func TestAllTabsOfAMemberShareOnePlace(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	for name, mode := range map[string]struct {
		option func(*api.Options)
		as     func() []with
	}{
		"ticket": {func(*api.Options) {}, func() []with { return nil }},
		"header": {named("127.0.0.0/8"), func() []with { return []with{member("ann")} }},
		"jwt":    {users(t, p), func() []with { return []with{bearer(p.Token(t, "ann", map[string]any{"jti": time.Now().String()}))} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t, options(mode.option))
			first := f.post(mode.as()...).is(http.StatusCreated).position()
			shared := cookie("linekeeper_"+f.room, *first.QueueTicket)
			for range 5 {
				again := f.post(append(mode.as(), shared)...).is(http.StatusOK).position()
				require.Equal(t, first.Score, again.Score)
			}
			n, err := f.rdb.ZCard(t.Context(), f.key("lane0")).Result()
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
		})
	}
}
