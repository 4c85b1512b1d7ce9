// Package harness gives tests real Redis and Postgres servers: one of each per
// test binary, started when first asked for, and private ones for tests that
// kill theirs.
//
// Tests share the Redis and keep apart by the names of their rooms; each has a
// migrated Postgres database of its own, copied from a template. Nothing
// outlives the test binary, however that ends.
//
// The servers come from LINEKEEPER_TEST_REDIS_URL and
// LINEKEEPER_TEST_DATABASE_URL where these are set (the Redis should be empty;
// databases are made on the Postgres, and dropped), else they are processes of
// package devstack. Where a program is not installed the test is skipped with a
// reason that begins with MissingPart; with CI set in the environment it fails,
// because a green run that ran nothing is a lie.
package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/migrations"
)

// MissingPart begins the reason of a test that was skipped for want of a program.
const MissingPart = "missing part: "

// shared is the one thing a test binary has globally: TestMain and the tests
// have no other way to hand something to each other.
var shared stack

// stack is what the tests of one binary share.
type stack struct {
	redis    lazy[*redis.Options]
	postgres lazy[*devstack.Databases]

	mu     sync.Mutex
	stops  []func() // in the order of their starts
	byTest map[testing.TB]string
	count  int
	run    uint32 // tells this binary's databases from another's on the same server
}

// lazy makes a value once; all who ask get the same value or the same error.
type lazy[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (l *lazy[T]) get(start func() (T, error)) (T, error) {
	l.once.Do(func() { l.value, l.err = start() })
	return l.value, l.err
}

// Run runs the tests of a binary and stops what they started. It belongs in
// TestMain: os.Exit(harness.Run(m)).
func Run(m *testing.M) int {
	code := m.Run()
	shared.stop()
	return code
}

func (s *stack) atEnd(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, f)
}

func (s *stack) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
	s.stops = nil
}

// Redis returns a client of the test binary's Redis, closed at the end of the
// test. The server keeps nothing on disk and never evicts.
func Redis(t testing.TB) *redis.Client {
	t.Helper()
	opts, err := shared.redis.get(startRedis)
	must(t, err)
	own := *opts
	c := redis.NewClient(&own)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func startRedis() (*redis.Options, error) {
	if url := os.Getenv("LINEKEEPER_TEST_REDIS_URL"); url != "" {
		opts, err := redis.ParseURL(url)
		if err != nil {
			return nil, fmt.Errorf("LINEKEEPER_TEST_REDIS_URL: %w", err)
		}
		return options(opts), nil
	}
	p, err := devstack.StartRedis(context.Background(), devstack.Options{})
	if err != nil {
		return nil, err
	}
	shared.atEnd(p.Close)
	return options(&redis.Options{Addr: p.Addr}), nil
}

func options(o *redis.Options) *redis.Options {
	o.ContextTimeoutEnabled = true
	// Redis 7 refuses the probe for these, and the client logs it.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o
}

// RedisServer starts a redis-server of the test's own, gone at its end. It keeps
// nothing on disk unless args say so: "--appendonly", "yes".
func RedisServer(t testing.TB, args ...string) *devstack.Proc {
	t.Helper()
	p, err := devstack.StartRedis(t.Context(), devstack.Options{Args: args})
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

// PostgresServer starts a postgres of the test's own, gone at its end. It has no
// databases of ours yet.
func PostgresServer(t testing.TB) *devstack.Postgres {
	t.Helper()
	p, err := devstack.StartPostgres(t.Context(), devstack.Options{})
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

// Database returns a pool on the test's own migrated database, closed at the
// end of the test. DSN names the same database.
func Database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), DSN(t))
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// DSN returns the URL of the test's own migrated database, made by the first
// call and dropped at the end of the test.
func DSN(t testing.TB) string {
	t.Helper()
	dbs, err := shared.postgres.get(startPostgres)
	must(t, err)
	db, first := shared.databaseOf(t)
	if first {
		must(t, dbs.Clone(t.Context(), shared.template(), db))
		t.Cleanup(func() {
			shared.forget(t)
			if err := dbs.DropDatabase(context.WithoutCancel(t.Context()), db); err != nil {
				t.Errorf("drop the test's database: %v", err)
			}
		})
	}
	return dbs.DSN(db)
}

func startPostgres() (*devstack.Databases, error) {
	shared.run = rand.Uint32()
	ctx := context.Background()
	dbs, err := server(ctx)
	if err != nil {
		return nil, err
	}
	err = dbs.Template(ctx, shared.template(), func(ctx context.Context, dsn string) error {
		_, err := migrations.Up(ctx, dsn)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make the template database: %w", err)
	}
	return dbs, nil
}

// server is the Postgres that the environment names, or a process.
func server(ctx context.Context) (*devstack.Databases, error) {
	if url := os.Getenv("LINEKEEPER_TEST_DATABASE_URL"); url != "" {
		dbs, err := devstack.OpenDatabases(url)
		if err == nil {
			shared.atEnd(func() { _ = dbs.DropDatabase(ctx, shared.template()) })
		}
		return dbs, err
	}
	p, err := devstack.StartPostgres(ctx, devstack.Options{})
	if err != nil {
		return nil, err
	}
	shared.atEnd(p.Close)
	return p.Databases, nil
}

func (s *stack) template() string { return fmt.Sprintf("linekeeper_test_%08x", s.run) }

// databaseOf is the name of the test's database and whether it is new.
func (s *stack) databaseOf(t testing.TB) (db string, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if db, ok := s.byTest[t]; ok {
		return db, false
	}
	if s.byTest == nil {
		s.byTest = map[testing.TB]string{}
	}
	s.count++
	db = fmt.Sprintf("%s_%d", s.template(), s.count)
	s.byTest[t] = db
	return db, true
}

func (s *stack) forget(t testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byTest, t)
}

// must ends the test on an error: skipped if a program is missing, unless CI is
// set.
func must(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, devstack.ErrMissing) && os.Getenv("CI") == "":
		t.Skip(MissingPart + err.Error())
	case errors.Is(err, devstack.ErrMissing):
		t.Fatal(MissingPart + err.Error())
	default:
		t.Fatal(err)
	}
}

// Eventually fails the test unless f returns true within the time given. It
// asks every 5 ms, and one last time when the time is over.
func Eventually(t testing.TB, within time.Duration, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
