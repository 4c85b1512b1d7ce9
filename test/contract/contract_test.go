package contract_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/contract"
)

// exchange is one answer that a test bends until it is wrong.
type exchange struct {
	method, path string
	request      string // body; sent as JSON if there is one
	requestType  string
	status       int
	header       map[string]string
	body         map[string]any
	raw          string // in place of body
}

func (e exchange) verify(t *testing.T, c *contract.Contract) error {
	t.Helper()
	var sent io.Reader
	if e.request != "" {
		sent = strings.NewReader(e.request)
	}
	req, err := http.NewRequestWithContext(t.Context(), e.method, "http://linekeeper"+e.path, sent)
	require.NoError(t, err)
	if e.request != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if e.requestType != "" {
		req.Header.Set("Content-Type", e.requestType)
	}
	resp := &http.Response{StatusCode: e.status, Header: http.Header{}}
	for k, v := range e.header {
		resp.Header.Set(k, v)
	}
	body := []byte(e.raw)
	if e.body != nil {
		body, err = json.Marshal(e.body)
		require.NoError(t, err)
	}
	return c.Verify(req, resp, body)
}

func headers(more ...string) map[string]string {
	h := map[string]string{"X-Request-Id": "r1", "Cache-Control": "no-store", "Content-Type": "application/json"}
	for i := 0; i < len(more); i += 2 {
		h[more[i]] = more[i+1]
	}
	return h
}

func polled() exchange {
	return exchange{
		method: "GET", path: "/v1/rooms/default/entries/me", status: 200,
		header: headers("Retry-After", "1"),
		body: map[string]any{
			"room": "default", "roomState": "OPEN", "status": "WAITING", "rank": 0, "score": 1764500000000000,
			"currentTotalWaitingCount": 1, "estimatedWaitSeconds": nil, "estimatedWaitRange": []int{1, 3},
			"pollingIntervalSeconds": 1, "nextPollAfterMs": 900, "entryToken": nil, "entryTokenExpiresAt": nil,
			"orderId": nil, "enteredAt": "2025-11-30T10:53:20.000001Z", "lane": "standard", "lifted": nil, "overtakable": nil,
			"lastOutcome": nil, "message": map[string]string{"en": "hello"}, "queueTicket": nil, "mustShow": nil, "serverTime": "2025-11-30T10:53:21Z",
		},
	}
}

func refused() exchange {
	return exchange{
		method: "POST", path: "/v1/rooms/default/entries", status: 429,
		header: headers("Content-Type", "application/problem+json", "Retry-After", "5"),
		body: map[string]any{
			"type": "/problems/room-full", "title": "The room is full", "status": 429, "detail": "Full.",
			"instance": "/v1/rooms/default/entries", "code": "room-full", "requestId": "r1", "retryAfterSeconds": 5,
		},
	}
}

func ordered() exchange {
	return exchange{
		method: "POST", path: "/v1/orders", status: 201, header: headers("Location", "/v1/orders/x"),
		request: `{"items":[{"sku":"demo","quantity":1}]}`,
		body: map[string]any{
			"id": "0197c1d2-0000-7000-8000-000000000000", "room": "default", "member": "m",
			"items":      []any{map[string]any{"sku": "demo", "quantity": 1}},
			"totalCents": 100, "currency": "EUR", "createdAt": "2025-11-30T10:53:21.123456Z",
		},
	}
}

func left() exchange {
	return exchange{method: "DELETE", path: "/v1/rooms/default/entries/me", status: 204,
		header: map[string]string{"X-Request-Id": "r1", "Cache-Control": "no-store"}}
}

