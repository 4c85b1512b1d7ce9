package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/linekeeper/linekeeper/internal/pooler"
	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/outbox"
)

const minPostgres = 15

// facts are what Postgres says of itself.
type facts struct {
	version     int // as server_version_num: 150004
	commit      string
	fsync       string
	connections int // that anybody but a superuser may have
	used        int
	standby     bool
}

const factsSQL = `
SELECT current_setting('server_version_num')::int, current_setting('synchronous_commit'), current_setting('fsync'),
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
         - coalesce(current_setting('reserved_connections', true), '0')::int,
       (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'), pg_is_in_recovery()`

func factsOf(ctx context.Context, pool *pgxpool.Pool) (facts, error) {
	var f facts
	if err := pooler.Check(ctx, pool, pool.Config().ConnConfig.RuntimeParams); err != nil {
		return f, err
	}
	err := pool.QueryRow(ctx, factsSQL).Scan(&f.version, &f.commit, &f.fsync, &f.connections, &f.used, &f.standby)
	return f, pooler.Explain(err)
}

func postgresReached(_ context.Context, e *exam) Finding {
	found := func(what string) string {
		return strings.TrimPrefix(fmt.Sprintf("%v: %s", e.Conf.DatabaseURL, what), ": ")
	}
	switch {
	case errors.Is(e.pgErr, pooler.Err):
		return fail(pooler.Remedy, "%s", found(strings.Replace(e.pgErr.Error(), "; "+pooler.Remedy, "", 1)))
	case e.pgErr != nil:
		return fail("start Postgres, or correct LINEKEEPER_DATABASE_URL", "%s", found(reason(e.pgErr)))
	}
	return good("answers")
}

func postgresVersion(_ context.Context, e *exam) Finding {
	if e.facts.version/10000 < minPostgres {
		return fail("upgrade to Postgres 15 or newer", "version %d is too old", e.facts.version/10000)
	}
	return good("%d.%d", e.facts.version/10000, e.facts.version%10000)
}

func postgresCommits(_ context.Context, e *exam) Finding {
	switch {
	case e.facts.commit == "off":
		return fail("set synchronous_commit to on for this database and user",
			"synchronous_commit is off: orders that were acknowledged can be lost, so no process starts")
	case e.facts.fsync != "on":
		return warn("set fsync to on", "fsync is %s: a crash of the machine can lose or damage everything", e.facts.fsync)
	}
	return good("synchronous_commit %s, fsync on", e.facts.commit)
}

func postgresSchema(_ context.Context, e *exam) Finding {
	switch {
	case errors.Is(e.schemaErr, migrations.ErrSchema):
		return fail("run `linekeeper migrate up`; if the database is the newer one, run a newer binary", "%s", oneLine(e.schemaErr))
	case e.schemaErr != nil:
		return fail("give the user of LINEKEEPER_DATABASE_URL the right to read goose_db_version", "%s", oneLine(e.schemaErr))
	}
	return good("the one of this binary")
}

// writes touch nothing, but for the product, and are rolled back: Postgres
// checks the rights before it looks for rows.
var writes = []struct{ table, sql string }{
	{"products", `INSERT INTO products (sku, stock, price_cents, currency) VALUES ('linekeeper-doctor', 0, 0, 'XXX') ON CONFLICT DO NOTHING`},
	{"products", `UPDATE products SET stock = stock WHERE false`},
	{"rooms", `INSERT INTO rooms (name, settings) SELECT 'x', '{}' WHERE false`},
	{"rooms", `UPDATE rooms SET version = version WHERE false`},
	{"room_progress", `INSERT INTO room_progress (room) SELECT 'x' WHERE false`},
	{"room_progress", `UPDATE room_progress SET last_score = last_score WHERE false`},
	{"room_changes", `INSERT INTO room_changes (actor, role, remote, action, target) SELECT '', '', '', '', '' WHERE false`},
	{"room_exclusions", `INSERT INTO room_exclusions (room, member, kind) SELECT 'x', 'x', 'blocked' WHERE false`},
	{"room_exclusions", `DELETE FROM room_exclusions WHERE false`},
	{"draws", `INSERT INTO draws (room, sale, seed, ordering, lanes) SELECT 'x', 0, '', '', '[]' WHERE false`},
	{"draws", `UPDATE draws SET listed_at = listed_at WHERE false`},
	{"draws", `DELETE FROM draws WHERE false`},
	{"draw_pieces", `INSERT INTO draw_pieces (room, sale, piece, first, body) SELECT 'x', 0, 0, '', '' WHERE false`},
	{"draw_pieces", `SELECT FROM draw_pieces WHERE false`},
	{"orders", `INSERT INTO orders (id, grant_id, room, sale, generation, member) SELECT gen_random_uuid(), gen_random_uuid(), '', 0, 0, '' WHERE false`},
	{"orders", `SELECT FROM orders WHERE false`},
	{"outbox", `INSERT INTO outbox (order_id, kind, room, payload) SELECT gen_random_uuid(), '', '', '{}' WHERE false`},
	{"outbox", `UPDATE outbox SET attempts = attempts WHERE false`},
	{"outbox", `DELETE FROM outbox WHERE false`},
}

