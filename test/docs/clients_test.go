package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/test/contract"
	"github.com/linekeeper/linekeeper/test/harness"
)

// example is a client of docs/clients.md.
type example struct {
	heading, language, file string
	run                     []string
	everywhere              bool // on every machine that this is developed on
}

var examples = []example{
	{"## sh and curl", "sh", "buy.sh", []string{"sh", "buy.sh"}, true},
	{"## Go", "go", "buy.go", []string{"./buy"}, true},
	{"## JavaScript", "js", "buy.mjs", []string{"node", "buy.mjs"}, false},
	{"## Python", "python", "buy.py", []string{"python3", "buy.py"}, false},
}

// front stands between a client and the server, passes everything on, holds it
// against the contract, and does what networks and servers do at times.
type front struct {
	t        *testing.T
	server   string
	contract http.RoundTripper
	honest   bool // do nothing bad

	mu     sync.Mutex
	calls  map[string]int // by method and last part of the path
	pollAt time.Time      // not before
	ticket string         // the newest
}

// before is the fault in front of the nth call of a kind; false for none.
func (f *front) before(call string, n int) (problem.Problem, bool) {
	switch {
	case f.honest:
	case call == "POST entries" && n == 1:
		return problem.New("room-full").WithRetryAfter(time.Second), true
	case call == "GET me" && n == 1:
		return problem.New("unavailable").WithRetryAfter(time.Second), true
	case call == "POST orders" && n == 2:
		return problem.New("order-in-progress").WithRetryAfter(6 * time.Second), true // as the limit of orders has it
	}
	return problem.Problem{}, false
}

// ServeHTTP passes a request on, or not.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + filepath.Base(r.URL.Path)
	f.mu.Lock()
	f.calls[call]++
	n := f.calls[call]
	if early := time.Until(f.pollAt); call == "GET me" && early > 5*time.Millisecond {
		f.t.Errorf("polled %v too soon", early)
	}
	if shown := r.Header.Get("X-Queue-Ticket"); shown != f.ticket {
		f.t.Errorf("%s shows another ticket than the newest: %q", call, shown)
	}
	f.mu.Unlock()
	if p, bad := f.before(call, n); bad {
		problem.Write(w, r, p)
		f.wait(*p.RetryAfterSeconds * 1000)
		return
	}
	resp, body := f.pass(r)
	if call == "POST orders" && n == 1 && !f.honest { // done, and the answer gets lost
		panic(http.ErrAbortHandler)
	}
	f.note(body)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(body)
}

func (f *front) pass(r *http.Request) (*http.Response, []byte) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, f.server+r.URL.Path, bytes.NewReader(sent))
	if err != nil {
		f.t.Error(err)
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Accept-Encoding")
	resp, err := f.contract.RoundTrip(req)
	if err != nil {
		if r.Context().Err() == nil { // the client has not hung up
			f.t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return resp, body
}

// note remembers what the client is told.
func (f *front) note(body []byte) {
	var p struct {
		QueueTicket     *string
		NextPollAfterMs int
	}
	if json.Unmarshal(body, &p) != nil {
		return
	}
	f.wait(p.NextPollAfterMs)
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.QueueTicket != nil {
		f.ticket = *p.QueueTicket
	}
}

func (f *front) wait(milliseconds int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pollAt = time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
}

func (f *front) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// stand puts a front before the installation.
func stand(t *testing.T, in *installation, honest bool) (*front, string) {
	transport := &http.Transport{}
	f := &front{t: t, server: in.api, honest: honest, calls: map[string]int{}, contract: contract.Load(t).Transport(t, transport)}
	s := httptest.NewServer(f)
	t.Cleanup(func() {
		s.Close()
		transport.CloseIdleConnections()
	})
	return f, s.URL
}

// shop is an installation made by the commands, with a room for each purpose.
func shop(t *testing.T) *installation {
	t.Helper()
	in := install(t)
	in.run("migrate", "up")
	in.run("setup", "--secrets", "secrets")
	in.serve()
	in.run("room", "create", "sale", "enterNeedsTicket=true")
	in.run("room", "create", "later", "paused=true")
	in.run("room", "create", "worked", "proofOfWorkBits=12")
	in.run("product", "set", "book", "stock=100", "priceCents=1250", "currency=EUR")
	return in
}

func TestEveryClientBuysOnceThroughAllThatGoesWrongAndLeavesWhenStopped(t *testing.T) {
	t.Parallel()
	in := shop(t)
	t.Run("clients", func(t *testing.T) { // ends when all of them have
		for _, e := range examples {
			t.Run(e.language, func(t *testing.T) {
				t.Parallel()
				e.try(t, in)
			})
		}
	})
	var left struct {
		Sizes map[string]int `json:"sizes"`
	}
	require.NoError(t, json.Unmarshal([]byte(in.run("room", "stats", "later", "-o", "json")), &left))
	require.Zero(t, left.Sizes["waiting"], "somebody has not left")
}

// try runs a client in every way that it can end.
func (e example) try(t *testing.T, in *installation) {
	e.available(t, in)
	client := in.client(t, e.heading, e.language, e.file)
	for name, test := range map[string]func(t *testing.T, client *installation, e example){
		"buys once": buysOnce, "leaves": leaves, "is told": isTold, "works": works,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, client, e)
		})
	}
}

