//go:build faults

package verify

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgresLockTimeout replaces the product's 2 s: while a statement waits for a
// lock nothing else can go on here, so the wait is real time.
const postgresLockTimeout = "25"

// pool opens a pool of a node, through the gate.
func (w *world) pool(n *node, configure func(*pgxpool.Config), conns int32) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(w.dsn)
	if err != nil {
		return nil, err
	}
	configure(c)
	c.MaxConns = conns
	c.ConnConfig.RuntimeParams["lock_timeout"] = postgresLockTimeout
	c.ConnConfig.Tracer = tracer{n, w}
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if n.crashed() || w.postgresAway() {
			return nil, errRefused
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return n.keep(&wire{Conn: conn, late: &w.late}), nil
	}
	return pgxpool.NewWithConfig(context.Background(), c)
}

// tracer has every statement stand at the gate before it is sent.
type tracer struct {
	node *node
	w    *world
}

var (
	_ pgx.QueryTracer = tracer{}
	_ pgx.BatchTracer = tracer{}
)

func (t tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t.stand(ctx, conn, data.SQL)
	return ctx
}

func (t tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (t tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	t.stand(ctx, conn, "order batch")
	return ctx
}

func (t tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (t tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (t tracer) stand(ctx context.Context, conn *pgx.Conn, sql string) {
	c, ok := conn.PgConn().Conn().(*wire)
	if !ok || strings.HasPrefix(sql, "DO $$") { // a mutant's, before the node runs
		return
	}
	v := t.w.gate.pass(ctx, t.node, "postgres", firstWords(sql))
	switch v.fate {
	case notSent:
		_ = c.Conn.Close()
	case noAnswer:
		c.deaf.Store(true)
	case late:
		c.holdBack(v.delay)
	case spoilt:
		// The transaction fails at a statement whose error nobody looks at.
		_ = conn.PgConn().Exec(ctx, "SELECT 1/0").Close()
	}
}

// firstWords is enough of a statement to know it by.
func firstWords(sql string) string {
	words := strings.Fields(sql)
	return strings.Join(words[:min(len(words), 4)], " ")
}

// elapse lets the clock of Postgres run as far as that of the simulation: what
// waits for it there are the due times of the outbox.
func (w *world) elapse(d time.Duration) {
	const q = `UPDATE outbox SET next_attempt_at = next_attempt_at - $1::interval, locked_until = locked_until - $1::interval
		WHERE status = 'pending' AND room = $2`
	if _, err := w.books.Exec(context.Background(), q, d, w.room); err != nil {
		w.t.Errorf("let the clock of Postgres run: %v", err)
	}
}
