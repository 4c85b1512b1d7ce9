package fault

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// commitThrough commits one row on a pool and returns what COMMIT said.
func commitThrough(t *testing.T, pool *pgxpool.Pool, row int) error {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "INSERT INTO met VALUES ($1)", row)
	require.NoError(t, err)
	return tx.Commit(t.Context())
}

// broken is a pool whose connections go through w, either by its own dialer or
// by a proxy that has w between itself and the server.
func broken(t *testing.T, w *Postgres, proxied bool) *pgxpool.Pool {
	t.Helper()
	c, err := pgxpool.ParseConfig(harness.DSN(t))
	require.NoError(t, err)
	if proxied {
		p, err := NewProxyBy(c.ConnConfig.Host+":"+port(c), NewDice(1), w.DialFunc)
		require.NoError(t, err)
		t.Cleanup(p.Close)
		dialer := p.Addr()
		c.ConnConfig.DialFunc = dialTo(dialer)
	} else {
		w.Configure(c)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestCommitMeetsEachFault(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault     CommitFault
		committed bool // the row is there in the end
		nowhere   bool // the client knows that it is not
		fatal     bool
	}{
		{fault: RefuseCommit, nowhere: true},
		{fault: CutBefore},
		{fault: CutAfter, committed: true},
		{fault: LateCommit, committed: true},
		{fault: FatalBefore, fatal: true},
		{fault: FatalAfter, committed: true, fatal: true},
	} {
		for way, proxied := range map[string]bool{"dialer": false, "proxy": true} {
			t.Run(string(tc.fault)+" by "+way, func(t *testing.T) {
				t.Parallel()
				direct := harness.Database(t)
				_, err := direct.Exec(t.Context(), "CREATE TABLE met (row int)")
				require.NoError(t, err)
				w := NewPostgres(NewDice(3), 0, 300*time.Millisecond)
				pool := broken(t, w, proxied)
				require.NoError(t, commitThrough(t, pool, 1), "nothing is due yet")

				met := w.Next(tc.fault)
				begun := time.Now()
				err = commitThrough(t, pool, 2)
				require.Error(t, err)
				require.Less(t, time.Since(begun), 5*time.Second)
				<-met
				if tc.nowhere && !proxied {
					require.True(t, pgconn.SafeToRetry(err), "%v", err)
				}
				var answered *pgconn.PgError
				require.Equal(t, tc.fatal, errors.As(err, &answered), "%v", err)
				if tc.fatal {
					require.Equal(t, "57P01", answered.Code)
					require.Equal(t, "FATAL", answered.SeverityUnlocalized)
				}
				w.Settle()
				var rows int
				require.NoError(t, direct.QueryRow(t.Context(), "SELECT count(*) FROM met WHERE row = 2").Scan(&rows))
				require.Equal(t, tc.committed, rows == 1)
				require.Equal(t, map[CommitFault]int{tc.fault: 1}, w.Counts())
				require.NoError(t, commitThrough(t, pool, 3), "the next connection is whole")
			})
		}
	}
}

// What is late is not there when the client has been told: that is the point.
func TestLateCommitComesAfterTheClientHasGivenUp(t *testing.T) {
	t.Parallel()
	direct := harness.Database(t)
	_, err := direct.Exec(t.Context(), "CREATE TABLE met (row int)")
	require.NoError(t, err)
	w := NewPostgres(NewDice(3), 0, 20*time.Second) // of which the dice of 3 take more than a second
	pool := broken(t, w, false)
	w.Next(LateCommit)
	require.Error(t, commitThrough(t, pool, 1))
	var rows int
	require.NoError(t, direct.QueryRow(t.Context(), "SELECT count(*) FROM met").Scan(&rows))
	require.Zero(t, rows)
	w.Settle()
	require.NoError(t, direct.QueryRow(t.Context(), "SELECT count(*) FROM met").Scan(&rows))
	require.Equal(t, 1, rows)
}

func TestCommitsAreBrokenAsOftenAsAsked(t *testing.T) {
	t.Parallel()
	direct := harness.Database(t)
	_, err := direct.Exec(t.Context(), "CREATE TABLE met (row int)")
	require.NoError(t, err)
	w := NewPostgres(NewDice(5), 0.5, 0)
	pool := broken(t, w, false)
	failed := 0
	for i := range 60 {
		if commitThrough(t, pool, i) != nil {
			failed++
		}
	}
	require.InDelta(t, 30, failed, 15)
	require.Len(t, w.Counts(), len(CommitFaults()), "some never happen")
	w.Set(0)
	require.NoError(t, commitThrough(t, pool, 99))
}
