package admin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"
)

// routes are all that the router serves to operators.
func (f *fixture) routes() map[string]bool {
	f.t.Helper()
	all := map[string]bool{}
	require.NoError(f.t, chi.Walk(f.handler.(chi.Routes), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.HasPrefix(pattern, "/admin/") {
			all[method+" "+pattern] = true
		}
		return nil
	}))
	require.NotEmpty(f.t, all)
	return all
}

// patternOf is the route that a call of the table takes.
func (f *fixture) patternOf(method, path string) string {
	f.t.Helper()
	rctx := chi.NewRouteContext()
	require.True(f.t, f.handler.(chi.Routes).Match(rctx, method, path), "%s %s", method, path)
	return method + " " + rctx.RoutePattern()
}

func TestTheTableOfCallsHasEveryRoute(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	missing := f.routes()
	for _, c := range calls {
		delete(missing, f.patternOf(c.method, strings.Split(c.path, "?")[0]))
	}
	require.Empty(t, missing, "the tests of roles, tokens and audit rows go by this table")
}

func TestEveryCallThatChangesSomethingHasItsAuditRow(t *testing.T) {
	t.Parallel()
	for _, c := range calls {
		if c.method == http.MethodGet {
			continue
		}
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			t.Parallel()
			f := line(t, "bob")
			path, status, body := c.path, c.status, c.body
			if strings.Contains(path, "requeue") {
				path, status = fmt.Sprintf("/admin/v1/outbox/%d/requeue", f.deadEntry()), 204
			}
			switch { // what there is nothing to change of
			case strings.HasSuffix(path, "/resume"):
				f.call("operator", "POST", "/admin/v1/rooms/sale/pause", "")
			case c.method == "DELETE" && strings.HasSuffix(path, "/block"):
				f.block("bob")
			case strings.HasSuffix(path, "/codes/revoke"):
				made := f.call("operator", "POST", "/admin/v1/rooms/sale/codes", `{"count":1}`)
				body = fmt.Sprintf(`{"batch":%v}`, made.body["batch"])
			}
			before := len(f.all())
			from := headers{"X-Forwarded-For": "198.51.100.7", "If-Match": "*", "X-Request-Id": "req-42"}
			a := f.call("admin", c.method, path, body, from)
			require.Equal(t, status, a.status, "%v", a.body)
			rows := f.all()
			require.Len(t, rows, before+1)
			row := rows[0].(map[string]any)
			require.Equal(t, []any{"ada", "admin", "198.51.100.7", "req-42"}, []any{row["actor"], row["role"], row["remote"], row["requestId"]})
			require.NotEqual(t, row["before"], row["after"])
		})
	}
}

// all is the newest of the audit list.
func (f *fixture) all() []any {
	f.t.Helper()
	a := f.call("viewer", "GET", "/admin/v1/audit?limit=200", "")
	require.Equal(f.t, 200, a.status, "%v", a.body)
	return a.body["changes"].([]any)
}

// An address is that of the client only as far as a trusted proxy has written it.
func TestTheAuditNamesTheClientBehindATrustedProxyAndNoOther(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	for _, c := range []struct{ peer, forwarded, want string }{
		{"127.0.0.1:99", "198.51.100.7", "198.51.100.7"},
		{"127.0.0.1:99", "6.6.6.6, 198.51.100.7", "198.51.100.7"},
		{"127.0.0.1:99", "nonsense", "127.0.0.1"},
		{"203.0.113.5:99", "198.51.100.7", "203.0.113.5"},
		{"[2001:db8::1]:99", "198.51.100.7", "2001:db8::1"},
		{"@", "198.51.100.7", "@"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/admin/v1/rooms/sale/release", strings.NewReader(`{"count":1}`))
		r.RemoteAddr = c.peer
		r.Header.Set("X-Forwarded-For", c.forwarded)
		r.Header.Set("Authorization", "Bearer "+f.tokens["operator"])
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code, w.Body)
		require.Equal(t, c.want, f.changes("sale")[0]["remote"], "%+v", c)
	}
}

