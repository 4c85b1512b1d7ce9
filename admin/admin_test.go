package admin_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// calls is every route with the lowest role that may use it. The bodies make
// the calls succeed for those who may.
var calls = []struct {
	method, path, body, role string
	status                   int
}{
	{"GET", "/admin/v1/rooms", "", "viewer", 200},
	{"GET", "/admin/v1/rooms/sale", "", "viewer", 200},
	{"GET", "/admin/v1/rooms/sale/snapshot", "", "viewer", 200},
	{"GET", "/admin/v1/rooms/sale/members/bob", "", "viewer", 200},
	{"GET", "/admin/v1/products/demo", "", "viewer", 404},
	{"GET", "/admin/v1/outbox", "", "viewer", 200},
	{"GET", "/admin/v1/audit", "", "viewer", 200},
	{"GET", "/admin/v1/profiles/heap", "", "admin", 200},
	{"PATCH", "/admin/v1/rooms/sale", `{"batchSize":7}`, "operator", 200},
	{"POST", "/admin/v1/rooms/sale/pause", "", "operator", 200},
	{"POST", "/admin/v1/rooms/sale/resume", "", "operator", 200},
	{"POST", "/admin/v1/rooms/sale/drain", "", "operator", 200},
	{"POST", "/admin/v1/rooms/sale/off", "", "operator", 200},
	{"POST", "/admin/v1/rooms/sale/release", `{"count":1}`, "operator", 200},
	{"DELETE", "/admin/v1/rooms/sale/members/bob", `{"confirm":"sale"}`, "operator", 200},
	{"PUT", "/admin/v1/rooms/sale/members/bob/block", `{"confirm":"sale"}`, "operator", 200},
	{"DELETE", "/admin/v1/rooms/sale/members/bob/block", "", "operator", 200},
	{"GET", "/admin/v1/rooms/sale/codes", "", "viewer", 200},
	{"POST", "/admin/v1/rooms/sale/codes", `{"count":2}`, "operator", 201},
	{"POST", "/admin/v1/rooms/sale/codes/revoke", `{"id":999}`, "operator", 200},
	{"PUT", "/admin/v1/products/demo", `{"stock":1,"priceCents":1,"currency":"EUR"}`, "operator", 201},
	{"POST", "/admin/v1/outbox/1/requeue", "", "operator", 409},
	{"POST", "/admin/v1/rooms", `{"name":"another"}`, "admin", 201},
	{"POST", "/admin/v1/rooms/sale/flush", `{"confirm":"sale"}`, "admin", 200},
	{"DELETE", "/admin/v1/rooms/sale", `{"confirm":"sale"}`, "admin", 204},
}

var rank = map[string]int{"viewer": 1, "operator": 2, "admin": 3}

func TestEveryRouteAsksForItsRole(t *testing.T) {
	t.Parallel()
	for role := range rank {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.create("sale")
			f.begin("sale")
			before := len(f.changes("sale"))
			for _, c := range calls {
				a := f.call(role, c.method, c.path, c.body, headers{"If-Match": "*"})
				if rank[role] >= rank[c.role] {
					require.Equal(t, c.status, a.status, "%s %s as %s: %v", c.method, c.path, role, a.body)
					continue
				}
				f.refused(a, 403, "forbidden")
				require.Contains(t, a.body["detail"], c.role)
			}
			if role == "viewer" {
				require.Len(t, f.changes("sale"), before, "what is refused changes nothing")
			}
		})
	}
}

func TestEveryRouteAsksForAToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	good := f.tokens["admin"]
	for i, c := range append(calls, calls[0], struct {
		method, path, body, role string
		status                   int
	}{"GET", "/admin/v1/nothing/here", "", "", 0}) {
		from := headers{"X-Forwarded-For": fmt.Sprintf("192.0.2.%d", i+1)} // each has its own ten failures
		for _, credential := range []string{"", "Bearer", "Bearer ", "Basic " + good, "bearer" + good, "Bearer " + good[1:], "Bearer x" + good,
			"Bearer " + strings.ToUpper(good), fmt.Sprintf("Bearer %x", sha256.Sum256([]byte(good))), good} {
			a := f.call("", c.method, c.path, c.body, from, headers{"Authorization": credential})
			f.refused(a, 401, "unauthorized")
			require.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer")
		}
	}
	require.Equal(t, 200, f.call("", "GET", "/admin/v1/rooms", "", headers{"Authorization": "bEARER " + good}).status, "schemes have no case")
	require.Equal(t, 1.0, f.get("sale").body["version"])
}

func TestTwoAuthorizationHeadersAreNone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", f.url+"/admin/v1/rooms", nil)
	require.NoError(t, err)
	req.Header.Add("Authorization", "Bearer "+f.tokens["viewer"])
	req.Header.Add("Authorization", "Bearer "+f.tokens["admin"])
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 401, resp.StatusCode)
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	for _, h := range []headers{{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"}} {
		f.refused(f.call("admin", "POST", "/admin/v1/rooms/sale/pause", "", h), 403, "forbidden")
	}
	require.Equal(t, false, f.get("sale").setting("paused"))
	require.Equal(t, 200, f.call("admin", "POST", "/admin/v1/rooms/sale/pause", "", headers{"Sec-Fetch-Site": "same-origin"}).status)
}

func TestBodiesMustBeOneSmallJSONObject(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	patch := func(body string, h headers) answer {
		return f.call("operator", "PATCH", "/admin/v1/rooms/sale", body, headers{"If-Match": "*"}, h)
	}
	for _, body := range []string{"", "{", `{"batchSize":1}{"batchSize":2}`, `{"batchSize":1,"batchSize":2}`, `[]`, `null`, `7`, "\xff", strings.Repeat(`{"a":`, 3000)} {
		f.refused(patch(body, headers{"Content-Type": "application/json"}), 400, "bad-request")
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/jsonx", "application/json;;"} {
		f.refused(patch(`{"batchSize":7}`, headers{"Content-Type": kind}), 415, "unsupported-media-type")
	}
	f.refused(f.call("admin", "POST", "/admin/v1/rooms", `{"name":"x"}`, headers{"Content-Type": "application/merge-patch+json"}), 415, "unsupported-media-type")
	large := `{"batchSize":7` + strings.Repeat(" ", 16<<10) + `}`
	for _, c := range calls {
		if c.method != "GET" && !strings.Contains(c.path, "requeue") {
			f.refused(f.call("admin", c.method, c.path, large, headers{"If-Match": "*"}), 413, "body-too-large")
		}
	}
	for _, path := range []string{"/admin/v1/rooms/sale/pause", "/admin/v1/outbox/1/requeue"} { // which need no body
		f.refused(f.call("operator", "POST", path, "{}", headers{"Content-Type": "text/plain"}), 415, "unsupported-media-type")
	}
	require.Equal(t, 1.0, f.get("sale").body["version"])
}

func TestAParameterThatIsThereTwiceOrEmptyIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, query := range []string{"audit?target=a&target=b", "audit?limit=1&limit=1", "audit?before=", "audit?limit=1e1", "audit?limit=+1", "audit?before=-1",
		"audit?before=9223372036854775808", "outbox?status=dead&status=done", "outbox?status=", "outbox?after=1&after=2"} {
		f.refused(f.call("viewer", "GET", "/admin/v1/"+query, ""), 400, "bad-request")
	}
	require.Equal(t, 200, f.call("viewer", "GET", "/admin/v1/audit?target=", "").status, "which is all")
}

