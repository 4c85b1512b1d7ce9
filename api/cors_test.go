package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/test/contract"
)

const shopOrigin = "https://shop.example"

// pages is a process that pages of shopOrigin may call. Its document has no
// preflights, so exchanges are not held against it here.
func pages(t *testing.T, origins ...string) http.Handler {
	t.Helper()
	f := setUp(t)
	o := f.options()
	o.Origins = origins
	return api.New(o).Handler()
}

func asked(h http.Handler, method, path string, headers ...string) http.Header {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result().Header
}

func preflight(h http.Handler, path, origin, method, headers string) http.Header {
	return asked(h, http.MethodOptions, path, "Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", headers)
}

// shared are the headers that let a page of another origin in.
func shared(h http.Header) (names []string) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			names = append(names, name)
		}
	}
	return names
}

func TestWithoutOriginsNoPageOfAnotherOriginIsLetIn(t *testing.T) {
	t.Parallel()
	h := pages(t)
	for _, origin := range []string{shopOrigin, "null", "*", "http://localhost"} {
		require.Empty(t, shared(asked(h, "GET", "/v1/rooms/none", "Origin", origin)))
		require.Empty(t, shared(preflight(h, "/v1/orders", origin, "POST", "x-entry-token")))
	}
}

func TestOnlyTheExactOriginsAreLetInAndNoneIsRepeated(t *testing.T) {
	t.Parallel()
	h := pages(t, shopOrigin, "http://localhost:3000")
	for _, path := range []string{"/v1/rooms/none", "/v1/orders/x", "/livez", "/nowhere"} {
		got := asked(h, "GET", path, "Origin", shopOrigin)
		require.Equal(t, shopOrigin, got.Get("Access-Control-Allow-Origin"), path)
		require.Equal(t, "true", got.Get("Access-Control-Allow-Credentials"), path)
		require.Contains(t, got.Values("Vary"), "Origin", path)
	}
	for _, origin := range []string{"https://shop.example.evil.example", "https://evilshop.example", "http://shop.example", "https://shop.example:8443",
		"https://SHOP.example", "https://sub.shop.example", "https://shop.example/", "https://shop.example,http://localhost:3000", "null", "*", "", "https://"} {
		for name, got := range map[string]http.Header{
			"a request": asked(h, "GET", "/v1/rooms/none", "Origin", origin), "a preflight": preflight(h, "/v1/orders", origin, "POST", "x-entry-token"),
		} {
			require.Empty(t, shared(got), "%s of %q", name, origin)
			require.Contains(t, got.Values("Vary"), "Origin", "a cache must not give one origin's answer to another")
		}
	}
}

func TestAPageMayUseEveryPublicRouteWithOurHeaders(t *testing.T) {
	t.Parallel()
	h, c := pages(t, shopOrigin), contract.Load(t)
	for _, r := range c.Routes() {
		if !contract.Public(r) {
			continue
		}
		for _, name := range c.RequestHeaders(r) {
			got := preflight(h, r.Pattern, shopOrigin, r.Method, strings.ToLower(name))
			byProxy := name == "X-Member-Id" || name == "X-Member-Lane"
			require.Equal(t, byProxy, got.Get("Access-Control-Allow-Origin") == "", "%s %s with %s", r.Method, r.Pattern, name)
		}
		require.Equal(t, shopOrigin, preflight(h, r.Pattern, shopOrigin, r.Method, "content-type, x-request-id").Get("Access-Control-Allow-Origin"))
		readable := strings.Split(asked(h, "GET", r.Pattern, "Origin", shopOrigin).Get("Access-Control-Expose-Headers"), ", ")
		for _, name := range c.ResponseHeaders(r) {
			always := slices.Contains([]string{"Cache-Control", "Set-Cookie", "Www-Authenticate", "Vary", "Content-Security-Policy", "X-Content-Type-Options"}, http.CanonicalHeaderKey(name))
			require.True(t, always || slices.Contains(readable, http.CanonicalHeaderKey(name)), "%s %s: a page can't read %s", r.Method, r.Pattern, name)
		}
	}
}

func TestAPageMayNotUseMethodsAndHeadersThatAreNotOurs(t *testing.T) {
	t.Parallel()
	h := pages(t, shopOrigin)
	for _, method := range []string{"PUT", "PATCH", "TRACE", "CONNECT", "*"} {
		require.Empty(t, shared(preflight(h, "/v1/orders", shopOrigin, method, "")), method)
	}
	for _, name := range []string{"x-member-id", "x-member-lane", "x-forwarded-for", "x-anything", "x-entry-token, x-anything"} {
		require.Empty(t, shared(preflight(h, "/v1/orders", shopOrigin, "POST", name)), name)
	}
	require.NotContains(t, preflight(h, "/v1/orders", shopOrigin, "POST", "*"), "Access-Control-Allow-Headers")
}

// What a cache may keep must say by what it varies, all of it.
func TestAPageOfAProblemVariesByOriginAndByWhatIsAccepted(t *testing.T) {
	t.Parallel()
	got := asked(pages(t, shopOrigin), "GET", "/problems/room-full", "Origin", shopOrigin)
	require.ElementsMatch(t, []string{"Origin", "Accept"}, got.Values("Vary"))
}
