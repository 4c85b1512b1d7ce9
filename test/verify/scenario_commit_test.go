//go:build faults

package verify

import (
	"net/http"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
)

// bank is a Postgres of the test's own that can be made to hold a COMMIT back:
// written, and not yet there for anybody else. That is what waiting for a standby
// is, and here the standby never comes.
type bank struct {
	*shop
	db         *devstack.Postgres
	first, any *fault.Process // first is the one whose COMMITs can be held
}

func openBank(t *testing.T) *bank {
	t.Helper()
	db, err := devstack.StartPostgres(t.Context(), devstack.Options{Args: []string{"-c", "wal_level=replica", "-c", "max_wal_senders=2"}})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.NoError(t, db.CreateDatabase(t.Context(), "shop"))
	_, err = migrations.Up(t.Context(), db.DSN("shop"))
	require.NoError(t, err)
	_, redisURL := ownRedis(t)
	u, err := url.Parse(db.DSN("shop"))
	require.NoError(t, err)
	patient := *u
	q := u.Query()
	q.Set("synchronous_commit", "local") // waits for no standby
	u.RawQuery = q.Encode()
	b := &bank{db: db}
	b.shop = openShop(t, redisURL, u.String(), func(r *room.Settings) { r.ClaimLeaseSeconds, r.BatchSize = 11, 10 })
	b.any = b.start()
	b.first = b.start("LINEKEEPER_ROLES=api", "LINEKEEPER_DATABASE_URL="+patient.String())
	b.begun()
	return b
}

// await has COMMITs of the first process wait, or no longer.
func (b *bank) await(standby string) {
	b.t.Helper()
	_, err := b.pool.Exec(b.t.Context(), "ALTER SYSTEM SET synchronous_standby_names = '"+standby+"'")
	require.NoError(b.t, err)
	_, err = b.pool.Exec(b.t.Context(), "SELECT pg_reload_conf()")
	require.NoError(b.t, err)
	eventually(b.t, longEnough, "the server knows", func() bool {
		return sqlValue[string](b.shop, "SHOW synchronous_standby_names") == standby
	})
}

// holdCommit has a customer order at the first process, and stops the session of
// Postgres in which the COMMIT of it waits. goOn lets it end, as late as one
// likes; answered is what the customer was told.
func (b *bank) holdCommit(c *customer) (goOn func(), answered <-chan heard) {
	b.t.Helper()
	b.await("nobody")
	done := make(chan heard, 1)
	go func() { done <- c.buy(b.first) }()
	var pid int
	eventually(b.t, longEnough, "a COMMIT waits", func() bool {
		return b.pool.QueryRow(b.t.Context(),
			`SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query ILIKE 'commit%'`).Scan(&pid) == nil
	})
	require.NoError(b.t, syscall.Kill(pid, syscall.SIGSTOP))
	b.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	b.await("")
	tally.Faults(1)
	return func() { require.NoError(b.t, syscall.Kill(pid, syscall.SIGCONT)) }, done
}

// O4, O7 on whole processes: the COMMIT of a first attempt is held until its
// lease is over and a second attempt, at another process, has reached Postgres.
func TestCommitHeldPastItsLeaseAndASecondAttemptAreOneOrder(t *testing.T) {
	t.Parallel()
	b := openBank(t)
	ann := b.customer().admitted(b.any)
	goOn, answered := b.holdCommit(ann)
	second := ann.twin()
	second.buy(b.any).is(http.StatusConflict, "order-in-progress")
	first := (<-answered).is(http.StatusServiceUnavailable, "order-outcome-unknown")
	require.NotEmpty(t, first.header.Get("Retry-After"))

	var other chan heard
	eventually(t, longEnough, "the lease is over and a second attempt waits behind the first", func() bool {
		if other == nil {
			asked := make(chan heard, 1)
			go func() { asked <- second.buy(b.any) }()
			other = asked
		}
		select {
		case a := <-other:
			a.is(http.StatusConflict, "order-in-progress")
			other = nil
		default:
		}
		return b.behind() == 1
	})
	goOn()
	a := <-other
	if a.code == "order-in-progress" { // it has let go in the last moment
		a = second.buy(b.any)
	}
	found := a.is(http.StatusOK).order
	require.Equal(t, found.ID, ann.buy(b.first).is(http.StatusOK).order.ID, "both callers get one id")
	require.Equal(t, 1, b.orders())
	require.Equal(t, 99_999, sqlValue[int](b.shop, "SELECT stock FROM products"))
	b.judge()
}

// behind is how many sessions wait for the transaction of another.
func (b *bank) behind() int {
	return sqlValue[int](b.shop, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'`)
}

// The process dies while its COMMIT is under way. Nobody can know what became of
// it, until Postgres does: then the retry finds the order.
func TestOrderOfAProcessThatDiedInItsCommitIsFoundByTheRetry(t *testing.T) {
	t.Parallel()
	b := openBank(t)
	ann := b.customer().admitted(b.any)
	goOn, answered := b.holdCommit(ann)
	b.first.Kill()
	require.Error(t, (<-answered).err, "the client has lost its connection")
	second := ann.twin()
	second.buy(b.any).is(http.StatusConflict, "order-in-progress")
	goOn()
	var found heard
	eventually(t, longEnough, "the order is found", func() bool {
		found = second.buy(b.any)
		return found.status != http.StatusConflict
	})
	found.is(http.StatusOK)
	require.Equal(t, "true", found.header.Get("Idempotency-Replayed"))
	require.Equal(t, 1, b.orders())
	require.Equal(t, found.order.ID, sqlValue[string](b.shop, "SELECT id::text FROM orders"))
	b.judge()
}
