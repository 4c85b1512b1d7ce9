package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/test/harness"
)

// fault is what happens to the message that the trigger is found in.
type fault struct {
	trigger string
	forward bool          // the server gets the message, and has answered before the fault goes on
	answer  []byte        // that the client gets
	refuse  bool          // the client is told that nothing was sent
	before  func()        // called first
	intact  bool          // the connection stays up
	hits    chan struct{} // one for each time
}

var sentCommit = "commit\x00"

// wire breaks the connections of a pool, once.
type wire struct {
	mu   sync.Mutex
	next *fault
}

func (w *wire) arm(f fault) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.hits = make(chan struct{}, 1)
	w.next = &f
	return f.hits
}

func (w *wire) match(p []byte) *fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil || !bytes.Contains(p, []byte(w.next.trigger)) {
		return nil
	}
	f := w.next
	w.next = nil
	return f
}

func (w *wire) configure(c *pgxpool.Config) {
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &brokenConn{Conn: conn, wire: w}, err
	}
}

type brokenConn struct {
	net.Conn
	wire   *wire
	mu     sync.Mutex
	broken bool
	answer *bytes.Reader
}

func (c *brokenConn) Write(p []byte) (int, error) {
	f := c.wire.match(p)
	if f == nil {
		return c.Conn.Write(p)
	}
	f.hits <- struct{}{}
	if f.before != nil {
		f.before()
	}
	if f.intact {
		return c.Conn.Write(p)
	}
	if f.forward {
		if _, err := c.Conn.Write(p); err != nil {
			return 0, err
		}
		if _, err := c.Conn.Read(make([]byte, 4096)); err != nil {
			return 0, err
		}
	}
	_ = c.Conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken, c.answer = true, bytes.NewReader(f.answer)
	if f.refuse {
		return 0, errors.New("broken pipe")
	}
	return len(p), nil
}

func (c *brokenConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return c.answer.Read(p) // io.EOF at its end
	}
	return c.Conn.Read(p)
}

func fatal(t *testing.T) []byte {
	b, err := (&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01", Message: "terminating"}).Encode(nil)
	require.NoError(t, err)
	return b
}

// O7, I4, case 69, jackc/pgx#1223: whatever became of COMMIT, there is one order
// after the client's retry, and a claim is never released in between. Case 64,
// opendefender/OpenRisk#344: an order that is there has its event.
func TestLostCommitEndsInOneOrder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		fault     fault
		committed bool
	}{
		{"cut before COMMIT arrived", fault{}, false},
		{"cut after COMMIT arrived", fault{forward: true}, true},
		{"FATAL, not committed", fault{answer: fatal(t)}, false},
		{"FATAL, committed", fault{forward: true, answer: fatal(t)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := &wire{}
			f := newFixture(t, w.configure)
			r := of(grantOf("ann"), "a", "b")
			tc.fault.trigger = sentCommit
			hit := w.arm(tc.fault)
			_, err := f.orders.Place(t.Context(), r)
			require.ErrorIs(t, err, order.ErrOutcomeUnknown)
			require.Len(t, hit, 1)
			require.Empty(t, f.grants.releases())
			committed := 0
			if tc.committed {
				committed = 1
			}
			require.Equal(t, committed, f.orderCount())
			require.Equal(t, committed, f.count(`SELECT count(*) FROM outbox`))

			again, err := f.orders.Place(t.Context(), r)
			if !tc.committed {
				require.ErrorIs(t, err, order.ErrInProgress, "the claim is still held")
				f.grants.lapse(r.Grant)
				again, err = f.orders.Place(t.Context(), r)
			}
			require.NoError(t, err)
			require.Equal(t, tc.committed, again.Replayed)
			require.Equal(t, 1, f.orderCount())
			require.Equal(t, 999, f.stock("a"))
			require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox`))
			require.Empty(t, f.grants.releases())
			kept, err := f.store.ByGrant(t.Context(), r.Grant.ID)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(again.Order, kept))
		})
	}
}

// A COMMIT that never left this machine is an abort, and so is everything that
// breaks before it: fact 12 does not reach here, because the batch has no COMMIT.
func TestBrokenBeforeCommitIsDefinite(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		fault fault
	}{
		{"COMMIT not sent", fault{trigger: sentCommit, refuse: true}},
		{"batch run, answers lost", fault{trigger: "demo-grant-marker", forward: true}},
		{"batch lost", fault{trigger: "demo-grant-marker"}},
		{"FATAL in the batch", fault{trigger: "demo-grant-marker", answer: fatal(t)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := &wire{}
			f := newFixture(t, w.configure)
			f.must(of(grantOf("bob"), "b")) // statements are prepared
			r := of(grantOf("ann"), "a")
			r.IdempotencyKey = "demo-grant-marker" // found in the batch only
			hit := w.arm(tc.fault)
			_, err := f.orders.Place(t.Context(), r)
			require.ErrorIs(t, err, order.ErrUnavailable)
			require.NotErrorIs(t, err, order.ErrOutcomeUnknown)
			require.Len(t, hit, 1)
			require.Equal(t, []string{r.Grant.ID}, f.grants.releases())

			require.False(t, f.must(r).Replayed)
			require.Equal(t, 2, f.orderCount())
			require.Equal(t, 999, f.stock("a"))
		})
	}
}

// O9: a client that hangs up at COMMIT does not make its outcome unknown.
func TestHangingUpAtCommitChangesNothing(t *testing.T) {
	t.Parallel()
	w := &wire{}
	f := newFixture(t, w.configure)
	ctx, hangUp := context.WithCancel(t.Context())
	hit := w.arm(fault{trigger: sentCommit, before: hangUp, intact: true})
	placed, err := f.orders.Place(ctx, of(grantOf("ann"), "a"))
	require.NoError(t, err)
	require.Len(t, hit, 1)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.NotEmpty(t, placed.ID)
	require.Equal(t, 1, f.orderCount())
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox`))
}