func postgresRights(ctx context.Context, e *exam) Finding {
	if e.facts.standby {
		return fail("point LINEKEEPER_DATABASE_URL at the primary (several hosts: add target_session_attrs=read-write)", "this is a standby: it takes no writes")
	}
	var wrong []string
	for _, w := range writes {
		if err := rolledBack(ctx, e.Postgres, w.sql); err != nil {
			wrong = append(wrong, w.table+": "+reason(err))
		}
	}
	// A number drawn is not given back by a rollback, so this right is asked for.
	var may bool
	err := e.Postgres.QueryRow(ctx, "SELECT has_sequence_privilege('generations', 'USAGE')").Scan(&may)
	if err == nil && !may {
		wrong = append(wrong, "generations: permission denied for sequence")
	}
	if len(wrong) > 0 {
		return fail("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public, and USAGE, SELECT ON ALL SEQUENCES, to the user of LINEKEEPER_DATABASE_URL",
			"%s", list(wrong))
	}
	return good("every table can be written")
}

// rolledBack tells whether a statement would do. Each has a transaction of its
// own, because an error ends one.
func rolledBack(ctx context.Context, pool *pgxpool.Pool, sql string) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '2s'"); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sql)
	return err
}

// reason is what Postgres says, without the name of the protocol around it.
func reason(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Message
	}
	return oneLine(err)
}

// postgresConnections wants room for two processes: one that stops and one that
// starts, if no more.
func postgresConnections(_ context.Context, e *exam) Finding {
	pool, err := e.ordersPool()
	if err != nil {
		return fail("correct LINEKEEPER_DATABASE_URL", "it can't be read as the address of a pool")
	}
	each, have := pool+e.MoreConns, e.facts.connections
	sum := fmt.Sprintf("a process opens up to %d for orders + %d; Postgres allows %d, %d in use", pool, e.MoreConns, have, e.facts.used)
	raise := fmt.Sprintf("raise max_connections to at least %d for each process, or lower pool_max_conns in LINEKEEPER_DATABASE_URL", each)
	switch {
	case each > have:
		return fail(raise, "%s", sum)
	case 2*each > have:
		return warn(raise, "%s: there is no room for a second process", sum)
	}
	return good("%s: room for %d processes", sum, have/each)
}

func (e *exam) ordersPool() (int, error) {
	c, err := pgxpool.ParseConfig(e.Conf.DatabaseURL.Reveal())
	if err != nil {
		return 0, err
	}
	return int(c.MaxConns), nil
}

func stock(ctx context.Context, e *exam) Finding {
	rows, err := e.Postgres.Query(ctx, "SELECT sku FROM products WHERE stock = 0 ORDER BY sku")
	if err != nil {
		return unreadable("products", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	var all int
	if err == nil {
		err = e.Postgres.QueryRow(ctx, "SELECT count(*)::int FROM products").Scan(&all)
	}
	switch {
	case err != nil:
		return unreadable("products", err)
	case all == 0:
		return warn("make one: `linekeeper product set SKU stock=N priceCents=N currency=EUR`", "there are no products: every order is refused")
	case len(out) > 0:
		return warn("if that is not meant: `linekeeper product set SKU stock=N`", "%d of %d products have none left: %s", len(out), all, list(out))
	}
	return good("all %d products have some", all)
}

// Events are delivered within a second; what waits for long is not delivered at all.
const lateEvent, stuckEvent = 10 * time.Second, time.Minute

func outboxEnds(ctx context.Context, e *exam) Finding {
	s, err := outbox.NewAdmin(e.Postgres).Stats(ctx)
	const start = "start a process with the role relay, and look at its log"
	age := s.OldestAge.Round(time.Second)
	switch {
	case err != nil:
		return unreadable("outbox", err)
	case s.Dead > 0:
		return fail("look at `linekeeper outbox list`, mend the cause, then `linekeeper outbox requeue ID`", "%d dead event(s): grants that orders have used up do not end", s.Dead)
	case s.OldestAge > stuckEvent:
		return fail(start, "%d event(s) wait, the oldest for %v: nobody delivers", s.Pending, age)
	case s.OldestAge > lateEvent:
		return warn(start, "%d event(s) wait, the oldest for %v", s.Pending, age)
	}
	return good("%d event(s) wait, the oldest for %v; none is dead", s.Pending, age)
}

func unreadable(table string, err error) Finding {
	return fail("look at the log of Postgres", "%s can't be read: %s", table, strings.TrimSpace(reason(err)))
}