func TestUnknownPathsAndMethodsAreToldSo(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.refused(f.call("viewer", "GET", "/", ""), 404, "not-found")
	f.refused(f.call("viewer", "GET", "/admin/v1/rooms/", ""), 404, "not-found")
	f.refused(f.call("viewer", "GET", "/ADMIN/v1/rooms", ""), 404, "not-found")
	a := f.call("viewer", "PUT", "/admin/v1/rooms/sale", "{}")
	f.refused(a, 405, "method-not-allowed")
	require.Equal(t, []string{"GET", "PATCH", "DELETE"}, a.header.Values("Allow"))
	f.refused(f.call("viewer", "PURGE", "/admin/v1/nothing", ""), 404, "not-found")
	f.refused(f.call("viewer", "PURGE", "/admin/v1/rooms", ""), 405, "method-not-allowed")
	require.Equal(t, 200, f.call("", "GET", "/metrics", "").status)
}

func TestOutagesAre503AndFaultsOfOursSayNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"no connection": {fmt.Errorf("get: %w", &net.OpError{Op: "dial", Err: errors.New("refused secret-host")}), 503, "unavailable"},
		"no answer":     {fmt.Errorf("get: %w", context.DeadlineExceeded), 503, "unavailable"},
		"fault":         {errors.New("secret-host exploded"), 500, "internal"},
		"redis is away": {fmt.Errorf("get: %w", queue.ErrUnavailable), 503, "unavailable"},
		"broken off":    {fmt.Errorf("get: %w", io.ErrUnexpectedEOF), 503, "unavailable"},
		"shutting down": {&pgconn.PgError{Code: "57P01", Message: "secret-host"}, 503, "unavailable"},
		"bad statement": {&pgconn.PgError{Code: "42601", Message: "secret-host"}, 500, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.serve(broken{f.store, tc.err}, brokenLines{queue.ErrNoRoom})
			for _, path := range []string{"/admin/v1/rooms/sale", "/admin/v1/rooms/sale/snapshot"} {
				a := f.call("viewer", "GET", path, "")
				f.refused(a, tc.status, tc.code)
				require.NotContains(t, fmt.Sprint(a.body), "secret-host")
				require.Equal(t, tc.status == 503, a.header.Get("Retry-After") != "")
			}
			if tc.status >= 500 {
				require.Equal(t, 2, strings.Count(f.log.String(), "operator call broke"))
			}
		})
	}
}

func TestASnapshotShowsTheLineAsRedisHasIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	f.refused(f.call("viewer", "GET", "/admin/v1/rooms/sale/snapshot", ""), 409, "conflict")
	life := f.begin("sale")
	first, err := f.redis.Enter(t.Context(), "sale", "bob", 0)
	require.NoError(t, err)
	_, err = f.redis.Enter(t.Context(), "sale", "eve", 0)
	require.NoError(t, err)

	a := f.call("viewer", "GET", "/admin/v1/rooms/sale/snapshot", "")
	require.Equal(t, 200, a.status, "%v", a.body)
	require.ElementsMatch(t, []string{"room", "roomState", "generation", "restorableFrom", "sale", "version", "redisTime", "beganAt",
		"tickedAt", "term", "leader", "memoryFull", "batch", "toRelease", "stock", "sizes", "lanes", "counters"}, keys(a.body))
	require.Equal(t, "sale", a.body["room"])
	require.Equal(t, "OPEN", a.body["roomState"])
	require.Equal(t, float64(life.Generation), a.body["generation"])
	require.Equal(t, 1.0, a.body["sale"])
	require.Equal(t, 1.0, a.body["version"])
	require.Nil(t, a.body["tickedAt"])
	require.Nil(t, a.body["stock"], "no product bounds the room")
	require.Equal(t, 2.0, a.body["counters"].(map[string]any)["entered"])
	require.Equal(t, map[string]any{"waiting": 2.0, "away": 0.0, "processing": 0.0, "ready": 0.0, "claimed": 0.0, "done": 0.0}, a.body["sizes"])
	lane := a.body["lanes"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"standard", 2.0, float64(first.Place.Score)}, []any{lane["name"], lane["waiting"], lane["headScore"]})
	require.WithinDuration(t, time.Now(), parseTime(t, a.body["redisTime"]), time.Minute)
}