func TestDocumentedExchangesPass(t *testing.T) {
	t.Parallel()
	c := contract.Load(t)
	page := exchange{method: "GET", path: "/problems/room-full", status: 200,
		header: headers("Content-Type", "text/html; charset=utf-8"), raw: "<!doctype html>"}
	patched := exchange{method: "PATCH", path: "/admin/v1/rooms/default", status: 412, requestType: "application/merge-patch+json",
		request: `{"opensAt":null}`, header: headers("Content-Type", "application/problem+json"),
		body: map[string]any{"type": "/problems/precondition-failed", "title": "It has been changed in the meantime", "status": 412,
			"detail": "x", "instance": "/admin/v1/rooms/default", "code": "precondition-failed", "requestId": "r1", "retryAfterSeconds": nil}}
	for name, e := range map[string]exchange{
		"poll": polled(), "refusal": refused(), "order": ordered(), "leave": left(), "page": page, "patch": patched,
	} {
		require.NoError(t, e.verify(t, c), name)
	}
}

func TestDeviationsAreFlagged(t *testing.T) {
	t.Parallel()
	c := contract.Load(t)
	for _, d := range []struct {
		name string
		from func() exchange
		bend func(e *exchange)
		want string
	}{
		{"wrong status", polled, func(e *exchange) { e.status = 418 }, "status is not documented"},
		{"status of another route", refused, func(e *exchange) { e.status = 422 }, "status is not documented"},
		{"missing field", polled, func(e *exchange) { delete(e.body, "lifted") }, "lifted"},
		{"extra field", polled, func(e *exchange) { e.body["extra"] = 1 }, "extra"},
		{"extra nested field", ordered, func(e *exchange) {
			e.body["items"] = []any{map[string]any{"sku": "demo", "quantity": 1, "price": 1}}
		}, "price"},
		{"wrong type", polled, func(e *exchange) { e.body["rank"] = "0" }, "rank"},
		{"null where none may be", polled, func(e *exchange) { e.body["nextPollAfterMs"] = nil }, "nextPollAfterMs"},
		{"fraction", polled, func(e *exchange) { e.body["rank"] = 0.5 }, "rank"},
		{"score above 2^53", polled, func(e *exchange) { e.body["score"] = int64(1<<53 + 1) }, "score"},
		{"unknown word", polled, func(e *exchange) { e.body["status"] = "AWAY" }, "status"},
		{"unknown outcome", polled, func(e *exchange) { e.body["lastOutcome"] = "GONE" }, "lastOutcome"},
		{"no time", polled, func(e *exchange) { e.body["serverTime"] = "yesterday" }, "serverTime"},
		{"range of one", polled, func(e *exchange) { e.body["estimatedWaitRange"] = []int{1} }, "estimatedWaitRange"},
		{"waiting with a token", polled, func(e *exchange) { e.body["entryToken"] = "t" }, "entryToken"},
		{"waiting without a place", polled, func(e *exchange) { e.body["score"] = nil }, "score"},
		{"ready without a token", polled, func(e *exchange) { e.body["status"] = "READY" }, "entryToken"},
		{"consumed without an order", polled, func(e *exchange) { e.body["status"] = "CONSUMED" }, "orderId"},
		{"not entered with a rank", polled, func(e *exchange) { e.body["status"] = "NOT_ENTERED" }, "rank"},
		{"waiting with an outcome", polled, func(e *exchange) { e.body["lastOutcome"] = "LEFT" }, "lastOutcome"},
		{"not JSON", polled, func(e *exchange) { e.body, e.raw = nil, "{" }, "EOF"},
		{"two values", ordered, func(e *exchange) { e.body, e.raw = nil, "{}{}" }, "after the JSON value"},
		{"wrong content type", polled, func(e *exchange) { e.header["Content-Type"] = "text/plain" }, "Content-Type"},
		{"no content type", polled, func(e *exchange) { delete(e.header, "Content-Type") }, "Content-Type"},
		{"problem as plain JSON", refused, func(e *exchange) { e.header["Content-Type"] = "application/json" }, "Content-Type"},
		{"other charset", polled, func(e *exchange) { e.header["Content-Type"] = "application/json; charset=latin1" }, "charset"},
		{"missing header", polled, func(e *exchange) { delete(e.header, "Retry-After") }, "Retry-After"},
		{"bad header", polled, func(e *exchange) { e.header["Retry-After"] = "0.5" }, "Retry-After"},
		{"cacheable", polled, func(e *exchange) { e.header["Cache-Control"] = "public" }, "Cache-Control"},
		{"no request id", left, func(e *exchange) { delete(e.header, "X-Request-Id") }, "X-Request-Id"},
		{"replay without its header", ordered, func(e *exchange) { e.status = 200 }, "Idempotency-Replayed"},
		{"body of a 204", left, func(e *exchange) { e.raw = "x" }, "body is not documented"},
		{"unknown code", refused, func(e *exchange) { e.body["code"] = "nope" }, "code"},
		{"code of another status", refused, func(e *exchange) { e.body["code"] = "room-closed" }, "code"},
		{"type of another code", refused, func(e *exchange) { e.body["type"] = "/problems/internal" }, "type"},
		{"title of its own", refused, func(e *exchange) { e.body["title"] = "Full" }, "title"},
		{"status not that of HTTP", refused, func(e *exchange) { e.body["status"] = 503 }, "status"},
		{"other instance", refused, func(e *exchange) { e.body["instance"] = "/" }, "instance"},
		{"other request id", refused, func(e *exchange) { e.body["requestId"] = "r2" }, "requestId"},
		{"other wait than the header's", refused, func(e *exchange) { e.body["retryAfterSeconds"] = 6 }, "retryAfterSeconds"},
		{"empty errors", refused, func(e *exchange) { e.body["errors"] = []any{} }, "errors"},
		{"granted bad body", ordered, func(e *exchange) { e.request = `{"items":[]}` }, "granted"},
		{"granted unknown field", ordered, func(e *exchange) { e.request = `{"items":[{"sku":"a","quantity":1}],"x":1}` }, "granted"},
		{"granted other type", ordered, func(e *exchange) { e.requestType = "text/plain" }, "granted"},
		{"granted body where none is", left, func(e *exchange) { e.request = "{}" }, "granted"},
		{"granted bad room", left, func(e *exchange) { e.path = "/v1/rooms/BAD/entries/me" }, "granted"},
	} {
		e := d.from()
		e.header, e.body = maps.Clone(e.header), maps.Clone(e.body)
		d.bend(&e)
		require.ErrorContains(t, e.verify(t, c), d.want, d.name)
	}
}

