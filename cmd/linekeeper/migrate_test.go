package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/test/harness"
)

// schema is all that a migration has made, as lines that can be compared.
func schema(t *testing.T, db *pgxpool.Pool) []string {
	t.Helper()
	const query = `
SELECT coalesce(string_agg(line, E'\n' ORDER BY line), '') FROM (
  SELECT format('table %s %s %s', c.relname, c.relkind, c.reloptions) FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
  UNION ALL
  SELECT format('column %s.%s %s %s null=%s %s default %s', c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod),
      NOT a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
  UNION ALL
  SELECT format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL
  SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL
  SELECT format('sequence %s %s %s %s %s', sequencename, data_type, start_value, increment_by, cycle) FROM pg_sequences WHERE schemaname = 'public'
) AS made (line)`
	var text string
	require.NoError(t, db.QueryRow(t.Context(), query).Scan(&text))
	return strings.Split(text, "\n")
}

// migrating is a shell on a database without a schema, and what the schema is to be.
func migrating(t *testing.T) (s *shell, db *pgxpool.Pool, want []string) {
	t.Helper()
	s, db = newShell(t), harness.Database(t)
	s.env["LINEKEEPER_DATABASE_URL"] = harness.DSN(t) + "&application_name=migrating"
	want = schema(t, db)
	require.Greater(t, len(want), 80)
	_, err := db.Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	require.NoError(t, err)
	return s, db, want
}

// migrator waits for a session of the command of which that is true.
func migrator(t *testing.T, db *pgxpool.Pool, that string) (pid int) {
	t.Helper()
	query := `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'migrating' AND ` + that
	harness.Eventually(t, 30*time.Second, "a session that "+that, func() bool {
		return db.QueryRow(t.Context(), query).Scan(&pid) == nil && pid > 0
	})
	return pid
}

func TestFiveProcessesMigrateAnEmptyDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	s, db, want := migrating(t)
	var all []*child
	for range 5 {
		all = append(all, s.start("migrate", "up"))
	}
	finished(t, all)
	require.Equal(t, want, schema(t, db))
}

// everyMigration is what applying all of them says.
func everyMigration(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../migrations/*.sql")
	require.NoError(t, err)
	var said strings.Builder
	for _, file := range files {
		said.WriteString("applied " + filepath.Base(file) + "\n")
	}
	return said.String()
}

// finished waits for processes, of which one has to do the work.
func finished(t *testing.T, all []*child) {
	t.Helper()
	said := map[string]int{}
	for _, c := range all {
		got := c.ended()
		require.Zero(t, got.code, "%s", got.err)
		said[got.out]++
	}
	require.Equal(t, map[string]int{everyMigration(t): 1, "nothing to apply\n": len(all) - 1}, said)
}

// The first is killed while it holds the lock of the migration and has made most
// of the schema. Somebody else's table of the same name keeps it from the rest.
func TestAKilledMigrationIsDoneByAnother(t *testing.T) {
	t.Parallel()
	s, db, want := migrating(t)
	inTheWay, err := db.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = inTheWay.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = inTheWay.Exec(t.Context(), "CREATE TABLE outbox ()")
	require.NoError(t, err)

	first := s.start("migrate", "up")
	pid := migrator(t, db, "wait_event_type = 'Lock' AND query LIKE '%CREATE TABLE outbox%'")
	holds := func(pid int) (yes bool) {
		const query = `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $1)`
		require.NoError(t, db.QueryRow(t.Context(), query, pid).Scan(&yes))
		return yes
	}
	require.True(t, holds(pid), "the lock of the migration")
	var others []*child
	for range 4 {
		others = append(others, s.start("migrate", "up"))
	}
	require.NoError(t, first.Process.Kill())
	require.Equal(t, -1, first.ended().code, "killed")
	harness.Eventually(t, 30*time.Second, "its session ends by itself, and with it the lock", func() bool { return !holds(pid) })
	migrator(t, db, "wait_event_type = 'Lock'") // another has taken over, from the beginning
	for _, line := range schema(t, db) {
		require.Contains(t, line, "goose_db_version", "half a schema is left")
	}

	require.NoError(t, inTheWay.Rollback(t.Context()))
	finished(t, others)
	require.Equal(t, want, schema(t, db))
	require.NoError(t, migrations.Check(t.Context(), db))
}

func TestDownAndUpAgainMakeTheSameSchema(t *testing.T) {
	t.Parallel()
	s, db, want := migrating(t)
	s.ok("migrate", "up")
	for i := 0; strings.Contains(s.ok("migrate", "status"), "applied"); i++ {
		require.Less(t, i, 100)
		s.ok("migrate", "down")
	}
	for _, line := range schema(t, db) {
		require.Contains(t, line, "goose_db_version", "left behind")
	}
	s.ok("migrate", "up")
	require.Equal(t, want, schema(t, db))
}

func TestAPoolerIsRefusedWhereverItIsMet(t *testing.T) {
	t.Parallel()
	s, db, _ := migrating(t)
	s.env["LINEKEEPER_REDIS_URL"] = "redis://" + harness.RedisServer(t).Addr
	s.env["LINEKEEPER_KEYS"] = credential.GenerateKey()
	direct := s.env["LINEKEEPER_DATABASE_URL"]
	for name, dsn := range harness.Poolers(t, harness.DSN(t)) {
		for _, args := range [][]string{
			{"migrate", "up"}, {"migrate", "down"}, {"migrate", "status"}, {"setup", "--secrets", t.TempDir()},
			{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"},
		} {
			s.env["LINEKEEPER_DATABASE_URL"] = dsn
			began := time.Now()
			got := s.start(args...).ended()
			require.Equal(t, 1, got.code, "%s, %v: %s", name, args, got.err)
			lines := strings.Split(strings.TrimSpace(got.err), "\n")
			require.Regexp(t, `^linekeeper: .*address of a connection pooler.* put the direct address of Postgres into LINEKEEPER_DATABASE_URL \(it `,
				lines[len(lines)-1], "%s, %v", name, args)
			require.NotContains(t, got.err, `"waiting for a part"`, "%s: waiting does not mend it", name)
			require.Less(t, time.Since(began), 10*time.Second)
		}
		require.Equal(t, []string{""}, schema(t, db), "%s: something was done", name)
		require.Regexp(t, `(?m)^FAIL +postgres .*connection pooler.* -> put the direct address of Postgres`, s.run("doctor").out, name)
	}
	s.env["LINEKEEPER_DATABASE_URL"] = direct
	require.Equal(t, everyMigration(t), s.ok("migrate", "up"), "and the direct address is taken")
}