func TestASnapshotNeedsNoPostgresAndOwnsUpToARedisOutage(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	f.begin("sale")
	f.serve(broken{f.store, errors.New("postgres is away")}, f.redis)
	require.Equal(t, 200, f.call("viewer", "GET", "/admin/v1/rooms/sale/snapshot", "").status)
	f.serve(f.store, brokenLines{queue.ErrUnavailable})
	f.refused(f.call("viewer", "GET", "/admin/v1/rooms/sale/snapshot", ""), 503, "unavailable")
}

func TestAProductIsPutAndShown(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const path, body = "/admin/v1/products/demo", `{"stock":5,"priceCents":1999,"currency":"EUR"}`
	f.refused(f.call("viewer", "GET", path, ""), 404, "product-not-found")
	a := f.call("operator", "PUT", path, body)
	require.Equal(t, 201, a.status, "%v", a.body)
	require.Equal(t, `"1"`, a.header.Get("ETag"))
	require.ElementsMatch(t, []string{"sku", "stock", "priceCents", "currency", "version", "updatedAt"}, keys(a.body))
	a = f.call("operator", "PUT", path, strings.Replace(body, "5", "6", 1), headers{"If-Match": `"1"`})
	require.Equal(t, 200, a.status)
	require.Equal(t, a.body, f.call("viewer", "GET", path, "").body)
	require.Equal(t, 6.0, a.body["stock"])
	f.refused(f.call("operator", "PUT", path, body, headers{"If-Match": `"1"`}), 412, "precondition-failed")
	f.refused(f.call("operator", "PUT", "/admin/v1/products/new", body, headers{"If-Match": `"1"`}), 412, "precondition-failed")

	a = f.call("operator", "PUT", path, `{"stock":-1,"priceCents":0.5,"currency":"eur","sku":"x"}`)
	f.refused(a, 422, "invalid-settings")
	require.Equal(t, []string{"stock", "priceCents", "currency", "sku"}, a.fields())
	f.refused(f.call("operator", "PUT", "/admin/v1/products/a%20b", body), 400, "bad-request")
	f.refused(f.call("viewer", "GET", "/admin/v1/products/%00", ""), 404, "product-not-found")

	changes := f.changes("demo")
	require.Len(t, changes, 2)
	require.Equal(t, "product.put", changes[0]["action"])
	require.Equal(t, 5.0, changes[0]["before"].(map[string]any)["stock"])
	require.Equal(t, 6.0, changes[0]["after"].(map[string]any)["stock"])
}

func TestADeadEventIsShownAndRequeuedOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	ids := []int64{f.deadEntry(), f.deadEntry(), f.deadEntry()}
	a := f.call("viewer", "GET", "/admin/v1/outbox?limit=2", "")
	require.Equal(t, 200, a.status, "%v", a.body)
	entries := a.body["entries"].([]any)
	require.Len(t, entries, 2)
	require.Equal(t, float64(ids[1]), a.body["next"])
	require.Equal(t, "wrong type", entries[0].(map[string]any)["lastError"])
	require.NotContains(t, fmt.Sprint(entries), "bob", "members are not shown")
	a = f.call("viewer", "GET", fmt.Sprintf("/admin/v1/outbox?limit=2&after=%d", ids[1]), "")
	require.Len(t, a.body["entries"], 1)
	require.Nil(t, a.body["next"])

	path := fmt.Sprintf("/admin/v1/outbox/00%d/requeue", ids[1])
	require.Equal(t, 204, f.call("operator", "POST", path, "").status)
	f.refused(f.call("operator", "POST", path, ""), 409, "conflict")
	f.refused(f.call("operator", "POST", "/admin/v1/outbox/0/requeue", ""), 404, "not-found")
	require.Len(t, f.call("viewer", "GET", "/admin/v1/outbox?status=pending", "").body["entries"], 1)
	require.Len(t, f.call("viewer", "GET", "/admin/v1/outbox", "").body["entries"], 2)
	require.Equal(t, []any{}, f.call("viewer", "GET", "/admin/v1/outbox?status=done", "").body["entries"])
	f.refused(f.call("viewer", "GET", "/admin/v1/outbox?status=lost", ""), 400, "bad-request")

	changes := f.changes(fmt.Sprintf("outbox/%d", ids[1]))
	require.Len(t, changes, 1)
	require.Equal(t, []any{"outbox.requeue", "olaf", fmt.Sprint("outbox/", ids[1])}, []any{changes[0]["action"], changes[0]["actor"], changes[0]["target"]})
	require.Equal(t, "dead", changes[0]["before"].(map[string]any)["status"])
	require.Equal(t, "pending", changes[0]["after"].(map[string]any)["status"])
}

