package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The limits of a transaction, each longer than the one before, so that the
// inner one speaks first and its error says most: then come the deadline of an
// attempt (8 s), that of a transaction idle, and the lease of a claim (15 s).
const (
	lockTimeout      = 2 * time.Second
	statementTimeout = 5 * time.Second
	idleTimeout      = 10 * time.Second
)

// Configure sets what orders need of every connection of a pool: the limits of
// a transaction, and that it can write. A server that has become read-only (the
// old primary after a failover) is left at once, not when its connections
// happen to end.
func Configure(c *pgxpool.Config) {
	params := c.ConnConfig.RuntimeParams
	params["lock_timeout"] = millis(lockTimeout)
	params["statement_timeout"] = millis(statementTimeout)
	params["idle_in_transaction_session_timeout"] = millis(idleTimeout)
	// As target_session_attrs=read-write in the URL: of several hosts the one
	// that can write.
	c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	c.PrepareConn = writable
	c.MaxConnLifetime = 30 * time.Minute
	c.MaxConnLifetimeJitter = 5 * time.Minute
}

// NewPool opens a configured pool, of the size that pool_max_conns in the URL
// says. It does not wait for the server.
func NewPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	Configure(c)
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

// writable refuses a connection whose server has said that it is read-only now.
// It asks nothing: Postgres reports both parameters by itself.
func writable(_ context.Context, conn *pgx.Conn) (bool, error) {
	pg := conn.PgConn()
	return pg.ParameterStatus("in_hot_standby") != "on" && pg.ParameterStatus("default_transaction_read_only") != "on", nil
}

// evict closes conn if err says that it can't write. The pool drops it when it
// is released, and the next one is checked when it connects.
func evict(conn *pgx.Conn, err error) {
	if code(err) != readOnly {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is given up either way
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// code is the SQLSTATE of err, empty if it is not from Postgres.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
