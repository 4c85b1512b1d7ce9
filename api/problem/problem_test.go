package problem_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/problem"
)

// statuses is the contract with clients, kept apart from the table on purpose:
// a changed status must be changed twice.
var statuses = map[string]int{
	"bad-request": 400, "body-too-large": 413, "unsupported-media-type": 415, "not-found": 404,
	"method-not-allowed": 405, "unauthorized": 401, "forbidden": 403,
	"room-not-open": 403, "room-closed": 403, "room-sold-out": 403, "member-blocked": 403, "room-not-found": 404,
	"proof-of-work-invalid": 403, "challenge-failed": 403, "not-invited": 403, "access-code-refused": 403,
	"draw-not-found": 404, "draw-not-over": 409, "not-drawn": 404,
	"already-ordered": 409, "rate-limited": 429, "room-full": 429, "poll-too-fast": 429, "ticket-invalid": 401,
	"order-in-progress": 409, "entry-token-missing": 401, "entry-token-invalid": 401, "entry-token-consumed": 409,
	"sold-out": 409, "invalid-order": 422, "idempotency-mismatch": 422, "order-limit": 429,
	"order-outcome-unknown": 503, "order-not-found": 404, "unavailable": 503, "internal": 500,
	"precondition-required": 428, "precondition-failed": 412, "invalid-settings": 422,
	"confirmation-required": 422, "room-exists": 409, "product-not-found": 404, "conflict": 409,
}

// written is what a client sees of p.
func written(t *testing.T, p problem.Problem) (*http.Response, map[string]any) {
	t.Helper()
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/v1/rooms/a%20b?secret=1", nil)
	r.Header.Set("X-Request-Id", "req-1")
	problem.RequestIDs(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"7"`)
		problem.Write(w, r, p)
	})).ServeHTTP(rec, r)
	var body map[string]any
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &body))
	return rec.Result(), body
}

func TestEveryCodeHasTheStatusThatClientsWereTold(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	for _, code := range problem.Codes() {
		require.NotContains(t, got, code, "each code stands in the table once")
		got[code] = problem.New(code).Status
	}
	require.Empty(t, cmp.Diff(statuses, got))
}

func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	titles := map[string]string{}
	for _, code := range problem.Codes() {
		p := problem.New(code)
		require.Regexp(t, slug, code)
		require.Equal(t, code, p.Code)
		require.Equal(t, "/problems/"+code, p.Type)
		require.NotEmpty(t, p.Detail, code)
		require.False(t, strings.HasSuffix(p.Title, "."), "%s: a title is no sentence", code)
		require.Empty(t, titles[p.Title], "%s: titles tell codes apart", code)
		titles[p.Title] = code
	}
}

func TestAnUnknownCodePanics(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { problem.New("nope") })
	_, ok := problem.Lookup("nope")
	require.False(t, ok)
}

func TestWriteMakesARFC9457Document(t *testing.T) {
	t.Parallel()
	p := problem.New("invalid-order").WithDetail("No such product: x.").
		WithErrors(problem.FieldError{Field: "items[0].sku", Detail: "unknown"})
	res, body := written(t, p)

	require.Equal(t, 422, res.StatusCode)
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	require.Empty(t, res.Header.Get("ETag"), "the resource's validator is not the problem's")
	require.NotContains(t, res.Header, "Retry-After")
	require.NotContains(t, res.Header, "Www-Authenticate")
	require.Empty(t, cmp.Diff(map[string]any{
		"type": "/problems/invalid-order", "title": "The order cannot be taken as it is", "status": 422.0,
		"detail": "No such product: x.", "instance": "/v1/rooms/a%20b", "code": "invalid-order",
		"requestId": "req-1", "retryAfterSeconds": nil,
		"errors": []any{map[string]any{"field": "items[0].sku", "detail": "unknown"}},
	}, body))
}

func TestErrorsAreLeftOutWhereThereAreNone(t *testing.T) {
	t.Parallel()
	_, body := written(t, problem.New("internal"))
	require.NotContains(t, body, "errors")
}

func TestRetryAfterIsRoundedUpToWholeSeconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "1", 0: "1", time.Millisecond: "1", time.Second: "1",
		time.Second + 1: "2", 90 * time.Second: "90",
	} {
		res, body := written(t, problem.New("room-full").WithRetryAfter(d))
		require.Equal(t, want, res.Header.Get("Retry-After"), d)
		require.Equal(t, want, jsonNumber(t, body["retryAfterSeconds"]), d)
	}
}

func jsonNumber(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestEvery401CarriesAChallenge(t *testing.T) {
	t.Parallel()
	for _, code := range problem.Codes() {
		res, _ := written(t, problem.New(code))
		if res.StatusCode == http.StatusUnauthorized {
			require.NotEmpty(t, res.Header.Get("WWW-Authenticate"), code)
		} else {
			require.Empty(t, res.Header.Get("WWW-Authenticate"), code)
		}
	}
}

func TestProblemsAreValues(t *testing.T) {
	t.Parallel()
	base := problem.New("room-full")
	base.WithDetail("x").WithRetryAfter(time.Second).WithErrors(problem.FieldError{})
	require.Empty(t, cmp.Diff(problem.New("room-full"), base), "a shared problem must not change under another request")
}

func TestRequestIDsAreTakenOverOnlyIfSane(t *testing.T) {
	t.Parallel()
	for id, taken := range map[string]bool{
		"a": true, "A-9._z": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a\u2028b": false, "a\"b": false,
		"a\x1b[31m": false, "a/b": false, "a{": false, "a:": false, "[": false, "`": false, "@": false,
	} {
		var seen string
		h := problem.RequestIDs(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = problem.RequestID(r) }))
		rec, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Request-Id", id)
		h.ServeHTTP(rec, r)
		require.Equal(t, taken, seen == id, "%q", id)
		require.Regexp(t, `^[A-Za-z0-9._-]{1,64}$`, seen)
		require.Equal(t, seen, rec.Header().Get("X-Request-Id"), "the client is told the id that the log has")
	}
}

func TestMadeRequestIDsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	h := problem.RequestIDs(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen[problem.RequestID(r)] = true }))
	for range 100 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	require.Len(t, seen, 100)
}

func TestARequestOutsideTheMiddlewareHasNoID(t *testing.T) {
	t.Parallel()
	require.Empty(t, problem.RequestID(httptest.NewRequest(http.MethodGet, "/", nil)))
}
