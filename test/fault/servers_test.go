package fault

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

func private(t *testing.T, args ...string) *Redis {
	t.Helper()
	r := NewRedis(harness.RedisServer(t, args...))
	t.Cleanup(r.Close)
	return r
}

func TestKilledRedisKeepsWhatItsAppendOnlyFileHas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		kept string
	}{
		"with":    {[]string{"--appendonly", "yes", "--appendfsync", "always"}, "there"},
		"without": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := private(t, tc.args...)
			require.NoError(t, r.Client().Set(t.Context(), "k", "there", 0).Err())
			r.Kill()
			require.Error(t, r.Client().Ping(t.Context()).Err())
			require.NoError(t, r.Start())
			require.Equal(t, tc.kept, r.Client().Get(t.Context(), "k").Val())
		})
	}
}

func TestPowerCutForgetsTheLastMoments(t *testing.T) {
	t.Parallel()
	r := private(t, "--appendonly", "yes", "--appendfsync", "everysec")
	add := func() { _ = r.Client().RPush(t.Context(), "list", "one more", "of two").Err() }
	for range 100 {
		add()
	}
	cut := make(chan error, 1)
	go func() { cut <- r.PowerCut(t.Context(), 300*time.Millisecond) }()
	for len(cut) == 0 {
		add()
	}
	require.NoError(t, <-cut)
	require.NoError(t, r.Start())
	// A pool that has met nobody for a while goes on refusing for a moment.
	var n int64
	harness.Eventually(t, 10*time.Second, "the client reaches the server again", func() bool {
		var err error
		n, err = r.Client().LLen(t.Context(), "list").Result()
		return err == nil
	})
	require.GreaterOrEqual(t, n, int64(200))
	require.Less(t, n, int64(2000), "nothing has been forgotten")
	require.Zero(t, n%2, "half a command is left")
}

func TestFullRedisRefusesWhatGrows(t *testing.T) {
	t.Parallel()
	r := private(t)
	require.NoError(t, r.Fill(t.Context()))
	require.True(t, redis.HasErrorPrefix(r.Client().Set(t.Context(), "k", "v", 0).Err(), "OOM"))
	require.NoError(t, r.Drain(t.Context()))
	require.NoError(t, r.Client().Set(t.Context(), "k", "v", 0).Err())
	require.NoError(t, r.Crowd(t.Context(), 95))
	require.NoError(t, r.Client().Set(t.Context(), "k", "v", 0).Err(), "nearly full is not full")
	require.NotEqual(t, "0", r.Client().ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"])
}

func TestDemotedRedisKeepsItsDataAndTakesNoWrites(t *testing.T) {
	t.Parallel()
	r := private(t)
	require.NoError(t, r.Client().Set(t.Context(), "k", "v", 0).Err())
	require.NoError(t, r.Demote(t.Context()))
	require.True(t, redis.HasErrorPrefix(r.Client().Set(t.Context(), "k", "w", 0).Err(), "READONLY"))
	require.Equal(t, "v", r.Client().Get(t.Context(), "k").Val())
	require.NoError(t, r.Promote(t.Context()))
	require.NoError(t, r.Client().Set(t.Context(), "k", "w", 0).Err())
	require.NoError(t, r.Client().Set(t.Context(), "term", 7, 0).Err())
	require.NoError(t, r.RollBack(t.Context(), "term", 2))
	require.Equal(t, "5", r.Client().Get(t.Context(), "term").Val())
}

// The client of a server that was away has not noticed yet that it is back.
func TestServerThatIsBackCanBeBrokenAtOnce(t *testing.T) {
	t.Parallel()
	r := private(t)
	r.Kill()
	for range 200 { // more failures than the pool has connections
		require.Error(t, r.Client().Ping(t.Context()).Err())
	}
	require.NoError(t, r.Start())
	require.NoError(t, r.ForgetScripts(t.Context()))
}

func TestForgottenScriptsAreGone(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := redis.NewScript("return 1")
	require.NoError(t, s.Load(t.Context(), r.Client()).Err())
	require.NoError(t, r.ForgetScripts(t.Context()))
	require.Equal(t, []bool{false}, s.Exists(t.Context(), r.Client()).Val())
	require.NoError(t, r.Client().Set(t.Context(), "k", "v", 0).Err())
	require.NoError(t, r.FlushAll(t.Context()))
	require.Empty(t, r.Client().Get(t.Context(), "k").Val())
}

func TestPausedClientsWait(t *testing.T) {
	t.Parallel()
	r := private(t)
	require.NoError(t, r.PauseClients(t.Context(), time.Hour, true))
	require.ErrorIs(t, r.Client().Get(t.Context(), "k").Err(), redis.Nil, "reads go on")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, r.Client().Set(ctx, "k", "v", 0).Err())
	require.NoError(t, r.ResumeClients(t.Context()))
	require.NoError(t, r.Client().Set(t.Context(), "k", "v", 0).Err())

	begun := time.Now()
	require.NoError(t, r.PauseClients(t.Context(), 200*time.Millisecond, false))
	require.NoError(t, r.Client().Get(t.Context(), "k").Err())
	require.GreaterOrEqual(t, time.Since(begun), 150*time.Millisecond)
}

