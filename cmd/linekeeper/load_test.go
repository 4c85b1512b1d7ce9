package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/load"
	"github.com/linekeeper/linekeeper/room"
)

// The whole product, at a rate at which 300 people are through in seconds.
func TestLoadOfTheProductFindsEveryPromiseKept(t *testing.T) {
	t.Parallel()
	r := runServer(t, io.Discard, func(p *config.Process) { p.TrustedProxies = thisMachine })
	_, _, err := r.rooms.PutProduct(t.Context(), room.Product{SKU: "demo", Stock: 1000, PriceCents: 1990, Currency: "EUR"}, 0, room.Actor{Name: "test"})
	require.NoError(t, err)
	fast := room.Defaults()
	fast.BatchSize, fast.IntervalMs, fast.EnterNeedsTicket = 20, 200, true
	r.openRoom("sale", fast)
	s := newShell(t)
	s.env["LINEKEEPER_ADMIN_URL"], s.env["LINEKEEPER_ADMIN_TOKEN_FILE"] = r.operators, written(t, r.tokens[admin.Viewer])
	dir := t.TempDir()
	file, page := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.html")
	got := s.run("load", "burst", "--url", r.public, "--room", "sale", "--arrivals", "300", "--over", "1s", "--think", "exp:200ms",
		"--twice", "0.3", "--intruders", "0.05", "--tail", "60s", "--json", file, "--html", page)
	require.Zero(t, got.code, got.out+got.err)
	require.Contains(t, got.err, "came 300 of 300")
	require.Regexp(t, `admissions within the rate +\d+ +kept`, got.out)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var report load.Report
	require.NoError(t, json.Unmarshal(text, &report))
	require.Zero(t, report.Broken())
	for _, p := range report.Promises {
		require.Empty(t, p.Unseen, p.Name)
		require.NotZero(t, p.Looks, p.Name)
	}
	require.EqualValues(t, 300, report.Came)
	require.Zero(t, report.People.TurnedAway+report.People.Lost+report.People.Undecided+report.People.NotEntered, "%+v", report.People)
	var orders int64
	require.NoError(t, r.books.QueryRow(t.Context(), "SELECT count(*) FROM orders WHERE NOT void").Scan(&orders))
	require.Equal(t, orders, report.Orders.Placed, "what was placed is what is in Postgres")
	require.Equal(t, report.People.Ordered, report.Orders.Placed)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<svg ")

	snapshot, err := r.line.Snapshot(t.Context(), "sale")
	require.NoError(t, err)
	require.Zero(t, snapshot.Waiting(), "who was still there has left")
}

func TestLoadOfAServerThatTakesAnyOrderIsExitCodeOne(t *testing.T) {
	t.Parallel()
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/orders":
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":"1"}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"code":"room-closed"}`)
		default:
			_, _ = io.WriteString(w, `{"room":"default","roomState":"CLOSED"}`)
		}
	}))
	t.Cleanup(liar.Close)
	s := newShell(t)
	got := s.run("load", "--url", liar.URL+"/", "--arrivals", "10", "--over", "0s", "--intruders", "0.5", "--quiet")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "VIOLATION")
	require.Contains(t, got.out, "an order with no token was answered 201")
	require.Regexp(t, `^linekeeper: promises were broken: \d+ violations\n$`, got.err, "quiet")

	got = s.run("load", "--url", liar.URL, "--arrivals", "10", "--over", "0s", "--intruders", "0", "--quiet")
	require.Equal(t, 1, got.code)
	require.Equal(t, "linekeeper: nobody got in\n", got.err)
}

func TestLoadSaysAllThatIsWrongBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--arrivals", "0", "--order", "2", "--room", "A", "--sku", "/"}, []string{"--arrivals: must be", "--order: must be", "--room: ", "--sku: "}},
		{[]string{"--vanish", "0.6", "--leave", "0.6", "--connections", "0"}, []string{"--vanish and --leave", "--connections"}},
		{[]string{"--url", "ftp://x", "--over", "25h", "--tail", "-1s"}, []string{"--url: ", "--over: ", "--tail: "}},
		{[]string{"--think", "soon"}, []string{"must be like 2s"}},
		{[]string{"storm"}, []string{"constant"}},
		{[]string{"--json", filepath.Join(t.TempDir(), "none", "x")}, []string{"no such file or directory"}},
	} {
		got := s.run(append([]string{"load"}, c.args...)...)
		require.Equal(t, 2, got.code, "%v", c.args)
		for _, says := range c.says {
			require.Contains(t, got.err, says)
		}
		require.Empty(t, got.out)
	}
	s.env["LINEKEEPER_ADMIN_TOKEN"], s.env["LINEKEEPER_ADMIN_URL"] = "token", "x"
	require.Contains(t, s.run("load").err, "LINEKEEPER_ADMIN_URL")
}

func TestLoadOfNothingIsExitCodeThree(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	s := newShell(t)
	got := s.run("load", "--url", gone.URL)
	require.Equal(t, 2, got.code, "a server without the room is there")
	require.Contains(t, got.err, `has no room "default"`)
	gone.Close()
	got = s.run("load", "--url", gone.URL)
	require.Equal(t, 3, got.code)
	require.Equal(t, 1, strings.Count(got.err, "\n"), "one line")
	require.Contains(t, got.err, "make run")
}
