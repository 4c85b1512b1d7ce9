package e2e

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// Case 33, Openpanel-dev/groupmq#16: Redis forgets all scripts, and is started
// anew, while people come and order. No error of it lasts, and a process whose
// scripts do not run says that it is not ready, however well PING is answered.
func TestCase33ForgottenScriptsAreNoLastingErrorAndReadinessRunsOne(t *testing.T) {
	t.Parallel()
	r := harness.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
	w := onRedis(t, r)
	a, b := w.pair()
	w.open(settings{"claimLeaseSeconds": 11})
	direct := redis.NewClient(&redis.Options{Addr: r.Addr})
	t.Cleanup(func() { _ = direct.Close() })
	c := (&crowd{w: w, at: turns(a, b), ordering: true, mayFail: unavailable}).come(4)
	c.goesOn(8)
	for range 3 {
		require.NoError(t, direct.ScriptFlush(t.Context()).Err())
		c.goesOn(4)
	}
	require.Zero(t, c.failures(), "a flush of scripts has been noticed")
	r.Kill()
	require.NoError(t, r.Start())
	c.goesOnWithoutFailure(12) // once breakers have closed, and the leases have ended of claims that the outage has kept
	c.verify(b)
	w.untilHealth(redIn, 200, a, b)

	right := func(rule string) {
		require.NoError(t, direct.Do(t.Context(), "ACL", "SETUSER", "default", rule).Err())
	}
	right("-evalsha")
	w.untilHealth(redIn+slack, 503, a, b)
	require.NoError(t, direct.Ping(t.Context()).Err())
	right("+evalsha")
	w.untilHealth(redIn, 200, a, b)
	ann := w.shopper()
	ann.admitted(a)
	ann.order(b, "demo", 1).is(201)
}

// Case 74, gpustack/gpustack#6105: the server is as a primary that has been
// demoted, on which every new session can only read. The processes say so, place
// no order, and keep no such session when there are better ones to be had.
func TestCase74ReadOnlyPostgresIsRedAndLeftWithinSeconds(t *testing.T) {
	t.Parallel()
	pg := harness.PostgresServer(t)
	w := onPostgres(t, pg)
	a, b := w.pair()
	w.open(settings{"pickupTtlSeconds": 60})
	ann, bob := w.shopper(), w.shopper()
	ann.admitted(a)
	bob.admitted(b)
	as := func(sql string) { require.NoError(t, pg.Exec(t.Context(), "postgres", sql)) }
	as("ALTER DATABASE shop SET default_transaction_read_only = on")
	as("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'shop'")
	w.untilHealth(redIn+slack, 503, a, b)
	for _, p := range []*process{a, b} {
		ann.order(p, "demo", 1).is(503, "unavailable")
		w.ask("GET", p.public+"/livez", nil, "").is(200)
	}
	back := time.Now()
	as("ALTER DATABASE shop RESET default_transaction_read_only")
	w.untilHealth(10*time.Second, 200, a, b)
	ann.order(b, "demo", 1).is(201) // and not 200: there was none before
	bob.order(a, "demo", 1).is(201)
	require.Less(t, time.Since(back), 10*time.Second+slack)
	require.Equal(t, 2, w.placed())
	w.shopper().admitted(a) // the scheduler writes too
}