func TestDroppedClientsHaveToConnectAgain(t *testing.T) {
	t.Parallel()
	r := private(t)
	other := NewRedis(r.Server)
	t.Cleanup(other.Close)
	first := other.Client().ClientID(t.Context()).Val()
	require.NoError(t, r.DropClients(t.Context()))
	harness.Eventually(t, 5*time.Second, "it is another connection", func() bool {
		id, err := other.Client().ClientID(t.Context()).Result()
		return err == nil && id != first
	})
}

func database(t *testing.T) *Database {
	t.Helper()
	p := harness.PostgresServer(t)
	require.NoError(t, p.CreateDatabase(t.Context(), "shop"))
	d := NewDatabase(p, "shop")
	require.NoError(t, p.Exec(t.Context(), "shop", `CREATE TABLE products (sku text PRIMARY KEY, stock int);
		INSERT INTO products VALUES ('a', 100), ('b', 100)`))
	return d
}

func code(err error) string {
	var answered *pgconn.PgError
	errors.As(err, &answered)
	if answered == nil {
		return ""
	}
	return answered.Code
}

func TestPostgresIsReadOnlyForSessionsThatAreThere(t *testing.T) {
	t.Parallel()
	d := database(t)
	c, err := pgx.Connect(t.Context(), d.DSN())
	require.NoError(t, err)
	defer c.Close(t.Context())
	require.NoError(t, d.ReadOnly(t.Context()))
	write := func() error {
		_, err := c.Exec(t.Context(), "UPDATE products SET stock = 1")
		return err
	}
	harness.Eventually(t, 5*time.Second, "the session refuses to write", func() bool { return code(write()) == "25006" })
	require.NoError(t, d.Writable(t.Context()))
	harness.Eventually(t, 5*time.Second, "it writes again", func() bool { return write() == nil })

	n, err := d.TerminateSessions(t.Context())
	require.NoError(t, err)
	require.Positive(t, n, "a session that has just been closed may still be there, too")
	require.Equal(t, "57P01", code(write()))
	d.Kill()
	_, err = pgx.Connect(t.Context(), d.DSN())
	require.Error(t, err)
	require.NoError(t, d.Start())
	c, err = pgx.Connect(t.Context(), d.DSN())
	require.NoError(t, err)
	require.NoError(t, write())
}

// The product's transaction is the one that gives way.
func TestDeadlockEndsTheOtherTransaction(t *testing.T) {
	t.Parallel()
	d := database(t)
	c, err := pgx.Connect(t.Context(), d.DSN())
	require.NoError(t, err)
	defer c.Close(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	rounds := make(chan int, 1)
	go func() { rounds <- d.Deadlock(ctx, 100*time.Millisecond, "a", "b") }()
	harness.Eventually(t, 20*time.Second, "a deadlock is found", func() bool {
		tx, err := c.Begin(t.Context())
		require.NoError(t, err)
		defer tx.Rollback(t.Context())
		for _, sku := range []string{"a", "b"} {
			if _, err = tx.Exec(t.Context(), "UPDATE products SET stock = stock - 1 WHERE sku = $1", sku); err != nil {
				return code(err) == "40P01"
			}
		}
		return false
	})
	time.AfterFunc(time.Second, cancel) // time for the rival to get its locks
	require.Positive(t, <-rounds)
}