// One canary token goes through good and bad calls, and then is in no log.
func TestNoTokenIsEverLogged(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	require.Equal(t, 200, f.call("admin", "POST", "/admin/v1/rooms/sale/pause", "").status)
	f.serve(broken{f.store, errors.New("fault")}, f.redis)
	f.refused(f.call("admin", "GET", "/admin/v1/rooms/sale", ""), 500, "internal")
	// The line of a change is written after its answer.
	harness.Eventually(t, 5*time.Second, "the change is logged", func() bool { return strings.Contains(f.log.String(), "operator made a change") })
	text := f.log.String()
	require.Contains(t, text, "fault")
	for _, token := range f.tokens {
		require.NotContains(t, text, token)
		require.NotContains(t, text, fmt.Sprintf("%x", sha256.Sum256([]byte(token))))
	}
}

func TestTokensAreReadWithAllTheirErrorsAtOnce(t *testing.T) {
	t.Parallel()
	hash := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	secret := "a-token-pasted-by-mistake"
	_, err := admin.ParseTokens("ann:boss:" + hash("a") + "," + secret + ", :admin:" + secret + ",bob:viewer:" + hash("b") +
		",bob:admin:" + hash("c") + ",eve:admin:" + hash("b"))
	require.Error(t, err)
	for _, want := range []string{"token 1: the role must be", "token 2: must be name:role:sha256hex", "token 3: the name must", "64 hexadecimal",
		"token 5: the name bob is there twice", "token 6: the token of eve is that of bob"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), secret)
	require.NotContains(t, err.Error(), "token 4")

	_, err = admin.ParseTokens("ann:admin:" + hash(""))
	require.ErrorContains(t, err, "the token was empty where it was made")
	none, err := admin.ParseTokens(" ")
	require.NoError(t, err)
	require.NotNil(t, none)
}

func TestANewTokenIsLongRandomAndFitsItsEntry(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		token, line, err := admin.NewToken("ann", admin.Operator)
		require.NoError(t, err)
		require.Len(t, token, 43)
		require.False(t, seen[token])
		seen[token] = true
		require.Equal(t, fmt.Sprintf("ann:operator:%x", sha256.Sum256([]byte(token))), line)
		tokens, err := admin.ParseTokens(line)
		require.NoError(t, err)
		var text strings.Builder
		slog.New(slog.NewTextHandler(&text, nil)).Info("read tokens", "tokens", tokens)
		require.Contains(t, text.String(), "1 tokens")
		require.NotContains(t, text.String(), strings.Split(line, ":")[2])
	}
	_, _, err := admin.NewToken("a:b", admin.Admin)
	require.Error(t, err)
	_, _, err = admin.NewToken("ann", 0)
	require.Error(t, err)
}

func TestWithoutTokensNobodyGetsIn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, list := range []string{"", " "} {
		tokens, err := admin.ParseTokens(list)
		require.NoError(t, err)
		h := admin.New(admin.Options{Store: f.store, Lines: f.redis, Tokens: tokens, Log: slog.New(slog.DiscardHandler)})
		for _, credential := range []string{"", "Bearer ", "Bearer x"} {
			require.Equal(t, 401, serveOnce(h, credential))
		}
	}
	h := admin.New(admin.Options{Store: f.store, Lines: f.redis, Log: slog.New(slog.DiscardHandler)})
	require.Equal(t, 401, serveOnce(h, "Bearer x"))
}