func TestAHeaderThatIsThereTwiceIsFlagged(t *testing.T) {
	t.Parallel()
	req := httptest.NewRequest(http.MethodDelete, "/v1/rooms/default/entries/me", nil)
	resp := &http.Response{StatusCode: 204, Header: http.Header{"X-Request-Id": {"r1"}, "Cache-Control": {"no-store", "no-store"}}}
	require.ErrorContains(t, contract.Load(t).Verify(req, resp, nil), "more than once")
}

func TestUndocumentedRoutesAreFlagged(t *testing.T) {
	t.Parallel()
	c := contract.Load(t)
	for _, d := range []struct {
		method, path, code string
		status             int
		allow              string
		want               string
	}{
		{"GET", "/v1/nothing", "not-found", 404, "", ""},
		{"GET", "/v1/orders/", "not-found", 404, "", ""},
		{"PUT", "/v1/orders", "method-not-allowed", 405, "POST", ""},
		{"GET", "/admin/v1/nothing", "unauthorized", 401, "", ""},
		{"GET", "/v1/nothing", "unauthorized", 401, "", "no such route"},
		{"PUT", "/v1/orders", "not-found", 404, "", "no such route"},
		{"GET", "/v1/nothing", "method-not-allowed", 405, "GET", "no such route"},
		{"PUT", "/v1/orders", "method-not-allowed", 405, "", "Allow"},
		{"GET", "/v1/nothing", "room-not-found", 404, "", "title"},
	} {
		e := exchange{method: d.method, path: d.path, status: d.status, header: headers("Content-Type", "application/problem+json"),
			body: map[string]any{"type": "/problems/" + d.code, "title": titles[d.code], "status": d.status, "detail": "x",
				"instance": d.path, "code": d.code, "requestId": "r1", "retryAfterSeconds": nil}}
		if d.allow != "" {
			e.header["Allow"] = d.allow
		}
		name := fmt.Sprintf("%s %s %s", d.method, d.path, d.code)
		if d.want == "" {
			require.NoError(t, e.verify(t, c), name)
		} else {
			require.ErrorContains(t, e.verify(t, c), d.want, name)
		}
	}
	granted := exchange{method: "POST", path: "/v1/secret", status: 200, header: headers(), body: map[string]any{}}
	require.ErrorContains(t, granted.verify(t, c), "no such route")
	plainText := exchange{method: "GET", path: "/v1/nothing", status: 404, header: headers("Content-Type", "text/plain"), raw: "404 page not found"}
	require.ErrorContains(t, plainText.verify(t, c), "Content-Type")
	nameless := exchange{method: "GET", path: "/v1/nothing", status: 404, header: map[string]string{}}
	require.ErrorContains(t, nameless.verify(t, c), "X-Request-Id")
}

