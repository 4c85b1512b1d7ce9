package doctor_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/doctor"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestHealthyInstallationHasNoFault(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.enter("bob")
	for _, c := range f.examine().Checks {
		if c.Check == "postgres commits" {
			// The servers of tests keep nothing through a crash of the machine.
			require.Contains(t, c.Found, "fsync is off")
			continue
		}
		require.Equal(t, doctor.OK, c.Level, "%s: %s", c.Check, c.Found)
		require.Empty(t, c.Do, c.Check)
	}
}

// faults are put in one by one. Each must be found by its check, which must say
// the thing to do.
var faults = []struct {
	name  string
	check string
	level doctor.Level
	says  string // in what was found
	do    string // in what to do
	in    func(f *fixture)
}{
	{"identity by a header from anybody", "settings", doctor.Fail, "LINEKEEPER_TRUSTED_PROXIES", "config print",
		func(f *fixture) { f.Conf.Identity = config.IdentityHeader }},
	{"no keys", "keys", doctor.Fail, "not set", "keys new", func(f *fixture) { f.Conf.Keys = "" }},
	{"a short key", "keys", doctor.Fail, "32 bytes", "LINEKEEPER_KEYS", func(f *fixture) { f.Conf.Keys = "k1:c2hvcnQ=" }},
	{"no admin token", "admin tokens", doctor.Warn, "nobody can operate", "admin-token new", func(f *fixture) { f.Conf.AdminTokens = "" }},
	{"a token for its hash", "admin tokens", doctor.Fail, "SHA-256", "LINEKEEPER_ADMIN_TOKENS", func(f *fixture) { f.Conf.AdminTokens = "ann:admin:hunter2" }},
	{"far too few open files", "open files", doctor.Fail, "1024", "LimitNOFILE", func(f *fixture) { f.OpenFiles = limit(1024) }},
	{"few open files", "open files", doctor.Warn, "4096", "LimitNOFILE", func(f *fixture) { f.OpenFiles = limit(4096) }},

	{"Redis is down", "redis", doctor.Fail, "connection refused", "start Redis", func(f *fixture) { f.proc.Kill() }},
	{"Redis is old", "redis version", doctor.Fail, "6.2.14", "upgrade", func(f *fixture) { f.rdb.AddHook(lie{"redis_version:7.0", "redis_version:6.2.14\r\nx:"}) }},
	{"Redis is a replica", "redis role", doctor.Fail, "slave", "primary", func(f *fixture) {
		require.NoError(f.t, f.rdb.ReplicaOf(f.t.Context(), "127.0.0.1", "1").Err())
	}},
	{"Redis may evict", "redis eviction", doctor.Fail, "allkeys-lru", "noeviction", func(f *fixture) { f.redisConf("maxmemory-policy", "allkeys-lru") }},
	{"Redis may evict, as allowed", "redis eviction", doctor.Warn, "allkeys-lru", "noeviction", func(f *fixture) {
		f.redisConf("maxmemory-policy", "allkeys-lru")
		f.Conf.AllowEviction = true
	}},
	{"Redis keeps nothing", "redis persistence", doctor.Warn, "restart loses", "appendonly yes", func(f *fixture) { f.redisConf("appendonly", "no") }},
	{"Redis has a full disk", "redis persistence", doctor.Fail, "refuses writes", "disk", func(f *fixture) {
		f.rdb.AddHook(lie{"aof_last_write_status:ok", "aof_last_write_status:err"})
	}},
	{"Redis can't compact", "redis persistence", doctor.Warn, "rewrite", "disk", func(f *fixture) {
		f.rdb.AddHook(lie{"aof_last_bgrewrite_status:ok", "aof_last_bgrewrite_status:err"})
	}},
	{"Redis refuses scripts", "redis rights", doctor.Fail, "NOPERM", "section \"A user of its own\", with ~linekeeper:*", func(f *fixture) {
		require.NoError(f.t, f.rdb.Do(f.t.Context(), "ACL", "SETUSER", "weak", "on", ">pw", "~*", "+@all", "-@scripting").Err())
		c := redis.NewClient(&redis.Options{Addr: f.proc.Addr, Username: "weak", Password: "pw", DisableIdentity: true})
		f.t.Cleanup(func() { _ = c.Close() })
		f.Redis = c
	}},
	{"Redis is too small", "redis memory", doctor.Fail, "1 room(s) hold up to 100000 members x 260 B = 25 MB, + 64 MB, / 0.9 (entry closes at 90 %) = 99 MB; maxmemory is 80 MB", "at least 99 MB",
		func(f *fixture) { f.redisConf("maxmemory", "80mb") }},
	{"Redis has no limit", "redis memory", doctor.Warn, "no maxmemory", "at least 99 MB", func(f *fixture) { f.redisConf("maxmemory", "0") }},
	{"nobody leads", "leader", doctor.Fail, "nobody holds", "role scheduler", func(f *fixture) { f.rdb.Del(f.t.Context(), prefix+":leader") }},

	{"Postgres is down", "postgres", doctor.Fail, "refused", "start Postgres", func(f *fixture) { f.dsn = "postgres://x@127.0.0.1:1/x" }},
	{"a pooler that refuses", "postgres", doctor.Fail, "keeps no sessions", "direct address of Postgres", func(f *fixture) { f.behind("stand-in that refuses") }},
	{"a pooler that drops settings", "postgres", doctor.Fail, "it ignores statement_timeout", "direct address of Postgres", func(f *fixture) { f.behind("stand-in that ignores") }},
	{"Postgres is old", "postgres version", doctor.Fail, "14", "upgrade", func(f *fixture) {
		f.exec(`CREATE SCHEMA fake`)
		f.exec(`CREATE FUNCTION fake.current_setting(text) RETURNS text LANGUAGE sql AS
			$$ SELECT CASE $1 WHEN 'server_version_num' THEN '140003' ELSE pg_catalog.current_setting($1) END $$`)
		f.database(`search_path = fake, pg_catalog, public`)
	}},
	{"Postgres may forget orders", "postgres commits", doctor.Fail, "acknowledged", "synchronous_commit", func(f *fixture) { f.database(`synchronous_commit = off`) }},
	{"Postgres may forget all", "postgres commits", doctor.Warn, "fsync is off", "fsync", func(*fixture) {}},
	{"another schema", "postgres schema", doctor.Fail, "version 99999", "migrate up", func(f *fixture) {
		f.exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	}},
	{"Postgres is read-only", "postgres rights", doctor.Fail, "read-only", "GRANT", func(f *fixture) { f.database(`default_transaction_read_only = on`) }},
	{"a user who may only read", "postgres rights", doctor.Fail, "permission denied for table products", "GRANT", func(f *fixture) {
		f.dsn += "&options=-c%20role%3Dpg_read_all_data"
	}},
	{"pools above the connections", "postgres connections", doctor.Fail, "up to 500 for orders + 6", "at least 506", func(f *fixture) {
		f.Conf.DatabaseURL += "&pool_max_conns=500"
	}},
	{"no room for a second process", "postgres connections", doctor.Warn, "second process", "pool_max_conns", func(f *fixture) {
		f.Conf.DatabaseURL += "&pool_max_conns=95"
	}},
	{"nothing to sell", "stock", doctor.Warn, "no products", "product set", func(f *fixture) { f.exec(`DELETE FROM products`) }},
	{"sold out", "stock", doctor.Warn, "1 of 1 products have none left: demo", "product set", func(f *fixture) { f.exec(`UPDATE products SET stock = 0`) }},
	{"a dead event", "outbox", doctor.Fail, "1 dead", "outbox requeue", func(f *fixture) { f.event("dead", 0) }},
	{"a stuck event", "outbox", doctor.Fail, "nobody delivers", "role relay", func(f *fixture) { f.event("pending", 2*time.Minute) }},
	{"a late event", "outbox", doctor.Warn, "the oldest for", "role relay", func(f *fixture) { f.event("pending", 20*time.Second) }},

	{"clocks a minute apart", "clocks", doctor.Fail, "this host", "NTP", func(f *fixture) { f.Now = clock(-90 * time.Second) }},
	{"clocks seconds apart", "clocks", doctor.Warn, "apart", "NTP", func(f *fixture) { f.Now = clock(3 * time.Second) }},

	{"no rooms", "rooms", doctor.Warn, "none", "room create", func(f *fixture) { f.exec(`UPDATE rooms SET deleted_at = now()`) }},
	{"not the room asked for", "rooms", doctor.Fail, `"nope"`, "room list", func(f *fixture) { f.Room = "nope" }},
	{"settings changed by hand", "room settings", doctor.Fail, "entryTokenTtlSeconds must be at least", "room set sale", func(f *fixture) {
		f.exec(`UPDATE rooms SET settings = settings || '{"claimLeaseSeconds":300,"entryTokenTtlSeconds":20}'`)
	}},
	{"settings that can't be read", "room settings", doctor.Fail, "can't be read", "by hand", func(f *fixture) { f.exec(`UPDATE rooms SET settings = '[]'`) }},
	{"Redis has lost the room", "room in redis", doctor.Fail, "nothing of it", "scheduler leads", func(f *fixture) {
		f.rdb.Del(f.t.Context(), prefix+":{sale}:conf")
	}},
	{"a change not in force", "room in redis", doctor.Fail, "version 1 of the settings is in force, 2 is stored", "scheduler leads", func(f *fixture) {
		f.inPostgres(func(s *room.Settings) { s.BatchSize = 9 })
	}},
	{"a flush not in force", "room in redis", doctor.Fail, "Redis is at generation", "scheduler leads", func(f *fixture) {
		_, err := f.store.Flush(f.t.Context(), "sale", ann)
		require.NoError(f.t, err)
	}},
	{"a Postgres of before", "room in redis", doctor.Fail, "Redis is at generation", "docs/operations.md has it under \"Backup and restore\"", func(f *fixture) {
		f.exec(`UPDATE rooms SET generation = generation - 1`)
	}},
	{"damaged data", "room in redis", doctor.Fail, "damaged", "room flush sale --confirm sale", func(f *fixture) {
		require.NoError(f.t, f.rdb.Set(f.t.Context(), prefix+":{sale}:ready", "x", 0).Err())
	}},
	{"closed in the past", "room schedule", doctor.Warn, "has closed", "closesAt=null", func(f *fixture) { f.change(func(s *room.Settings) { s.ClosesAt = from(-time.Hour) }) }},
	{"paused and draining", "room schedule", doctor.Warn, "nobody enters, nobody is let through", "room resume sale", func(f *fixture) {
		f.change(func(s *room.Settings) { s.Paused, s.Draining = true, true })
	}},
	{"a sale too short for its line", "room schedule", doctor.Warn, "a full line of 100000 takes 33m20s at 50 per 1000 ms, and is let through for 30m0s only", "batchSize", func(f *fixture) {
		f.change(func(s *room.Settings) { s.OpensAt, s.ClosesAt = from(-time.Minute), from(29*time.Minute) })
	}},
	{"a full room", "room space", doctor.Fail, "full: 1 of 1", "maxWaiting", func(f *fixture) {
		f.change(func(s *room.Settings) { s.MaxWaiting = 1 })
		f.enter("bob")
	}},
	{"a nearly full room", "room space", doctor.Warn, "nearly full: 9 of 10", "maxWaiting", func(f *fixture) {
		f.change(func(s *room.Settings) { s.MaxWaiting = 10 })
		f.enter("1", "2", "3", "4", "5", "6", "7", "8", "9")
	}},
	{"entry closed for want of memory", "room space", doctor.Fail, "entry is closed", "maxmemory", func(f *fixture) { f.state("memory_full", "1") }},
	{"no ticks while somebody waits", "room tick", doctor.Fail, "and 1 wait", "scheduler leads", func(f *fixture) {
		f.enter("bob")
		f.state("ticked_at", micros(-6*time.Second))
	}},
	{"no ticks, and nobody waits", "room tick", doctor.Warn, "nobody waits", "scheduler leads", func(f *fixture) { f.state("ticked_at", micros(-6*time.Second)) }},
	{"never ticked", "room tick", doctor.Fail, "never", "scheduler leads", func(f *fixture) {
		f.enter("bob")
		f.rdb.HDel(f.t.Context(), prefix+":{sale}:state", "ticked_at")
	}},
	{"a limit of orders that protects nothing", "room orders", doctor.Warn, "protects nothing", "maxInFlightOrders=", func(f *fixture) {
		f.change(func(s *room.Settings) { s.MaxInFlightOrders = 5000 })
	}},
	{"a product that is gone", "room stock", doctor.Fail, "no product demo any more", "product set demo stock=N", func(f *fixture) {
		f.boundByDemo()
		f.exec(`DELETE FROM products`)
	}},
	{"a room with nothing to sell", "room stock", doctor.Warn, "demo is sold out", "product set demo stock=N", func(f *fixture) {
		f.boundByDemo()
		f.exec(`UPDATE products SET stock = 0`)
	}},
	{"two rooms that sell the same", "room stock", doctor.Warn, "it bounds sale too", "a product of its own", func(f *fixture) {
		f.boundByDemo()
		settings := room.Defaults()
		settings.Stock = new("demo")
		_, err := f.store.Create(f.t.Context(), "other", settings, ann)
		require.NoError(f.t, err)
	}},
	{"a room that is not told its stock", "room stock", doctor.Fail, "nobody is let through", "scheduler leads", func(f *fixture) {
		f.boundByDemo()
		f.state("stock_at", micros(-11*time.Second))
	}},
}

