package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestOperatorRunsASaleFromTheShell(t *testing.T) {
	t.Parallel()
	s, store, _ := operated(t)
	get := func() room.Room {
		r, err := store.Get(t.Context(), "tickets")
		require.NoError(t, err)
		return r
	}
	require.Contains(t, s.ok("room", "create", "tickets", "batchSize=9"), "room tickets is at version 1")
	s.ok("room", "set", "tickets", "batchSize=100", "paused=true", "opensAt=2026-11-27T12:00:00Z", `message.en=Back in ten minutes`, "--if-version", "1")
	require.Equal(t, 100, get().Settings.BatchSize)
	require.Equal(t, "Back in ten minutes", get().Settings.Message["en"])

	got := s.run("room", "set", "tickets", "batchSize=7", "--if-version", "1")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "The version in force is 2")
	require.Equal(t, 100, get().Settings.BatchSize)

	s.ok("room", "resume", "tickets")
	require.False(t, get().Settings.Paused)
	s.ok("room", "pause", "tickets", "--if-version", "3")
	require.True(t, get().Settings.Paused)
	s.ok("room", "drain", "tickets")
	require.True(t, get().Settings.Draining)
	require.Regexp(t, `tickets +5 +1 +100 per 1s +paused,draining`, s.ok("room", "list"))
	s.ok("room", "off", "tickets")
	require.True(t, get().Settings.Off)
	require.Regexp(t, `tickets +6 +1 +100 per 1s +off`, s.ok("room", "list"))
	require.Contains(t, s.ok("room", "release", "tickets", "--count", "25"), "room tickets is at version 7")
	require.Equal(t, 1, s.run("room", "release", "tickets", "--count", "25", "--if-version", "6").code)
	require.EqualValues(t, 25, get().Released)
	require.Equal(t, 2, s.run("room", "release", "tickets", "--count", "0").code)
	require.Regexp(t, `(?m)^batchSize +100 +\(default 50\)`, s.ok("room", "get", "tickets"))
	s.ok("room", "flush", "tickets", "--confirm", "tickets")
	require.EqualValues(t, 2, get().Sale)
	require.Contains(t, s.run("room", "stats", "tickets").err, "409 conflict", "no scheduler runs here")
	require.Contains(t, s.ok("audit", "--target", "tickets", "--limit", "1"), "room.flush")
	require.Contains(t, s.ok("room", "delete", "tickets", "--confirm", "tickets"), "room tickets is deleted")
	_, err := store.Get(t.Context(), "tickets")
	require.ErrorIs(t, err, room.ErrNotFound)
}

func TestProductsAndOutboxFromTheShell(t *testing.T) {
	t.Parallel()
	s, store, pool := operated(t)
	s.ok("product", "set", "demo", "stock=5", "priceCents=1990", "currency=EUR")
	s.ok("product", "set", "demo", "stock=8")
	p, err := store.Product(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, []int64{8, 1990}, []int64{p.Stock, p.PriceCents})
	require.Regexp(t, `(?m)^stock +8$`, s.ok("product", "get", "demo"))

	order := uuid.New()
	_, err = pool.Exec(t.Context(), `INSERT INTO orders (id, grant_id, room, sale, generation, member) VALUES ($1, $2, 'r', 1, 1, 'm')`, order, uuid.New())
	require.NoError(t, err)
	var id int64
	require.NoError(t, pool.QueryRow(t.Context(), `INSERT INTO outbox (order_id, kind, room, payload, status) VALUES ($1, 'consume', 'r', '{}', 'dead') RETURNING id`, order).Scan(&id))
	require.Contains(t, s.ok("outbox", "list"), order.String())
	require.Contains(t, s.ok("outbox", "requeue", fmt.Sprint(id)), "pending again")
	require.NotContains(t, s.ok("outbox", "list"), order.String())
	require.Contains(t, s.ok("outbox", "list", "--status", "pending", "-o", "json"), order.String())
}