// The order is there but can't be read at the moment: that is no failure.
func TestOrderInTheWayThatCantBeReadIsUnknown(t *testing.T) {
	t.Parallel()
	w := &wire{}
	f := newFixture(t, w.configure)
	r := of(grantOf("ann"), "a")
	f.must(r)
	f.grants.lapse(r.Grant)
	hit := w.arm(fault{trigger: "WHERE grant_id"})
	_, err := f.orders.Place(t.Context(), r)
	require.ErrorIs(t, err, order.ErrOutcomeUnknown)
	require.Len(t, hit, 1)
	require.Empty(t, f.grants.releases())
}

// Case 71, jackc/pgx#787: a timeout at COMMIT, and the next request on the same
// pool.
func TestConnectionIsCleanAfterATimeoutAtCommit(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"lock_timeout", "statement_timeout"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			timeoutAtCommit(t, newFixture(t, size(1), setting(limit, "500")))
		})
	}
}

func timeoutAtCommit(t *testing.T, f *fixture) {
	t.Helper()
	// Something that waits inside COMMIT, where the limits still hold.
	f.exec(`CREATE FUNCTION queue_up() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$`)
	f.exec(`CREATE CONSTRAINT TRIGGER queue_up AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION queue_up()`)
	tx, err := f.db.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	_, err = tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(1)`)
	require.NoError(t, err)

	g := grantOf("ann")
	_, err = f.orders.Place(t.Context(), of(g, "a"))
	require.ErrorIs(t, err, order.ErrUnavailable)
	require.ErrorContains(t, err, "commit")
	require.Equal(t, []string{g.ID}, f.grants.releases(), "Postgres said that COMMIT failed")
	require.Zero(t, f.orderCount())
	require.NoError(t, tx.Rollback(t.Context()))
	f.must(of(g, "a"))
}

func TestServerOutOfReachIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nowhere := f.pool(func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
	})
	f.store = newStore(nowhere)
	f.orders = order.New(f.grants, f.store, order.Options{})
	_, err := f.orders.Place(t.Context(), of(grantOf("ann"), "a"))
	require.ErrorIs(t, err, order.ErrUnavailable)
	require.Len(t, f.grants.releases(), 1)
	_, err = f.store.ByGrant(t.Context(), grantOf("ann").ID)
	require.ErrorIs(t, err, order.ErrUnavailable)
}

// Case 74, gpustack/gpustack#6105, O17: a session that has become read-only is
// left.
func TestReadOnlySessionsAreLeft(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`CREATE FUNCTION demoted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF current_setting('test.demoted', true) = 'on' THEN RAISE 'read-only' USING ERRCODE = '25006'; END IF; RETURN NEW; END $$`)
	f.exec(`CREATE TRIGGER demoted BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION demoted()`)

	pool := f.pool(size(1))
	f.orders = order.New(f.grants, newStore(pool), order.Options{})
	_, err := pool.Exec(t.Context(), `SET test.demoted = on`) // the one connection
	require.NoError(t, err)
	_, err = f.orders.Place(t.Context(), of(grantOf("ann"), "a"))
	require.ErrorIs(t, err, order.ErrUnavailable)
	require.Len(t, f.grants.releases(), 1)
	f.must(of(grantOf("ann"), "a")) // on a new connection

	// Where Postgres says so by itself, not even one order fails.
	_, err = pool.Exec(t.Context(), `SET default_transaction_read_only = on`)
	require.NoError(t, err)
	f.must(of(grantOf("ann"), "a"))
}

func TestReadOnlyServersAreNotConnectedTo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	pool := f.pool()
	require.Error(t, pool.Ping(t.Context()))
	_, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.ErrorContains(t, err, "read only", "of several hosts the next one is tried")
	f.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)
	harness.Eventually(t, 0, "the pool recovers without a restart", func() bool { return pool.Ping(t.Context()) == nil })
}

// The order of the limits is what makes the inner one speak first.
func TestLimitsOfATransactionAreSet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var lock, statement, idle string
	require.NoError(t, f.pool().QueryRow(t.Context(), `SELECT current_setting('lock_timeout'), current_setting('statement_timeout'),
		current_setting('idle_in_transaction_session_timeout')`).Scan(&lock, &statement, &idle))
	require.Equal(t, []string{"2s", "5s", "10s"}, []string{lock, statement, idle})
}