func limit(n uint64) func() (uint64, error) { return func() (uint64, error) { return n, nil } }

func clock(ahead time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(ahead) }
}

func from(d time.Duration) *time.Time {
	at := time.Now().Add(d).Truncate(time.Second)
	return &at
}

func micros(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixMicro(), 10) }

func (f *fixture) event(status string, age time.Duration) {
	f.t.Helper()
	order := uuid.New()
	f.exec(`INSERT INTO orders (id, grant_id, room, sale, generation, member) VALUES ($1, $2, 'sale', 1, 1, 'bob')`, order, uuid.New())
	f.exec(`INSERT INTO outbox (order_id, kind, room, payload, status, created_at) VALUES ($1, 'consume', 'sale', '{}', $2, now() - $3::interval)`, order, status, age)
}

func TestEachFaultIsFoundWithTheOneThingToDo(t *testing.T) {
	t.Parallel()
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			c.in(f)
			got := found(t, f.examine(), c.check)
			require.Equal(t, c.level, got.Level, "%+v", got)
			require.Contains(t, got.Found, c.says)
			require.Contains(t, got.Do, c.do)
			require.NotContains(t, got.Found+got.Do, "hunter2", "a secret is repeated")
		})
	}
}

func TestEveryCheckHasAFault(t *testing.T) {
	t.Parallel()
	caught := map[string]bool{"room state": true} // it informs alone
	for _, c := range faults {
		caught[c.check] = true
	}
	for _, c := range setUp(t).examine().Checks {
		require.True(t, caught[c.Check], "no fault is put in for %q", c.Check)
	}
}

