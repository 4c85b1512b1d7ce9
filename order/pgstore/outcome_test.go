package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/test/harness"
)

// closed is what pgx reports of a connection that ended during COMMIT.
type closed struct{ unsent }

func (closed) Unwrap() error { return pgconn.ErrConnClosed }

type unsent bool

func (u unsent) Error() string     { return "write" }
func (u unsent) SafeToRetry() bool { return bool(u) }

func TestOutcomeAtCommit(t *testing.T) {
	t.Parallel()
	pg := func(severity, code string) error {
		return &pgconn.PgError{Severity: "translated", SeverityUnlocalized: severity, Code: code}
	}
	for _, tc := range []struct {
		name    string
		err     error
		aborted bool
	}{
		{"answered with ROLLBACK", pgx.ErrTxCommitRollback, true},
		{"the same, wrapped", fmt.Errorf("x: %w", pgx.ErrTxCommitRollback), true},
		{"not a byte sent", unsent(true), true},
		{"some bytes sent", unsent(false), false},
		{"conn closed, though pgx calls it safe", closed{unsent(true)}, false},
		{"deferred constraint", pg("ERROR", "23505"), true},
		{"serialization failure", pg("ERROR", "40001"), true},
		{"deadlock", pg("ERROR", "40P01"), true},
		{"statement timeout", pg("ERROR", "57014"), true},
		{"disk full", pg("ERROR", "53100"), true},
		{"wrapped", fmt.Errorf("x: %w", pg("ERROR", "23505")), true},
		{"completion unknown", pg("ERROR", "40003"), false},
		{"connection failure", pg("ERROR", "08006"), false},
		{"transaction resolution unknown", pg("ERROR", "08007"), false},
		{"admin shutdown", pg("ERROR", "57P01"), false},
		{"crash shutdown", pg("ERROR", "57P02"), false},
		{"FATAL shutdown", pg("FATAL", "57P01"), false},
		{"FATAL of a definite class", pg("FATAL", "40001"), false},
		{"PANIC", pg("PANIC", "XX000"), false},
		{"no severity", pg("", "23505"), false},
		{"connection ended", io.EOF, false},
		{"cut in a message", io.ErrUnexpectedEOF, false},
		{"connection closed", net.ErrClosed, false},
		{"deadline", context.DeadlineExceeded, false},
		{"called off", context.Canceled, false},
		{"transaction closed", pgx.ErrTxClosed, false},
		{"anything else", errors.New("x"), false},
	} {
		require.Equal(t, tc.aborted, aborted(tc.err), tc.name)
	}
}

// O8, fact 11: Postgres answers COMMIT of a failed transaction with ROLLBACK
// and no error.
func TestCommitAnsweredWithRollbackIsAnAbort(t *testing.T) {
	t.Parallel()
	pool := harness.Database(t)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1/0`)
	require.Error(t, err) // and swallowed
	err = commit(t.Context(), tx)
	require.ErrorIs(t, err, pgx.ErrTxCommitRollback)
	require.NotErrorIs(t, err, order.ErrOutcomeUnknown)
}

func TestUnknownOutcomeIsNeverRunAgain(t *testing.T) {
	t.Parallel()
	conflict := &pgconn.PgError{SeverityUnlocalized: "FATAL", Code: serializationFailure}
	require.True(t, again(conflict))
	require.False(t, again(fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, conflict)))
	require.False(t, again(&pgconn.PgError{Code: uniqueViolation}))
	require.False(t, again(io.EOF))
}

func TestServerTroubleIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"08006", "40001", "53300", "57014", "57P01", "58030", readOnly, lockNotAvailable} {
		require.ErrorIs(t, unavailable(&pgconn.PgError{Code: c}), order.ErrUnavailable, c)
	}
	require.ErrorIs(t, unavailable(io.EOF), order.ErrUnavailable)
	for _, c := range []string{"22003", "23503", "42P01", "25P02", "55000", "XX000", ""} {
		require.NotErrorIs(t, unavailable(&pgconn.PgError{Code: c}), order.ErrUnavailable, c)
	}
}
