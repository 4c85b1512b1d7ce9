package e2e

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// plain are the lines of a process's stderr that are for people: all but the log.
func plain(stderr string) (lines []string) {
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "{") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestEveryWrongSettingIsToldAtOnceAndNothingIsStarted(t *testing.T) {
	t.Parallel()
	secret := "c2VjcmV0c2VjcmV0"
	code, _, said := tool(t, []string{
		"LINEKEEPER_DATABASE_URL=mysql://here/db",
		"LINEKEEPER_LEADER_TTL=1s",
		"LINEKEEPER_ROLES=api,poet",
		"LINEKEEPER_IDENTITY=header",
		"LINEKEEPER_KEY_PREFIX={x}",
		"LINEKEEPER_LISTEN=nowhere",
		"LINEKEEPER_LIMIT_ENTER_ADDRESS=many",
		"LINEKEEPER_LIMIT_POLL_MEMBER=fixed:3/1s",
		"LINEKEEPER_KEYS=k1:" + secret,
		"LINEKEEPER_ADMIN_TOKENS=ops:emperor:12",
	}, "serve")
	require.Equal(t, 2, code)
	for _, setting := range []string{"REDIS_URL", "DATABASE_URL", "LEADER_TTL", "ROLES", "IDENTITY", "KEY_PREFIX", "LISTEN", "KEYS", "ADMIN_TOKENS", "LIMIT_ENTER_ADDRESS", "LIMIT_POLL_MEMBER"} {
		require.Contains(t, said, "LINEKEEPER_"+setting, "not all that is wrong is told")
	}
	require.NotContains(t, said, secret, "a bad key must not be repeated")
	require.NotContains(t, said, "usage", "what is wrong must not drown in help")
}

func TestTakenPortIsOneLineThatNamesTheSetting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, setting := range []string{"LINEKEEPER_LISTEN", "LINEKEEPER_ADMIN_LISTEN"} {
		w.refuses(1, setting, setting+"="+l.Addr().String())
	}
}

// refuses starts a process that must end with this code and one line of why.
func (w *world) refuses(code int, why string, more ...string) {
	w.t.Helper()
	got, _, said := tool(w.t, w.settings(more...), "serve")
	require.Equal(w.t, code, got, "%s", said)
	lines := plain(said)
	require.Len(w.t, lines, 1, "%s", said)
	require.Contains(w.t, lines[0], why)
	require.NotContains(w.t, said, `"msg":"serving"`)
}

func TestPartsThatWouldBreakPromisesAreRefused(t *testing.T) {
	t.Parallel()
	// Case 41, redis/redis#6565 and #6378.
	t.Run("a Redis that evicts", func(t *testing.T) {
		t.Parallel()
		w := onRedis(t, harness.RedisServer(t, "--maxmemory-policy", "allkeys-lru"))
		w.refuses(1, "maxmemory-policy allkeys-lru")
		p := w.start("LINEKEEPER_ALLOW_EVICTION=true")
		require.Len(t, p.logged("redis may evict people's places"), 1, "who overrides it is told so at each start")
	})
	t.Run("a Postgres that forgets", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		_, err := harness.Database(t).Exec(t.Context(), `DO $$ BEGIN
			EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
		require.NoError(t, err)
		w.refuses(1, "synchronous_commit")
	})
	t.Run("a database of another schema", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		database := []string{"LINEKEEPER_DATABASE_URL=" + w.dsn}
		code, _, said := tool(t, database, "migrate", "down")
		require.Equal(t, 0, code, said)
		w.refuses(1, "linekeeper migrate up")
		code, _, said = tool(t, database, "migrate", "up")
		require.Equal(t, 0, code, said)
		p := w.start()
		w.open(nil) // down and up again have broken nothing
		ann := w.shopper()
		ann.admitted(p)
		ann.order(p, "demo", 1).is(201)
		ann.until(p, queue.Consumed)
	})
	t.Run("but a Redis that keeps nothing is only warned of", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		require.Len(t, w.start().logged(noAppendOnlyFile), 1)
	})
}

func TestRolesMayBeSpreadOverProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	front, back := w.start("LINEKEEPER_ROLES=api"), w.start("LINEKEEPER_ROLES=scheduler,relay", "LINEKEEPER_KEYS=")
	w.open(nil)
	ann := w.shopper()
	ann.admitted(front)
	made := ann.order(front, "demo", 1).is(201).order()
	require.Equal(t, made.ID, *ann.until(front, queue.Consumed).OrderID)
	require.False(t, front.leads(), "a process without the role must not lead")
	require.True(t, back.leads())
	w.untilHealth(patience, 200, front, back)
	w.ask("GET", back.public+"/livez", nil, "").is(200)
	stranger := w.ask("GET", back.public+"/nothing", nil, "")
	stranger.is(404, "not-found")
	require.NotEmpty(t, stranger.header.Get("X-Request-Id"))
}