func TestWhatAnOutageOfRedisHidesIsSkipped(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.proc.Kill()
	r := f.examine()
	require.Equal(t, 1, r.Count(doctor.Fail), "%+v", r)
	require.Equal(t, doctor.Skip, found(t, r, "redis eviction").Level)
	require.Equal(t, doctor.Skip, found(t, r, "room tick").Level)
	require.Equal(t, doctor.OK, found(t, r, "postgres rights").Level)
	require.Equal(t, doctor.OK, found(t, r, "room settings").Level)
}

func TestWhatAnOutageOfPostgresHidesIsSkipped(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.dsn = "postgres://x@127.0.0.1:1/x"
	r := f.examine()
	require.Equal(t, 1, r.Count(doctor.Fail), "%+v", r)
	require.Equal(t, doctor.Skip, found(t, r, "rooms").Level)
	require.Equal(t, doctor.OK, found(t, r, "leader").Level)
}

func TestAPoolerHidesWhatPostgresWouldSay(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, dsn := range harness.Poolers(t, f.dsn) {
		f.dsn, f.Postgres = dsn+"&statement_timeout=5000", nil
		r := f.examine()
		require.Equal(t, 1, r.Count(doctor.Fail), "%s: %+v", name, r)
		require.Equal(t, "put the direct address of Postgres into LINEKEEPER_DATABASE_URL", found(t, r, "postgres").Do, name)
		require.Equal(t, "not looked at: a pooler answers for Postgres", found(t, r, "postgres schema").Found, name)
		require.Equal(t, doctor.OK, found(t, r, "leader").Level, name)
	}
}

