package doctor_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/internal/doctor"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

var ann = room.Actor{Name: "ann", Role: "admin", Remote: "local"}

const prefix = "linekeeper"

// fixture is an installation without a fault: a Redis of the test's own, a
// database, the room "sale" that has just been ticked, and a leader.
type fixture struct {
	doctor.Patient
	t     *testing.T
	rdb   *redis.Client
	proc  *devstack.Proc
	db    *pgxpool.Pool
	dsn   string
	store *pgstore.Store
	line  *redisstore.Store
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: harness.Database(t), dsn: harness.DSN(t)}
	f.proc = harness.RedisServer(t, "--appendonly", "yes", "--maxmemory", "1gb")
	f.rdb = f.client()
	f.store, f.line = pgstore.New(f.db), redisstore.New(f.rdb, prefix)
	_, entry, err := admin.NewToken("ann", admin.Admin)
	require.NoError(t, err)
	f.Patient = doctor.Patient{Redis: f.rdb, MoreConns: 6, OpenFiles: func() (uint64, error) { return 20_000, nil }, Conf: config.Process{
		Redis:    config.Redis{RedisURL: config.URL("redis://" + f.proc.Addr), KeyPrefix: prefix},
		Database: config.Database{DatabaseURL: config.URL(f.dsn)},
		Listen:   ":8080", AdminListen: "127.0.0.1:8081", Roles: config.RoleAPI | config.RoleScheduler | config.RoleRelay,
		Keys: config.Secret(credential.GenerateKey()), AdminTokens: config.Secret(entry),
		Identity: config.IdentityTicket, LeaderTTL: 5 * time.Second,
	}}
	_, err = f.store.Create(t.Context(), "sale", room.Defaults(), ann)
	require.NoError(t, err)
	_, _, err = f.store.PutProduct(t.Context(), room.Product{SKU: "demo", Stock: 5, Currency: "EUR"}, 0, ann)
	require.NoError(t, err)
	f.begin()
	require.NoError(t, f.rdb.Set(t.Context(), prefix+":leader", "x", time.Hour).Err())
	return f
}

// begin starts the room and ticks it once, as a scheduler does.
func (f *fixture) begin() {
	f.t.Helper()
	life, err := f.store.Begin(f.t.Context(), "sale", f.get().Generation)
	require.NoError(f.t, err)
	require.NoError(f.t, f.line.Create(f.t.Context(), life))
	_, err = f.line.Reserve(f.t.Context(), "sale", queue.Step{Generation: life.Generation, Term: 1, Leader: "x", Seq: 1}, queue.Take{Effective: 50, Max: 50})
	require.NoError(f.t, err)
}

func (f *fixture) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: f.proc.Addr, ContextTimeoutEnabled: true, MaxRetries: -1, DisableIdentity: true})
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (f *fixture) get() room.Room {
	f.t.Helper()
	r, err := f.store.Get(f.t.Context(), "sale")
	require.NoError(f.t, err)
	return r
}

func (f *fixture) enter(members ...string) {
	f.t.Helper()
	for _, m := range members {
		_, err := f.line.Enter(f.t.Context(), "sale", m, 0)
		require.NoError(f.t, err)
	}
}

// change gives the room other settings, in Postgres and in Redis.
func (f *fixture) change(change func(*room.Settings)) {
	f.t.Helper()
	f.inPostgres(change)
	lives, err := f.store.Lives(f.t.Context())
	require.NoError(f.t, err)
	require.NoError(f.t, f.line.Update(f.t.Context(), lives[0]))
}

// boundByDemo has the stock of demo bound who is let into the room, as told now.
func (f *fixture) boundByDemo() {
	f.t.Helper()
	f.change(func(s *room.Settings) { s.Stock = new("demo") })
	f.state("stock_sku", "demo")
	f.state("stock", "10")
	f.state("stock_at", micros(0))
}

// inPostgres changes the settings in Postgres alone.
func (f *fixture) inPostgres(change func(*room.Settings)) {
	f.t.Helper()
	_, err := f.store.Update(f.t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) {
		change(&s)
		return s, nil
	}, ann)
	require.NoError(f.t, err)
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	_, err := f.db.Exec(f.t.Context(), sql, args...)
	require.NoError(f.t, err)
}

// database changes a setting of the test's own database.
func (f *fixture) database(set string) {
	f.t.Helper()
	var name string
	require.NoError(f.t, f.db.QueryRow(f.t.Context(), "SELECT current_database()").Scan(&name))
	f.exec(`ALTER DATABASE ` + name + ` SET ` + set)
}

// behind puts a pooler of that kind in front of Postgres, and asks for a session
// with a limit, as the command does.
func (f *fixture) behind(pooler string) {
	f.t.Helper()
	f.dsn = harness.Poolers(f.t, f.dsn)[pooler] + "&statement_timeout=5000"
}

func (f *fixture) redisConf(name, value string) {
	f.t.Helper()
	require.NoError(f.t, f.rdb.ConfigSet(f.t.Context(), name, value).Err())
}

func (f *fixture) state(field, value string) {
	f.t.Helper()
	require.NoError(f.t, f.rdb.HSet(f.t.Context(), prefix+":{sale}:state", field, value).Err())
}

// examine connects anew, so that changed settings of the database are seen.
func (f *fixture) examine() doctor.Report {
	f.t.Helper()
	if f.Postgres == nil {
		conf, err := pgxpool.ParseConfig(f.dsn)
		require.NoError(f.t, err)
		conf.MaxConns = 2
		f.Postgres, err = pgxpool.NewWithConfig(f.t.Context(), conf)
		require.NoError(f.t, err)
		f.t.Cleanup(f.Postgres.Close)
	}
	r := doctor.Examine(f.t.Context(), f.Patient)
	for _, c := range r.Checks {
		require.NotContains(f.t, c.Found+c.Do, "\n", "one line a check")
		if c.Level == doctor.Warn || c.Level == doctor.Fail {
			require.NotEmpty(f.t, c.Do, "%s says no thing to do", c.Check)
		}
	}
	return r
}

// found is the finding of one check.
func found(t *testing.T, r doctor.Report, check string) doctor.Finding {
	t.Helper()
	for _, f := range r.Checks {
		if f.Check == check {
			return f
		}
	}
	text, _ := json.Marshal(r)
	t.Fatalf("no check %q in %s", check, text)
	return doctor.Finding{}
}

// lie is a hook that changes what INFO says: the versions and broken disks that
// are not at hand.
type lie struct{ old, new string }

func (lie) DialHook(next redis.DialHook) redis.DialHook { return next }

func (lie) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook { return next }

func (l lie) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if text, ok := cmd.(*redis.StringCmd); ok && cmd.Name() == "info" {
			text.SetVal(strings.Replace(text.Val(), l.old, l.new, 1))
		}
		return err
	}
}
