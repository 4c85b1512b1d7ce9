package harness_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

func TestTwoDatabasesAreIndependent(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			db := harness.Database(t)
			_, err := db.Exec(t.Context(), `INSERT INTO products (sku, stock, price_cents, currency) VALUES ('demo', 1, 1, 'EUR')`)
			require.NoError(t, err, "another test's row is in this test's database")
		})
	}
}

func TestDSNNamesTheDatabaseOfTheSameTest(t *testing.T) {
	t.Parallel()
	pool, dsn := harness.Database(t), harness.DSN(t)
	var want string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT current_database()").Scan(&want))
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(t.Context())
	var got string
	require.NoError(t, c.QueryRow(t.Context(), "SELECT current_database()").Scan(&got))
	require.Equal(t, want, got)
}

func TestDatabaseIsGoneAfterItsTest(t *testing.T) {
	t.Parallel()
	dsn := harness.DSN(t) // also skips this test, not only its part, without a Postgres
	t.Run("one", func(t *testing.T) {
		harness.Database(t)
		dsn = harness.DSN(t)
	})
	c, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		_ = c.Close(t.Context())
	}
	require.ErrorContains(t, err, "does not exist")
}

func TestDatabaseAcknowledgesOnlyWhatIsWritten(t *testing.T) {
	t.Parallel()
	var mode string
	require.NoError(t, harness.Database(t).QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&mode))
	require.Equal(t, "on", mode, "the product refuses to start on anything else")
}

func TestRedisNeverEvicts(t *testing.T) {
	t.Parallel()
	info, err := harness.Redis(t).Info(t.Context(), "memory").Result()
	require.NoError(t, err)
	require.Contains(t, info, "maxmemory_policy:noeviction")
}

func TestServerKilledAndRestartedKeepsAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	srv := harness.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
	c := redis.NewClient(&redis.Options{Addr: srv.Addr})
	defer c.Close()
	require.NoError(t, c.Set(t.Context(), "place", "42", 0).Err())
	srv.Kill()
	require.Error(t, devstack.Ping(t.Context(), srv.Addr), "a killed server answers")
	require.NoError(t, srv.Start())
	got, err := c.Get(t.Context(), "place").Result()
	require.NoError(t, err)
	require.Equal(t, "42", got)
}

func TestKilledPostgresKeepsCommittedRows(t *testing.T) {
	t.Parallel()
	pg := harness.PostgresServer(t)
	require.NoError(t, pg.CreateDatabase(t.Context(), "shop"))
	require.NoError(t, pg.Exec(t.Context(), "shop", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)"))
	pg.Kill()
	require.Error(t, pg.Exec(t.Context(), "shop", "SELECT 1"), "a killed server answers")
	require.NoError(t, pg.Start())
	require.NoError(t, pg.Exec(t.Context(), "shop", "DO $$ BEGIN ASSERT (SELECT n FROM kept) = 7; END $$"))
}

func TestEventuallyReturnsAsSoonAsItHolds(t *testing.T) {
	t.Parallel()
	calls := 0
	harness.Eventually(t, time.Minute, "third call", func() bool { calls++; return calls == 3 })
	require.Equal(t, 3, calls)
}