func TestAnotherSchemaHidesWhatNeedsOurs(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.exec(`DELETE FROM goose_db_version WHERE version_id > 0`)
	r := f.examine()
	require.Equal(t, doctor.Fail, found(t, r, "postgres schema").Level)
	require.Equal(t, doctor.Skip, found(t, r, "postgres rights").Level)
	require.Equal(t, doctor.OK, found(t, r, "postgres connections").Level)
}

func TestPartsThatNobodyNamesAreFaults(t *testing.T) {
	t.Parallel()
	r := doctor.Examine(t.Context(), doctor.Patient{})
	require.Equal(t, doctor.Fail, found(t, r, "redis").Level)
	require.Equal(t, doctor.Fail, found(t, r, "postgres").Level)
	require.Equal(t, doctor.Skip, found(t, r, "clocks").Level)
}

func TestAPausedOrClosedRoomNeedsNoTicks(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.enter("bob")
	f.change(func(s *room.Settings) { s.Paused = true })
	f.state("ticked_at", micros(-time.Hour))
	r := f.examine()
	require.Equal(t, doctor.OK, found(t, r, "room tick").Level)
	require.Contains(t, found(t, r, "room state").Found, "PAUSED: people enter, nobody is let through; 1 wait")
}

func TestAChangeUnderWayIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.inPostgres(func(s *room.Settings) { s.BatchSize = 9 })
	lives, err := f.store.Lives(t.Context())
	require.NoError(t, err)
	pushed := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { pushed <- f.line.Update(t.Context(), lives[0]) })
	require.Equal(t, doctor.OK, found(t, f.examine(), "room in redis").Level)
	require.NoError(t, <-pushed)
}

func TestOneRoomCanBeLookedAtAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.store.Create(t.Context(), "other", room.Defaults(), ann)
	require.NoError(t, err)
	f.Room = "sale"
	r := f.examine()
	for _, c := range r.Checks {
		require.Contains(t, []string{"", "sale"}, c.Room)
	}
	require.Contains(t, found(t, r, "redis memory").Found, "2 room(s)", "memory is shared by all")
	require.Zero(t, r.Count(doctor.Fail))
}

func TestTwoProcessesThatFitAreEnough(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.Conf.DatabaseURL += "&pool_max_conns=90"
	require.Equal(t, doctor.OK, found(t, f.examine(), "postgres connections").Level)
}

func TestSchedulersWithoutALockNeedNone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.Conf.LeaderTTL = 0
	f.rdb.Del(t.Context(), prefix+":leader")
	require.Equal(t, doctor.OK, found(t, f.examine(), "leader").Level)
}

func TestAProcessWithoutTheAPINeedsNoKeys(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.Conf.Keys, f.Conf.Roles = "", config.RoleRelay
	require.Equal(t, doctor.OK, found(t, f.examine(), "keys").Level)
}

func TestExaminationChangesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	rows := func() (all string) {
		for _, table := range []string{"rooms", "room_progress", "room_changes", "room_exclusions", "products", "orders", "outbox", "draws"} {
			var text string
			require.NoError(t, f.db.QueryRow(t.Context(), fmt.Sprintf("SELECT coalesce(string_agg(t::text, ';' ORDER BY t::text), '') FROM %s t", table)).Scan(&text))
			all += text + "\n"
		}
		var last int64
		require.NoError(t, f.db.QueryRow(t.Context(), "SELECT last_value FROM generations").Scan(&last))
		return all + fmt.Sprint(last)
	}
	keys := func() []string {
		k, err := f.rdb.Keys(t.Context(), "*{sale}*").Result()
		require.NoError(t, err)
		return k
	}
	before, had := rows(), keys()
	f.examine()
	require.Equal(t, before, rows())
	require.ElementsMatch(t, had, keys())
}

func TestPasswordsAreNotShown(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.proc.Kill()
	f.dsn = "postgres://x:hunter2@127.0.0.1:1/x"
	f.Conf.RedisURL, f.Conf.DatabaseURL = "redis://u:hunter2@127.0.0.1:1", config.URL(f.dsn)
	for _, c := range f.examine().Checks {
		require.NotContains(t, c.Found+c.Do, "hunter2", c.Check)
	}
}
