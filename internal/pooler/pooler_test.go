package pooler_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/pooler"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// check connects as the product does, with one limit, and looks.
func check(t *testing.T, dsn string, set map[string]string) error {
	t.Helper()
	conf, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	for name, value := range set {
		conf.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(t.Context(), conf)
	if err != nil {
		return pooler.Explain(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return pooler.Check(t.Context(), conn, conf.RuntimeParams)
}

func TestEveryPoolerIsRecognised(t *testing.T) {
	t.Parallel()
	for name, dsn := range harness.Poolers(t, harness.DSN(t)) {
		err := check(t, dsn, map[string]string{"lock_timeout": "2000"})
		require.ErrorIs(t, err, pooler.Err, name)
		require.ErrorContains(t, err, "put the direct address of Postgres into LINEKEEPER_DATABASE_URL", name)
		require.ErrorContains(t, err, "lock_timeout", "%s: the evidence is shown", name)
	}
}

func TestPostgresItselfIsNoPooler(t *testing.T) {
	t.Parallel()
	db, dsn := harness.Database(t), harness.DSN(t)
	limits := map[string]string{"lock_timeout": "2s", "statement_timeout": "5000", "idle_in_transaction_session_timeout": "10000"}
	require.NoError(t, check(t, dsn, limits))
	require.NoError(t, check(t, dsn, nil), "nothing was asked for, so nothing is missing")
	require.NoError(t, check(t, dsn+"&options=-c%20lock_timeout%3D1s", nil))
	_, err := db.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = ''2s''', current_database()); END $$`)
	require.NoError(t, err)
	require.NoError(t, check(t, dsn, limits), "the session's own setting wins over the database's")
}

// A limit that happens to be right, because the database has the same, is not
// one that the session has asked for.
func TestALimitOfTheDatabaseDoesNotHideAPooler(t *testing.T) {
	t.Parallel()
	_, err := harness.Database(t).Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = ''2s''', current_database()); END $$`)
	require.NoError(t, err)
	for name, dsn := range harness.Poolers(t, harness.DSN(t)) {
		require.ErrorIs(t, check(t, dsn, map[string]string{"lock_timeout": "2s"}), pooler.Err, name)
	}
}

func TestOnlyWhatAPoolerSaysIsExplained(t *testing.T) {
	t.Parallel()
	for _, e := range []pgconn.PgError{
		{Code: "08P01", Message: "unsupported startup parameter: statement_timeout"},
		{Code: "08P01", Message: "unsupported startup parameter in options: lock_timeout"}, // PgBouncer 1.20
		{Code: "42P05", Message: `prepared statement "s1" already exists`},
		{Code: "26000", Message: `prepared statement "s1" does not exist`},
	} {
		err := pooler.Explain(fmt.Errorf("migrate: %w", &e))
		require.ErrorIs(t, err, pooler.Err)
		require.ErrorContains(t, err, e.Message)
		require.NotContains(t, err.Error(), "\n", "one line")
		require.Equal(t, err, pooler.Explain(err), "once is enough")
	}
	for _, err := range []error{
		nil, errors.New("connection refused"),
		&pgconn.PgError{Code: "42704", Message: `unrecognized configuration parameter "lock_timeout"`},
		&pgconn.PgError{Code: "08P01", Message: "invalid message format"},
	} {
		require.Equal(t, err, pooler.Explain(err))
	}
}