func buysOnce(t *testing.T, client *installation, e example) {
	f, url := stand(t, client, false)
	c := client.with(t, url, "sale").start(e.run[0], e.run[1:]...)
	require.Zero(t, c.ended(), "%s%s", c.out, c.err)
	require.Equal(t, 3, f.count("POST orders"), "lost, busy, and told")
	require.Equal(t, 3, f.count("POST entries"), "full, a ticket, and a place")
	require.GreaterOrEqual(t, f.count("GET me"), 2)
	require.Zero(t, f.count("DELETE me"), "who has bought does not leave")

	pool, err := pgxpool.New(t.Context(), client.env["LINEKEEPER_DATABASE_URL"])
	require.NoError(t, err)
	defer pool.Close()
	var orders int
	const q = `SELECT count(*) FROM orders WHERE member = (SELECT member FROM orders WHERE id = $1)`
	require.NoError(t, pool.QueryRow(t.Context(), q, strings.TrimSpace(c.out.String())).Scan(&orders))
	require.Equal(t, 1, orders)
}

func works(t *testing.T, client *installation, e example) {
	if e.language == "sh" {
		t.Skip("says that it does not: a process for each hash takes too long")
	}
	f, url := stand(t, client, true)
	c := client.with(t, url, "worked").start(e.run[0], e.run[1:]...)
	require.Zero(t, c.ended(), "%s%s", c.out, c.err)
	require.Equal(t, 2, f.count("POST entries"), "a puzzle, and a place")
}

func leaves(t *testing.T, client *installation, e example) {
	f, url := stand(t, client, true)
	c := client.with(t, url, "later").start(e.run[0], e.run[1:]...)
	harness.Eventually(t, patience, "it polls", func() bool { return f.count("GET me") > 0 })
	c.signal(syscall.SIGINT)
	require.NotZero(t, c.ended())
	require.Equal(t, 1, f.count("DELETE me"))
}

func isTold(t *testing.T, client *installation, e example) {
	f, url := stand(t, client, true)
	c := client.with(t, url, "nowhere").start(e.run[0], e.run[1:]...)
	require.Equal(t, 1, c.ended())
	require.Contains(t, c.err.String(), "404 room-not-found: ")
	require.Equal(t, 1, f.count("POST entries"), "a refusal is not repeated")
}

// available skips what can't run here.
func (e example) available(t *testing.T, in *installation) {
	t.Helper()
	program := e.run[0]
	if e.language == "go" {
		program = "go"
	}
	if lookPath(in.env["PATH"], program) != program {
		return
	}
	if e.everywhere && os.Getenv("CI") != "" {
		t.Fatal(harness.MissingPart + program)
	}
	t.Skip(harness.MissingPart + program)
}

// client is a directory with an example in it, ready to run.
func (in *installation) client(t *testing.T, heading, language, file string) *installation {
	t.Helper()
	blocks := block(language).FindAllStringSubmatch(section(t, "docs/clients.md", heading), -1)
	require.Len(t, blocks, 1, "%s", heading)
	c := *in
	c.t, c.dir = t, t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, file), []byte(blocks[0][1]), 0o600))
	if language == "go" {
		formatted, err := format.Source([]byte(blocks[0][1]))
		require.NoError(t, err)
		require.Equal(t, string(formatted), blocks[0][1], "as gofmt has it")
		b := c.start("go", "build", "-buildvcs=false", "-o", "buy", file)
		require.Zero(t, b.ended(), "%s", b.err)
	}
	return &c
}

// with is the client for a server and a room.
func (in *installation) with(t *testing.T, url, room string) *installation {
	c := *in
	c.t, c.env = t, map[string]string{
		"PATH": in.env["PATH"], "HOME": in.env["HOME"], "API": url, "ROOM": room,
		"ORDER": fmt.Sprintf(`{"items":[{"sku":"book","quantity":%d}]}`, 2),
	}
	return &c
}
