package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/linekeeper/linekeeper/order"
)

// commitTimeout bounds COMMIT. With the deadline of the attempt before it, it
// stays below the lease of a claim.
const commitTimeout = 5 * time.Second

// SQLSTATEs that are acted on.
const (
	uniqueViolation      = "23505"
	readOnly             = "25006"
	serializationFailure = "40001"
	completionUnknown    = "40003"
	deadlock             = "40P01"
	lockNotAvailable     = "55P03"
	connectionClass      = "08"
	shutdownClass        = "57P"
)

// commit sends COMMIT, and from there on nobody can call it off: a client that
// hangs up here would only make the outcome unknown. An error is either a
// definite abort or order.ErrOutcomeUnknown.
func commit(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	err := tx.Commit(ctx)
	switch {
	case err == nil:
		return nil
	case aborted(err):
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("%w: commit: %w", order.ErrOutcomeUnknown, err)
	}
}

// aborted says whether an error of COMMIT proves that nothing was committed.
//
//	pgx.ErrTxCommitRollback   Postgres answered COMMIT with ROLLBACK
//	pgconn.SafeToRetry        not a byte of COMMIT was sent
//	an ERROR of the server    COMMIT was refused; the session goes on
//
// But a closed connection, which pgx calls safe to retry too, is what it also
// reports (5.12) when the connection ended while COMMIT was waiting for its
// answer: the read error is dropped, and the next read finds it closed.
//
// Everything else proves nothing: a connection that broke may have done so
// after the commit, and a FATAL, or an error of the classes 08 and 57P, is the
// end of a session, not an answer to COMMIT.
func aborted(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	if pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed) {
		return true
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.SeverityUnlocalized != "ERROR" {
		return false
	}
	return !strings.HasPrefix(pg.Code, connectionClass) && !strings.HasPrefix(pg.Code, shutdownClass) && pg.Code != completionUnknown
}

// again says whether the same transaction may well succeed if it is run again
// from its beginning. An unknown outcome is never run again here: that is for
// the client's retry, which first asks whether there is an order.
func again(err error) bool {
	if errors.Is(err, order.ErrOutcomeUnknown) {
		return false
	}
	c := code(err)
	return c == serializationFailure || c == deadlock || errors.Is(err, errRepriced)
}

// unavailable marks errors that speak of the state of the server or of the way
// to it, and not of the order.
func unavailable(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && !transient(pg.Code) {
		return err
	}
	return fmt.Errorf("%w: %w", order.ErrUnavailable, err)
}

// transient sorts SQLSTATEs by class: 08 connection, 40 rolled back by a
// conflict, 53 out of resources, 55P03 and 57 a limit of time or a shutdown,
// 58 the server's own system.
func transient(code string) bool {
	switch code {
	case readOnly, lockNotAvailable:
		return true
	}
	switch code[:min(2, len(code))] {
	case connectionClass, "40", "53", "57", "58":
		return true
	}
	return false
}