var titles = map[string]string{
	"not-found": "There is nothing here", "method-not-allowed": "The method is not allowed here",
	"unauthorized": "Who you are could not be verified",
}

// recorder stands in for a test that is expected to fail.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestTheTransportChecksEveryAnswerAndPassesItOn(t *testing.T) {
	t.Parallel()
	answer := ordered()
	received := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received = string(body)
		for k, v := range answer.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(answer.status)
		_ = json.NewEncoder(w).Encode(answer.body)
	}))
	defer server.Close()
	tb := &recorder{TB: t}
	client := &http.Client{Transport: contract.Load(t).Transport(tb, http.DefaultTransport)}
	send := func(body string) string {
		resp, err := client.Post(server.URL+"/v1/orders", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(data)
	}

	require.Contains(t, send(answer.request), "totalCents", "the client gets the whole answer")
	require.Equal(t, answer.request, received, "the server gets the whole request")
	require.Empty(t, tb.failures)

	send(`{"items":[]}`)
	require.Len(t, tb.failures, 1, "what was granted is checked as well")
	delete(answer.body, "member")
	send(answer.request)
	require.Len(t, tb.failures, 2)
	require.Contains(t, tb.failures[1], "POST /v1/orders answered 201")
	require.Contains(t, tb.failures[1], "member")
}

func TestAnAnswerThatBreaksOffStaysBroken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	}))
	defer server.Close()
	tb := &recorder{TB: t}
	client := &http.Client{Transport: contract.Load(t).Transport(tb, http.DefaultTransport)}
	resp, err := client.Get(server.URL + "/livez")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "{", string(data))
	require.Empty(t, tb.failures, "half an answer is no breach of the contract")
}

func nothing(http.ResponseWriter, *http.Request) {}

// router serves all routes that in selects, as chi has them.
func router(c *contract.Contract, in func(contract.Route) bool) *chi.Mux {
	mux := chi.NewRouter()
	for _, r := range c.Routes() {
		if in(r) {
			mux.MethodFunc(r.Method, r.Pattern, nothing)
		}
	}
	return mux
}

