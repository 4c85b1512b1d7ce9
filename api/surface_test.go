package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
)

// raw sends bytes as they are, on a connection of its own, and reads the one
// answer to a request of that method.
func (s *site) raw(method, text string) answer {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(s.t, err)
	defer c.Close()
	require.NoError(s.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(c, text)
	require.NoError(s.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	require.NoError(s.t, err, "%.200s", text)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{s.t, resp.StatusCode, resp.Header, body}
}

// kept are the routes whose answers a cache may keep, and for how long. All else
// is no-store.
var kept = map[string]string{
	"/v1/rooms/{room}": "public, max-age=1", "/v1/rooms/{room}/draw": "public, max-age=1", "/v1/rooms/{room}/draw/entrants": "public, max-age=3600",
	"/openapi.yaml": "public, max-age=300", "/problems/{slug}": "public, max-age=3600", "/.well-known/jwks.json": "public, max-age=300",
}

// What a cache may keep is the same for everybody; what is one member's, no cache
// keeps, whoever asks and however it ends.
func TestWhatACacheMayKeepIsTheSameForEverybody(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine, entry := f.ready()
	shown := []with{ticket(mine), token(entry), cookie("linekeeper_"+f.room, mine), header("Authorization", "Bearer "+mine)}
	site := f.serve()
	routes := 0
	err := chi.Walk(site.api.Handler(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes++
		path := strings.NewReplacer("{room}", f.room, "{slug}", "room-full", "{file}", "favicon-32x32.png", "{id}", "none").Replace(pattern)
		stranger, member := site.call(method, path), site.call(method, path, shown...)
		for who, a := range map[string]answer{"a stranger": stranger, "the member": member} {
			if want, may := kept[pattern]; may && a.status == http.StatusOK {
				require.Equal(t, want, a.header.Get("Cache-Control"), "%s %s for %s", method, pattern, who)
				require.Empty(t, a.header.Values("Set-Cookie"), "%s %s", method, pattern)
				continue
			}
			require.Equal(t, "no-store", a.header.Get("Cache-Control"), "%s %s for %s: %s", method, pattern, who, a.body)
		}
		if _, may := kept[pattern]; may {
			require.Equal(t, stranger.status, member.status)
			require.Equal(t, withoutTime(stranger.body), withoutTime(member.body), "%s %s differs by who asks", method, pattern)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, routes, 12)
	require.Equal(t, "no-store", site.call("GET", "/nowhere").header.Get("Cache-Control"))
	require.Equal(t, "no-store", site.call("PUT", "/v1/orders").header.Get("Cache-Control"))
}

// withoutTime leaves out what differs each time.
func withoutTime(body []byte) string {
	text := string(body)
	for _, name := range []string{`"serverTime":"`, `"requestId":"`} {
		if at := strings.Index(text, name); at >= 0 {
			end := strings.IndexByte(text[at+len(name):], '"')
			text = text[:at] + text[at+len(name)+end:]
		}
	}
	return text
}

// spellings are requests that something between a client and us, or we, might
// take for POST /v1/orders.
func spellings() (method, target, version []string) {
	add := func(m, p, v string) {
		method, target, version = append(method, m), append(target, p), append(version, v)
	}
	for _, p := range []string{"/v1/orders", "/V1/ORDERS", "/v1/ORDERS", "//v1/orders", "/v1//orders", "/v1/orders/", "/v1/orders//", "/v1%2forders", "/%76%31/orders",
		"/v1/%6frders", "/v1/./orders", "/v1/../v1/orders", "/x/../v1/orders", "/v1/orders;a=b", "/v1/orders%00", "/v1/orders%20", "/v1/orders?", "/v1/orders?_method=POST",
		"/v1/orders#x", "/v1/orders.json", `/v1\orders`, "/v1/orders/../orders", "http://other.example/v1/orders", "/admin/v1/orders", "/v1/rooms/../orders", "/v1/orders/%2e"} {
		for _, m := range []string{"POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "PROPFIND"} {
			add(m, p, "1.1")
		}
		add("POST", p, "1.0")
	}
	return method, target, version
}

func spelled(method, target, version, headers string) string {
	const order = `{"items":[{"sku":"a","quantity":1}]}`
	return fmt.Sprintf("%s %s HTTP/%s\r\nHost: shop\r\nConnection: close\r\n%sX-HTTP-Method-Override: POST\r\nX-HTTP-Method: POST\r\nX-Original-URL: /v1/orders\r\n"+
		"X-Rewrite-URL: /v1/orders\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, target, version, headers, len(order), order)
}

// However a path is written, and by whatever method, there is no order without a
// token; and with one there is one order, through a claim.
func TestNoSpellingOfARequestOrdersWithoutAToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine, entry := f.ready()
	site := f.serve()
	methods, targets, versions := spellings()
	placed := func() (n int) {
		require.NoError(t, f.db.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&n))
		return n
	}
	before := f.dump()
	for i := range methods {
		a := site.raw(methods[i], spelled(methods[i], targets[i], versions[i], "X-Queue-Ticket: "+mine+"\r\n"))
		require.True(t, a.status >= 400, "%s %s HTTP/%s: %d %s", methods[i], targets[i], versions[i], a.status, a.body)
	}
	require.Zero(t, placed(), "an order without a token")
	require.Equal(t, before, f.dump(), "a request without a token has changed the room")

	granted := 0
	for i := range methods {
		a := site.raw(methods[i], spelled(methods[i], targets[i], versions[i], "X-Entry-Token: "+entry+"\r\n"))
		if a.status < 300 {
			granted++
			require.Equal(t, "POST", methods[i], "only POST orders, not %s %s", methods[i], targets[i])
		}
	}
	require.Equal(t, 1, placed(), "one token is one order, however often and however it is asked for")
	require.Greater(t, granted, 1, "the plain path with the token is the order")
	claims, err := f.rdb.ZCard(t.Context(), f.key("claimed")).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, claims, "the order came through a claim of the token's grant")
}

// unsane are texts that would begin a new line, or a new header, where they are
// not escaped.
var unsane = []string{"a\r\nSet-Cookie: x=1", "a\nb", "a\rb", "a\x00b", "a\u2028b", "a\x1b[31mb", "a\u0085b", "a\u202eb", `a"b`, "a b", strings.Repeat("a", 300)}

// capture is a log that can be read while it is written.
type capture struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func TestWhatIsNotSaneIsRefusedAndForgesNoLineAndNoHeader(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	log := &capture{}
	broken := errors.New("broken\r\n{\"level\":\"ERROR\",\"msg\":\"forged\"}")
	site := f.serve(func(o *api.Options) {
		o.Log, o.OrderBook = slog.New(slog.NewJSONHandler(log, nil)), brokenBook{broken}
		named("127.0.0.0/8")(o)
	})
	entered := f.dump()
	for i, text := range unsane {
		// The first is two headers on the wire, and the one with a quote a name.
		for _, name := range []string{"X-Member-Id", "Idempotency-Key", "X-Member-Lane", "X-Request-Id"} {
			if strings.ContainsAny(text, `:"`) {
				continue
			}
			a := site.raw("POST", "POST "+site.entries+" HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n"+name+": "+text+"\r\nContent-Length: 0\r\n\r\n")
			require.Empty(t, a.header.Values("Set-Cookie"), "%s: %q", name, text)
			require.True(t, a.status == 400 || a.status == 401, "%s: %q was answered %d", name, text, a.status)
			require.Regexp(t, `^[A-Z2-7]*$`, a.header.Get("X-Request-Id"), "one of ours, or none")
		}
		site.call("GET", "/v1/rooms/"+percent(text)).refused(http.StatusNotFound, "room-not-found")
		a := site.call("GET", "/v1/orders/"+percent(text), header("X-Member-Id", "ann")).refused(http.StatusInternalServerError, "internal")
		require.NotContains(t, string(a.body), "forged")
		require.Equal(t, i+1, strings.Count(log.String(), "\n"), "one line for one failure, whatever its path")
	}
	require.Equal(t, entered, f.dump(), "somebody has entered")
	require.NotContains(t, log.String(), "\x1b")
	require.NotContains(t, log.String(), `"msg":"forged"`)
}

func percent(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

// A replay is the order and nothing else: no token can be had from it.
func TestAReplayHoldsNoCredential(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine, entry := f.ready()
	first := f.order(oneA, token(entry), key("k")).is(http.StatusCreated)
	again := f.order(oneA, token(entry), key("k")).is(http.StatusOK)
	require.Equal(t, first.body, again.body)
	var stored string
	require.NoError(t, f.db.QueryRow(t.Context(), "SELECT string_agg(o::text, ' ') || (SELECT string_agg(x::text, ' ') FROM outbox x) FROM orders o").Scan(&stored))
	for _, text := range []string{string(again.body), fmt.Sprint(again.header), stored} {
		for _, secret := range []string{entry, mine, entry[strings.LastIndexByte(entry, '.')+1:]} {
			require.NotContains(t, text, secret)
		}
	}
}

// brokenBook fails every reading of an order.
type brokenBook struct{ err error }

func (b brokenBook) ByID(context.Context, string) (order.Order, error) { return order.Order{}, b.err }
func (b brokenBook) Void(context.Context, queue.Grant) (order.Order, error) {
	return order.Order{}, b.err
}
