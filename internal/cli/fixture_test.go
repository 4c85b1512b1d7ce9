package cli_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

var ann = room.Actor{Name: "ann", Role: "admin", Remote: "local"}

// fixture is the real API on a database and rooms of its own, and a client.
type fixture struct {
	*cli.Client
	t     *testing.T
	pool  *pgxpool.Pool
	store *pgstore.Store
	line  *redisstore.Store
	url   string
	token string
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, pool: harness.Database(t)}
	f.store = pgstore.New(f.pool)
	f.line = redisstore.New(harness.Redis(t), "test-"+uuid.NewString())
	token, entry, err := admin.NewToken("ann", admin.Admin)
	require.NoError(t, err)
	tokens, err := admin.ParseTokens(entry)
	require.NoError(t, err)
	server := httptest.NewServer(admin.New(admin.Options{
		Store: f.store, Lines: f.line, Outbox: outboxOf{outbox.NewAdmin(f.pool)}, Tokens: tokens, Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(server.Close)
	f.url, f.token = server.URL, token
	f.Client = f.as(token)
	return f
}

func (f *fixture) as(token string) *cli.Client { return client(f.url, token) }

func client(url, token string) *cli.Client {
	return cli.Remote{AdminURL: config.URL(url), AdminToken: config.Secret(token)}.Client()
}

// outboxOf fits the outbox to what the API asks for.
type outboxOf struct{ real *outbox.Admin }

func (o outboxOf) List(ctx context.Context, status string, limit int, after int64) ([]admin.Entry, error) {
	rows, err := o.real.List(ctx, outbox.Status(status), limit, after)
	entries := make([]admin.Entry, len(rows))
	for i, r := range rows {
		entries[i] = admin.Entry{ID: r.ID, OrderID: r.OrderID, Kind: r.Kind, Room: r.Room, Status: string(r.Status),
			Attempts: r.Attempts, NextAttemptAt: r.NextAttempt, LastError: r.LastError, CreatedAt: r.CreatedAt}
	}
	return entries, err
}

func (o outboxOf) Requeue(ctx context.Context, id int64) error {
	err := o.real.Requeue(ctx, id)
	if errors.Is(err, outbox.ErrNotDead) {
		return admin.ErrNotDead
	}
	return err
}

// create makes a room behind the API's back.
func (f *fixture) create(name string, change func(*room.Settings)) room.Room {
	f.t.Helper()
	s := room.Defaults()
	if change != nil {
		change(&s)
	}
	r, err := f.store.Create(f.t.Context(), name, s, ann)
	require.NoError(f.t, err)
	return r
}

func (f *fixture) get(name string) room.Room {
	f.t.Helper()
	r, err := f.store.Get(f.t.Context(), name)
	require.NoError(f.t, err)
	return r
}

// begin puts the room into Redis, as a scheduler would.
func (f *fixture) begin(name string) {
	f.t.Helper()
	life, err := f.store.Begin(f.t.Context(), name, f.get(name).Generation)
	require.NoError(f.t, err)
	require.NoError(f.t, f.line.Create(f.t.Context(), life))
}

// deadEvent puts a dead event into the outbox.
func (f *fixture) deadEvent(lastError string) (id int64) {
	f.t.Helper()
	order := uuid.New()
	_, err := f.pool.Exec(f.t.Context(), `INSERT INTO orders (id, grant_id, room, sale, generation, member) VALUES ($1, $2, 'sale', 1, 1, 'bob')`, order, uuid.New())
	require.NoError(f.t, err)
	err = f.pool.QueryRow(f.t.Context(), `INSERT INTO outbox (order_id, kind, room, payload, status, attempts, last_error)
		VALUES ($1, 'consume', 'sale', '{}', 'dead', 9, $2) RETURNING id`, order, lastError).Scan(&id)
	require.NoError(f.t, err)
	return id
}

// shown is a view as a table.
func shown(t *testing.T, v cli.View) string { return printed(t, v, cli.Table) }

func printed(t *testing.T, v cli.View, f cli.Format) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, v.Print(&b, f))
	return b.String()
}

// refusal is what the API said no with.
func refusal(t *testing.T, err error) cli.Refusal {
	t.Helper()
	var r cli.Refusal
	require.ErrorAs(t, err, &r)
	return r
}

// strange is a server that is not ours.
func strange(t *testing.T, h http.HandlerFunc) *cli.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return client(server.URL, "secret")
}