func TestFailedLoginsOfOneAddressArePutOffAndAKnownTokenPasses(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	try := func(token, from string) answer {
		return f.call("", "GET", "/admin/v1/rooms", "", headers{"Authorization": "Bearer " + token, "X-Forwarded-For": from})
	}
	for range 10 {
		f.refused(try("wrong", "198.51.100.7"), 401, "unauthorized")
	}
	a := try("wrong", "198.51.100.7")
	f.refused(a, 429, "rate-limited")
	wait, err := strconv.Atoi(a.header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 4, wait, 3)
	require.Equal(t, 200, try(f.tokens["viewer"], "198.51.100.7").status, "one script with an old token keeps nobody else out")
	f.refused(try("wrong", "198.51.100.7"), 429, "rate-limited")
	f.refused(try("wrong", "198.51.100.8"), 401, "unauthorized")

	f.refused(try("wrong", "2001:db8:1:2::1"), 401, "unauthorized")
	for i := range 9 {
		f.refused(try("wrong", fmt.Sprintf("2001:db8:1:2::%d", i+2)), 401, "unauthorized")
	}
	f.refused(try("wrong", "2001:db8:1:2:ffff::1"), 429, "rate-limited")
	require.Equal(t, []int{21, 3}, []int{f.failed.get("unknown"), f.failed.get("limited")})
	require.Equal(t, 21, strings.Count(f.log.String(), "operator not known"), "what is put off leaves no line")
	require.NotContains(t, f.log.String(), "wrong")
}

func TestPagesOfOtherOriginsReachNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	cross := headers{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "If-Match": "*"}
	for _, c := range calls {
		if c.method != http.MethodGet {
			f.refused(f.call("admin", c.method, c.path, c.body, cross), 403, "forbidden")
		}
	}
	r, w := httptest.NewRequest(http.MethodPost, "/metrics", nil), httptest.NewRecorder()
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	f.handler.ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Len(t, f.all(), 1, "the room is as it was made")
}

func TestNoMemberIsInALog(t *testing.T) {
	t.Parallel()
	f := line(t, "canary-member")
	f.member("canary-member")
	for _, a := range []answer{f.evict("canary-member"), f.block("canary-member"), f.unblock("canary-member")} {
		require.Equal(t, 200, a.status, "%v", a.body)
	}
	f.serve(f.store, brokenLines{fmt.Errorf("fault")})
	f.refused(f.call("viewer", "GET", memberPath("canary-member"), ""), 500, "internal")
	f.refused(f.call("", "GET", memberPath("canary-member"), ""), 401, "unauthorized")
	f.refused(f.call("viewer", "GET", memberPath("canary-member")+"/nothing", ""), 404, "not-found")
	text := f.log.String()
	require.Contains(t, text, "/admin/v1/rooms/sale/members/{member}/block")
	require.Contains(t, text, "hash-of-c")
	require.NotContains(t, text, "canary")
}

func TestWhatTakesAPlaceAwayMustBeConfirmedWithTheNameOfTheRoom(t *testing.T) {
	t.Parallel()
	f := line(t, "bob")
	before := len(f.all())
	for _, call := range [][2]string{{"DELETE", memberPath("bob")}, {"PUT", memberPath("bob") + "/block"},
		{"POST", "/admin/v1/rooms/sale/flush"}, {"DELETE", "/admin/v1/rooms/sale"}} {
		for _, body := range []string{"", `{}`, `{"confirm":"bob"}`, `{"confirm":true}`, `{"confirm":"sale","force":true}`} {
			f.refused(f.call("admin", call[0], call[1], body), 422, "confirmation-required")
		}
	}
	require.Len(t, f.all(), before)
	require.Equal(t, []any{"WAITING", false, false}, []any{f.member("bob")["state"], f.member("bob")["blocked"], f.member("bob")["evicted"]})
}
