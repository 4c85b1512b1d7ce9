package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// secure is a deployment that reaches both servers by TLS alone.
func secure(t *testing.T) (w *world, theirs *harness.Authority, cert, key string) {
	t.Helper()
	a := harness.NewAuthority(t)
	cert, key = a.Issue("linekeeper")
	pg := harness.PostgresServer(t)
	w = onPostgres(t, pg)
	harness.SecurePostgres(t, pg, a)
	w.dsn = strings.Replace(w.dsn, "sslmode=disable", "sslmode=verify-full&sslrootcert="+a.File, 1)
	w.redis = fmt.Sprintf("rediss://%s?sslrootcert=%s&sslcert=%s&sslkey=%s", harness.SecureRedis(t, a), a.File, cert, key)
	return w, harness.NewAuthority(t), cert, key
}

func TestTheWholeWayOverTLS(t *testing.T) {
	t.Parallel()
	w, _, _, _ := secure(t)
	a := w.start()
	w.open(nil)
	ann := w.shopper()
	ann.admitted(a)
	ann.order(a, "demo", 1).is(201)
	ann.until(a, queue.Consumed)
	require.Positive(t, sql[int](w, "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE s.ssl AND a.datname = 'shop'"))
	require.True(t, sql[bool](w, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
}

// TestAServerThatIsNotTrustedIsRefusedAtOnceInOneLine: waiting would not mend it.
// It may have had to wait for a server that a busy machine keeps from answering.
func TestAServerThatIsNotTrustedIsRefusedAtOnceInOneLine(t *testing.T) {
	t.Parallel()
	w, theirs, cert, key := secure(t)
	addr, _, _ := strings.Cut(strings.TrimPrefix(w.redis, "rediss://"), "?")
	ours := w.redis[strings.Index(w.redis, "sslrootcert=")+len("sslrootcert=") : strings.Index(w.redis, "&sslcert")]
	for setting, want := range map[string]string{
		"LINEKEEPER_REDIS_URL=" + strings.Replace(w.redis, ours, theirs.File, 1):            "LINEKEEPER_REDIS_URL must name the host that the certificate is for, and with sslrootcert=FILE who has signed it",
		"LINEKEEPER_REDIS_URL=rediss://" + addr + "?sslrootcert=" + ours:                    "LINEKEEPER_REDIS_URL must name one, with sslcert=FILE",
		"LINEKEEPER_DATABASE_URL=" + strings.Replace(w.dsn, ours, theirs.File, 1):           "LINEKEEPER_DATABASE_URL must name the host that the certificate is for, and with sslrootcert=FILE who has signed it",
		"LINEKEEPER_DATABASE_URL=" + strings.Replace(w.dsn, "127.0.0.1", "localhost", 1):    "not valid for any names",
		"LINEKEEPER_REDIS_URL=rediss://" + addr + "?sslcert=" + cert + "&sslkey=" + key[1:]: "can't be used",
	} {
		code, out, said := tool(t, w.settings(setting), "serve")
		require.NotZero(t, code, setting)
		require.Contains(t, said, want, "%s: %s", setting, out)
		for line := range strings.Lines(said) {
			if strings.Contains(line, "waiting for a part") {
				require.NotContains(t, line, "tls:", "it is refused at once")
				require.NotContains(t, line, "x509:", "it is refused at once")
			}
		}
		last := said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:]
		require.Contains(t, last, want, "one line says it")
	}
}