func TestRoutesAreComparedInBothDirections(t *testing.T) {
	t.Parallel()
	c := contract.Load(t)
	for _, in := range []func(contract.Route) bool{contract.Public, contract.Admin, contract.Metrics} {
		require.NoError(t, c.Compare(router(c, in), in))
	}

	mux := router(c, contract.Public)
	mux.Get("/v1/secret", nothing)
	require.ErrorContains(t, c.Compare(mux, contract.Public), "GET /v1/secret is served and not documented")

	mux = router(c, contract.Public)
	mux.Get("/admin/v1/rooms", nothing)
	require.ErrorContains(t, c.Compare(mux, contract.Public), "GET /admin/v1/rooms is served and not documented here")

	missing := func(r contract.Route) bool { return contract.Public(r) && r.Pattern != "/v1/orders" }
	require.ErrorContains(t, c.Compare(router(c, missing), contract.Public), "POST /v1/orders is documented and not served")

	tb := &recorder{TB: t}
	c.CompareRoutes(tb, mux, contract.Public)
	require.Len(t, tb.failures, 1)
}

func TestPatternsOfChiAreReadAsThoseOfOpenAPI(t *testing.T) {
	t.Parallel()
	c := contract.Load(t)
	mux := chi.NewRouter()
	mux.Route("/admin/v1/products", func(r chi.Router) {
		r.Route("/{sku:[A-Za-z0-9]+}", func(r chi.Router) { r.Get("/", nothing); r.Put("/", nothing) })
	})
	products := func(r contract.Route) bool { return strings.Contains(r.Pattern, "/products") }
	require.NoError(t, c.Compare(mux, products))
}

func TestTheDocumentHasTheRoutesOfTheDesign(t *testing.T) {
	t.Parallel()
	var routes []string
	for _, r := range contract.Load(t).Routes() {
		routes = append(routes, r.Method+" "+r.Pattern)
	}
	require.Equal(t, []string{
		"GET /.well-known/jwks.json", "GET /admin/v1/audit", "GET /admin/v1/outbox", "POST /admin/v1/outbox/{id}/requeue",
		"GET /admin/v1/products/{sku}", "PUT /admin/v1/products/{sku}", "GET /admin/v1/profiles/{profile}",
		"GET /admin/v1/rooms", "POST /admin/v1/rooms",
		"DELETE /admin/v1/rooms/{room}", "GET /admin/v1/rooms/{room}", "PATCH /admin/v1/rooms/{room}",
		"GET /admin/v1/rooms/{room}/codes", "POST /admin/v1/rooms/{room}/codes", "POST /admin/v1/rooms/{room}/codes/revoke",
		"POST /admin/v1/rooms/{room}/drain", "POST /admin/v1/rooms/{room}/flush",
		"DELETE /admin/v1/rooms/{room}/members/{member}", "GET /admin/v1/rooms/{room}/members/{member}",
		"DELETE /admin/v1/rooms/{room}/members/{member}/block", "PUT /admin/v1/rooms/{room}/members/{member}/block",
		"POST /admin/v1/rooms/{room}/off",
		"POST /admin/v1/rooms/{room}/pause", "POST /admin/v1/rooms/{room}/release", "POST /admin/v1/rooms/{room}/resume", "GET /admin/v1/rooms/{room}/snapshot",
		"GET /docs", "GET /docs/{file}", "GET /livez", "GET /metrics", "GET /openapi.yaml", "GET /problems/{slug}", "GET /readyz",
		"POST /v1/orders", "GET /v1/orders/{id}",
		"GET /v1/rooms/{room}", "GET /v1/rooms/{room}/draw", "GET /v1/rooms/{room}/draw/entrants", "GET /v1/rooms/{room}/draw/proof",
		"POST /v1/rooms/{room}/entries",
		"DELETE /v1/rooms/{room}/entries/me", "GET /v1/rooms/{room}/entries/me",
	}, routes)
}

func BenchmarkVerify(b *testing.B) {
	c := contract.Load(b)
	e := polled()
	body, err := json.Marshal(e.body)
	require.NoError(b, err)
	req := httptest.NewRequest(e.method, e.path, nil)
	resp := &http.Response{StatusCode: e.status, Header: http.Header{}}
	for k, v := range e.header {
		resp.Header.Set(k, v)
	}
	for b.Loop() {
		require.NoError(b, c.Verify(req, resp, body))
	}
}
