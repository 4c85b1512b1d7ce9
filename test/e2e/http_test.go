package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/queue"
)

func TestMemberNamesCountFromTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trusting := w.start(proxied...)
	wary := w.start("LINEKEEPER_IDENTITY=header", "LINEKEEPER_TRUSTED_PROXIES=10.0.0.0/8")
	anonymous := w.start()
	w.open(settings{"paused": true})
	ann := w.member("ann")
	ann.enter(wary).is(401, "unauthorized")
	h := http.Header{"X-Member-Id": {"ann"}, "X-Forwarded-For": {"10.1.2.3"}}
	w.ask("POST", wary.public+"/v1/rooms/"+room+"/entries", h, "").is(401, "unauthorized")
	require.Zero(t, w.snapshot().Counters["entered"])

	place := ann.enter(trusting).is(201).position()
	require.Equal(t, *place.Score, *w.member("ann").enter(trusting).is(200).position().Score, "the name alone is the member")
	w.member("").enter(trusting).is(401, "unauthorized")
	thief := w.member("eve")
	thief.ticket = ann.ticket
	thief.poll(trusting).is(401, "ticket-invalid")
	thief.leave(trusting).is(401, "ticket-invalid")
	require.Equal(t, queue.NotEntered, w.member("eve").poll(trusting).is(200).position().Status)
	ann.poll(wary).is(401, "unauthorized")
	// Where members are anonymous, a name is nothing.
	require.NotEqual(t, *place.Score, *w.member("ann").enter(anonymous).is(201).position().Score)

	w.do("resume")
	ann.until(trusting, queue.Ready)
	thief = w.member("eve")
	thief.token = ann.token
	thief.order(trusting, "demo", 1).is(401, "entry-token-invalid")
	made := ann.order(trusting, "demo", 1).is(201).order()
	require.Equal(t, "ann", made.Member)
	w.member("eve").orderByID(trusting, made.ID).is(404, "order-not-found")
	w.member("ann").orderByID(trusting, made.ID).is(200)
}

func TestRequestIDIsEchoedWhereItIsSane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start()
	w.open(nil)
	for id, echoed := range map[string]bool{"trace-1.a_B": true, "no spaces": false, strings.Repeat("x", 65): false, `"quoted"`: false} {
		for _, path := range []string{"/v1/rooms/" + room, "/v1/rooms/none", "/nowhere", "/livez"} {
			got := w.ask("GET", a.public+path, http.Header{"X-Request-Id": {id}}, "")
			require.NoError(t, got.err)
			require.Equal(t, echoed, got.header.Get("X-Request-Id") == id, "%s %q", path, id)
			if got.code() != "" {
				require.Equal(t, got.header.Get("X-Request-Id"), decoded[problem.Problem](got).RequestID)
			}
		}
	}
}

func TestBodiesThatAreNotAsDocumentedAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start()
	w.open(settings{"batchSize": 1})
	ann := w.shopper()
	ann.admitted(a)
	enter := a.public + "/v1/rooms/" + room + "/entries"
	good := orderOf("demo", 1)
	jsonType, formType := "application/json", "application/x-www-form-urlencoded"
	entered := w.snapshot().Counters["entered"]
	for _, c := range []struct {
		what, kind, body string
		status           int
		code             string
	}{
		{"unknown field", jsonType, `{"items":[{"sku":"demo","quantity":1}],"memberId":"eve"}`, 400, "bad-request"},
		{"field twice", jsonType, `{"items":[],"items":[{"sku":"demo","quantity":1}]}`, 400, "bad-request"},
		{"trailing data", jsonType, good + good, 400, "bad-request"},
		{"not JSON", jsonType, `items=1`, 400, "bad-request"},
		{"oversize", jsonType, `{"items":[` + strings.Repeat(" ", 17<<10) + `]}`, 413, "body-too-large"},
		{"wrong type", formType, good, 415, "unsupported-media-type"},
		{"number as text", jsonType, `{"items":[{"sku":"demo","quantity":"1"}]}`, 400, "bad-request"},
		{"no items", jsonType, `{"items":[]}`, 422, "invalid-order"},
		{"unknown product", jsonType, orderOf("none", 1), 422, "invalid-order"},
		{"negative quantity", jsonType, orderOf("demo", -1), 422, "invalid-order"},
	} {
		h := http.Header{"X-Entry-Token": {ann.token}, "Content-Type": {c.kind}}
		got := w.ask("POST", a.public+"/v1/orders", h, c.body)
		require.Equal(t, c.status, got.status, "%s: %s", c.what, got.body)
		got.is(c.status, c.code)
	}
	for _, c := range []struct {
		kind, body string
		status     int
		code       string
	}{
		{jsonType, `{"memberId":"eve"}`, 400, "bad-request"},
		{jsonType, `{"score":0}`, 400, "bad-request"},
		{jsonType, `{"a":"` + strings.Repeat("x", 17<<10) + `"}`, 413, "body-too-large"},
		{formType, `a=b`, 415, "unsupported-media-type"},
	} {
		w.ask("POST", enter, http.Header{"Content-Type": {c.kind}}, c.body).is(c.status, c.code)
	}
	require.Equal(t, entered, w.snapshot().Counters["entered"], "a refused request made a place")
	require.Zero(t, w.placed())

	// Nothing is as good as an empty object, with a length or without.
	w.ask("POST", enter, nil, "").is(201)
	w.ask("POST", enter, nil, "{}").is(201)
	chunked, err := http.NewRequestWithContext(t.Context(), "POST", enter, io.MultiReader(strings.NewReader("")))
	require.NoError(t, err)
	require.EqualValues(t, 0, chunked.ContentLength, "without a known length it is sent in chunks")
	chunked.TransferEncoding = []string{"chunked"}
	w.send(chunked).is(201)
	ann.order(a, "demo", 1).is(201)
}

func TestCookieIsAsGoodAsTheTicketItHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"paused": true})
	got := w.shopper().enter(a).is(201)
	cookie, err := http.ParseSetCookie(got.header.Get("Set-Cookie"))
	require.NoError(t, err)
	require.Equal(t, "__Host-linekeeper_"+room, cookie.Name)
	require.True(t, cookie.Secure && cookie.HttpOnly)
	shown := http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}}
	path := b.public + "/v1/rooms/" + room + "/entries"
	require.Equal(t, *got.position().Score, *w.ask("GET", path+"/me", shown, "").is(200).position().Score)
	require.Equal(t, *got.position().Score, *w.ask("POST", path, shown, "").is(200).position().Score)
}
