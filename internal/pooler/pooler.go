// Package pooler tells a connection pooler, such as PgBouncer, from Postgres.
//
// Linekeeper needs sessions: the limits of transactions are settings of one, the
// lock of a migration is held by one, and statements are prepared in one. A
// transaction pooler has none to give: each transaction may meet another server
// connection. Nothing need fail at once then. Orders run without their limits,
// two migrations run at the same time, and an hour later a prepared statement
// "already exists". So a pooler is refused where it is met, with the thing to do.
//
// It promises to recognise whoever refuses or ignores the settings that a
// connection begins with, as every pooler does that gives one server connection
// to many clients. It does not look for a pooler that passes them on, and then
// gives each client a session of its own: that one does no harm.
package pooler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Remedy is the one thing to do about a pooler.
const Remedy = "put the direct address of Postgres into LINEKEEPER_DATABASE_URL"

// Err is wrapped by every error that comes of a pooler; what it says is meant
// for the operator, and ends with the remedy.
var Err = errors.New("this is the address of a connection pooler, and a transaction pooler keeps no sessions: " +
	"no limits, no locks, no prepared statements; " + Remedy)

// Explain puts Err in front of what only a pooler says, or Postgres because one
// stands between. Other errors, and nil, come back as they are.
func Explain(err error) error {
	var said *pgconn.PgError
	if errors.Is(err, Err) || !errors.As(err, &said) || !telling(said) {
		return err
	}
	return fmt.Errorf("%w (it says: %s)", Err, said.Message)
}

func telling(e *pgconn.PgError) bool {
	switch e.Code {
	case "08P01": // protocol_violation: no setting is refused so by Postgres
		return strings.Contains(e.Message, "startup parameter")
	case "42P05", "26000": // a prepared statement of, or left with, another client
		return true
	}
	return false
}

// Querier is a connection or a pool of them.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// limits are the settings that Linekeeper begins its connections with. Others may
// stand in the URL, and poolers imitate some of those.
var limits = []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"}

// Check connects, and returns an error that wraps Err unless the limits among the
// settings that were sent are in force as sent. PgBouncer drops those that its
// ignore_startup_parameters names, and says nothing.
func Check(ctx context.Context, q Querier, sent map[string]string) error {
	// What came with the beginning of a session has this source, whatever the
	// server, the database and the user have set beside it.
	const query = `SELECT coalesce(string_agg(name, ', ' ORDER BY name), '') FROM pg_settings WHERE name = ANY ($1) AND source <> 'client'`
	asked := slices.DeleteFunc(slices.Clone(limits), func(name string) bool { return sent[name] == "" })
	var lost string
	// Not prepared: that would be the next thing to fail.
	if err := q.QueryRow(ctx, query, pgx.QueryExecModeExec, asked).Scan(&lost); err != nil {
		return Explain(err)
	}
	if lost != "" {
		return fmt.Errorf("%w (it ignores %s)", Err, lost)
	}
	return nil
}
