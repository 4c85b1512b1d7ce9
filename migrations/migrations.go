// Package migrations holds the Postgres schema as numbered SQL files, built
// into the binary, and moves a database from one version to the next.
//
// It promises that any number of processes may call Up at once (one works, the
// others wait for it), that each file is applied in one transaction, so that a
// crash leaves the version before or the version after, and that no connection
// is left open. Where one is killed in the middle the others go on as soon as its
// session has ended, with the statement in hand. A connection pooler is refused
// before anything is done, with an error that wraps pooler.Err.
//
// It does not run by itself: a production database is migrated by
// `linekeeper migrate`, and a server only calls Check.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/linekeeper/linekeeper/internal/pooler"
)

//go:embed *.sql
var files embed.FS

// ErrSchema means that the database's schema is older or newer than the one
// this binary was built for.
var ErrSchema = errors.New("migrations: the schema is not the one of this binary")

// Migration is one step of the schema and whether the database has it.
type Migration struct {
	Version   int64
	Name      string    // the file, for instance 00001_init.sql
	AppliedAt time.Time // zero while it is pending
}

// Up applies what is pending and returns the names of the files applied, in
// order: none if the database was current. On an error the names are those that
// were applied before it, and stay applied.
func Up(ctx context.Context, dsn string) ([]string, error) {
	var names []string
	err := with(dsn, func(p *goose.Provider) error {
		done, err := p.Up(ctx)
		if part, ok := errors.AsType[*goose.PartialError](err); ok {
			done = part.Applied
		}
		for _, r := range done {
			names = append(names, path.Base(r.Source.Path))
		}
		return err
	})
	if err != nil {
		return names, fmt.Errorf("migrate up: %w", err)
	}
	return names, nil
}

// Down takes back the newest migration, with all data in what it made, and
// returns its name: "" if there was none.
func Down(ctx context.Context, dsn string) (string, error) {
	var name string
	err := with(dsn, func(p *goose.Provider) error {
		done, err := p.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil
		}
		if err == nil {
			name = path.Base(done.Source.Path)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("migrate down: %w", err)
	}
	return name, nil
}

// Status returns every migration this binary knows, oldest first. It makes the
// version table if the database has none.
func Status(ctx context.Context, dsn string) ([]Migration, error) {
	var list []Migration
	err := with(dsn, func(p *goose.Provider) error {
		all, err := p.Status(ctx)
		for _, s := range all {
			list = append(list, Migration{s.Source.Version, path.Base(s.Source.Path), s.AppliedAt})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	return list, nil
}

// Check returns an error that wraps ErrSchema and names both versions unless
// the database is at the version of this binary. It only reads, so a server
// needs no right to change the schema.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	want, err := newest()
	if err != nil {
		return err
	}
	have, err := version(ctx, pool)
	if err != nil {
		return fmt.Errorf("check schema: %w", err)
	}
	if have != want {
		return fmt.Errorf("%w: the database is at version %d, the binary needs %d", ErrSchema, have, want)
	}
	return nil
}

// version is the database's: 0 if nothing was ever applied. Rows of migrations
// taken back are deleted, so the highest one counts.
func version(ctx context.Context, pool *pgxpool.Pool) (int64, error) {
	const query = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`
	var v int64
	err := pool.QueryRow(ctx, query).Scan(&v)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42P01" { // undefined_table
		return 0, nil
	}
	return v, err
}

// newest is the highest version among the embedded files.
func newest() (int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return 0, err
	}
	var top int64
	for _, n := range names {
		v, err := goose.NumericComponent(n)
		if err != nil {
			return 0, fmt.Errorf("version of %s: %w", n, err)
		}
		top = max(top, v)
	}
	return top, nil
}

// with runs f on a provider and closes its connections, also on an error: a
// template database can only be cloned once nobody is connected to it.
func with(dsn string, f func(*goose.Provider) error) (err error) {
	db, err := open(dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(pooler.Explain(err), db.Close()) }()
	// The default waits 5 s between attempts; migrations here take milliseconds.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return f(p)
}

// lockTimeout is how long a step may wait for a lock on a table. A waiting step
// keeps everybody else from the table; an order gives up its own locks in less
// than this, and a backup, which takes an hour, must not stop orders for as long.
// It also ends the session of a process that was killed while it waited, which
// Postgres would not notice before, and with it the lock of the migration.
const lockTimeout = "10s"

// open accepts the URL a server is given, pool settings included: database/sql
// would send those to Postgres, which refuses them.
func open(dsn string) (*sql.DB, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	sent := cfg.ConnConfig.RuntimeParams
	if sent["lock_timeout"] == "" {
		sent["lock_timeout"] = lockTimeout
	}
	direct := func(ctx context.Context, conn *pgx.Conn) error {
		err := pooler.Check(ctx, conn, sent)
		if err != nil {
			_ = conn.Close(ctx) // nobody else will
		}
		return err
	}
	return stdlib.OpenDB(*cfg.ConnConfig, stdlib.OptionAfterConnect(direct)), nil
}
