package migrations_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

func TestCheckAcceptsOnlyTheVersionOfTheBinary(t *testing.T) {
	t.Parallel()
	db, dsn := harness.Database(t), harness.DSN(t)
	require.NoError(t, migrations.Check(t.Context(), db))

	_, err := db.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)")
	require.NoError(t, err)
	err = migrations.Check(t.Context(), db)
	require.ErrorIs(t, err, migrations.ErrSchema, "a newer database")
	require.ErrorContains(t, err, "version 99999")

	_, err = db.Exec(t.Context(), "DELETE FROM goose_db_version WHERE version_id = 99999")
	require.NoError(t, err)
	_, err = migrations.Down(t.Context(), dsn)
	require.NoError(t, err)
	require.ErrorIs(t, migrations.Check(t.Context(), db), migrations.ErrSchema, "an older database")
}

func TestCheckOfAnUntouchedDatabaseNeedsNoVersionTable(t *testing.T) {
	t.Parallel()
	db := harness.Database(t)
	_, err := db.Exec(t.Context(), "DROP TABLE goose_db_version")
	require.NoError(t, err)
	require.ErrorIs(t, migrations.Check(t.Context(), db), migrations.ErrSchema)
	var made bool
	require.NoError(t, db.QueryRow(t.Context(), "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&made))
	require.False(t, made, "Check wrote to the database")
}

func TestDownTakesBackWhatUpMade(t *testing.T) {
	t.Parallel()
	db, dsn := harness.Database(t), harness.DSN(t)
	list, err := migrations.Status(t.Context(), dsn)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for i := len(list) - 1; i >= 0; i-- {
		require.WithinDuration(t, time.Now(), list[i].AppliedAt, time.Hour)
		name, err := migrations.Down(t.Context(), dsn)
		require.NoError(t, err)
		require.Equal(t, list[i].Name, name)
	}
	require.Equal(t, 0, relations(t, db), "Down left something")
	name, err := migrations.Down(t.Context(), dsn)
	require.NoError(t, err)
	require.Empty(t, name, "there was nothing to take back")

	pending, err := migrations.Status(t.Context(), dsn)
	require.NoError(t, err)
	require.True(t, pending[0].AppliedAt.IsZero(), "taken back, but shown as applied")
	names, err := migrations.Up(t.Context(), dsn)
	require.NoError(t, err)
	require.Len(t, names, len(list))
	require.NoError(t, migrations.Check(t.Context(), db))
}

// relations counts tables and sequences other than goose's own.
func relations(t *testing.T, db *pgxpool.Pool) (n int) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace
		AND relkind IN ('r', 'S') AND relname NOT LIKE 'goose%'`
	require.NoError(t, db.QueryRow(t.Context(), query).Scan(&n))
	return n
}

func TestAStepThatCantHaveATableGivesUpAndChangesNothing(t *testing.T) {
	t.Parallel()
	db, dsn := harness.Database(t), harness.DSN(t)
	list, err := migrations.Status(t.Context(), dsn)
	require.NoError(t, err)
	for range list {
		_, err := migrations.Down(t.Context(), dsn)
		require.NoError(t, err)
	}
	inTheWay, err := db.Begin(t.Context())
	require.NoError(t, err)
	_, err = inTheWay.Exec(t.Context(), "CREATE TABLE outbox ()")
	require.NoError(t, err)
	names, err := migrations.Up(t.Context(), dsn+"&lock_timeout=100ms")
	require.ErrorContains(t, err, "lock timeout")
	require.Empty(t, names)
	require.NoError(t, inTheWay.Rollback(t.Context()))
	require.Equal(t, 0, relations(t, db), "half a schema is left")
	names, err = migrations.Up(t.Context(), dsn)
	require.NoError(t, err)
	require.Len(t, names, len(list))
}

func TestManyProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	db, dsn := harness.Database(t), harness.DSN(t)
	all, err := migrations.Status(t.Context(), dsn)
	require.NoError(t, err)
	for range all {
		_, err := migrations.Down(t.Context(), dsn)
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	applied, errs := make([][]string, 6), make([]error, 6)
	for i := range applied {
		wg.Go(func() { applied[i], errs[i] = migrations.Up(t.Context(), dsn) })
	}
	wg.Wait()
	total := 0
	for i := range applied {
		require.NoError(t, errs[i])
		total += len(applied[i])
	}
	require.Equal(t, len(all), total, "each migration is applied once, by one of them")
	require.NoError(t, migrations.Check(t.Context(), db))
}

func TestNoConnectionIsLeftOpen(t *testing.T) {
	t.Parallel()
	db, dsn := harness.Database(t), harness.DSN(t)
	_, err := migrations.Up(t.Context(), dsn)
	require.NoError(t, err)
	_, err = migrations.Status(t.Context(), dsn)
	require.NoError(t, err)
	harness.Eventually(t, 5*time.Second, "only this test is connected", func() bool {
		var others int
		err := db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = '' AND pid <> pg_backend_pid()`).Scan(&others)
		return err == nil && others == 0
	})
}

func TestUpTakesTheURLOfAPool(t *testing.T) {
	t.Parallel()
	_, err := migrations.Up(t.Context(), harness.DSN(t)+"&pool_max_conns=3")
	require.NoError(t, err)
}