func TestEveryReadOffersTheJSONOfTheAPI(t *testing.T) {
	t.Parallel()
	s, _, _ := operated(t)
	s.ok("room", "create", "tickets")
	s.ok("product", "set", "demo", "stock=5", "priceCents=1", "currency=EUR")
	for _, args := range [][]string{
		{"room", "list"}, {"room", "get", "tickets"}, {"member", "get", "tickets", "ann"}, {"product", "get", "demo"}, {"outbox", "list"}, {"audit"}, {"config", "print"}, {"version"},
	} {
		require.True(t, json.Valid([]byte(s.ok(append(args, "-o", "json")...))), "%v", args)
		require.False(t, json.Valid([]byte(s.ok(args...))), "%v", args)
	}
}

func TestApplyTakesAFileOrStandardInput(t *testing.T) {
	t.Parallel()
	s, store, _ := operated(t)
	const file = "rooms: {tickets: {batchSize: 9}}"
	got := s.runWith(file, "room", "apply", "-f", "-", "--dry-run")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "create room tickets\n  batchSize 50 -> 9\n", got.out)
	_, err := store.Get(t.Context(), "tickets")
	require.ErrorIs(t, err, room.ErrNotFound, "--dry-run changes nothing")
	require.Contains(t, s.ok("room", "apply", "-f", written(t, file)), "create room tickets")
	r, err := store.Get(t.Context(), "tickets")
	require.NoError(t, err)
	require.Equal(t, 9, r.Settings.BatchSize)
	require.JSONEq(t, `{"plan":[{"room":"tickets","action":"unchanged","changes":[]}]}`, s.ok("room", "apply", "-f", written(t, file), "-o", "json"))

	got = s.runWith("rooms: {a: {foo: 1}, b: {bar: 1}}", "room", "apply", "-f", "-")
	require.Equal(t, 2, got.code)
	require.Equal(t, "linekeeper: standard input: room a: foo is not a setting\nlinekeeper: standard input: room b: bar is not a setting\n", got.err)
	got = s.run("room", "apply", "-f", "/nowhere/rooms.yaml")
	require.Equal(t, 2, got.code)
	require.Equal(t, "linekeeper: /nowhere/rooms.yaml: no such file or directory\n", got.err)
}

func TestWrongUseIsToldBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["LINEKEEPER_ADMIN_URL"] = "http://127.0.0.1:1" // nothing answers there
	s.env["LINEKEEPER_ADMIN_TOKEN"] = "token"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"room", "get", "UPPER"}, "can't be the name of a room"},
		{[]string{"room", "set", "r", "batchSize=0", "foo=1"}, "linekeeper: foo is not a setting; `linekeeper config docs` lists them\nlinekeeper: batchSize must be"},
		{[]string{"room", "set", "r"}, "setting=value"},
		{[]string{"room", "create", "r", "binding=tight"}, `binding must be one of ["off" "observe" "strict"], got "tight"`},
		{[]string{"room", "flush", "r", "--confirm", "q"}, `--confirm: is "q", not the room's name r again`},
		{[]string{"room", "delete", "r"}, "--confirm"},
		{[]string{"product", "set", "demo", "priceCents=1"}, "stock must be given"},
		{[]string{"product", "get", "no sku"}, "can't be a SKU"},
		{[]string{"outbox", "list", "--status", "lost"}, "--status"},
		{[]string{"outbox", "requeue", "x"}, "x"},
		{[]string{"room", "list", "-o", "xml"}, "xml"},
		{[]string{"room", "list", "--admin-token", "hunter2"}, "LINEKEEPER_ADMIN_TOKEN_FILE"},
		{[]string{"nonsense"}, "nonsense"},
	} {
		got := s.run(c.args...)
		require.Equal(t, 2, got.code, "%v: %s", c.args, got.err)
		require.Contains(t, got.err, c.want, "%v", c.args)
		require.NotContains(t, got.err, "hunter2")
	}
	got := s.run("room", "list")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "does not answer")
	delete(s.env, "LINEKEEPER_ADMIN_TOKEN")
	for _, verb := range []string{"pause", "resume", "drain", "off", "get", "stats"} {
		got = s.run("room", verb, "UPPER")
		require.Equal(t, 2, got.code, verb)
		require.Contains(t, got.err, "LINEKEEPER_ADMIN_TOKEN: is required", verb)
		require.Contains(t, got.err, "can't be the name of a room", verb)
	}
}
