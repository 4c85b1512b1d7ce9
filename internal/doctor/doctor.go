// Package doctor examines an installation: the settings of a process, its Redis,
// its Postgres, and every room, and says of each fault the one thing to do.
//
// It promises one finding a check, also where a part is out of reach (then the
// checks that need it are skipped, and say so), and that it changes nothing: what
// it writes is rolled back, or ends by itself within seconds.
//
//	ok     as it should be
//	warn   works, and will hurt: under load, after a crash, or on the day of the sale
//	FAIL   broken now, or a promise of the product does not hold
//	skip   could not be looked at; another finding says why
//
// It does not mend anything, and does not watch: metrics and alerts do. What it
// says of open files and of the clock of "this host" is true of the machine that
// it runs on, so run it where the processes run.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/internal/config"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "FAIL"
	Skip Level = "skip"
)

// Finding is what one check found.
type Finding struct {
	Check string `json:"check"`
	Room  string `json:"room"` // empty where the check is about no single room
	Level Level  `json:"level"`
	Found string `json:"found"`
	Do    string `json:"do"` // the one thing to do; empty where nothing is to be done
}

// Patient is the installation to examine.
type Patient struct {
	Conf     config.Process
	Redis    redis.UniversalClient // nil where the settings name none
	Postgres *pgxpool.Pool         // nil where the settings name none
	Room     string                // look at this room alone; empty: at all
	// MoreConns is how many connections to Postgres a process has beside the pool
	// that the database's URL sizes.
	MoreConns int
	// Now is the clock of this host, and OpenFiles how many files the process may
	// open; nil for the real ones.
	Now       func() time.Time
	OpenFiles func() (uint64, error)
}

// Report is all findings, in the order of the checks.
type Report struct {
	Checks []Finding `json:"checks"`
}

// Count is how many findings have that level.
func (r Report) Count(l Level) int {
	n := 0
	for _, f := range r.Checks {
		if f.Level == l {
			n++
		}
	}
	return n
}

// need is what must be there for a check to say anything.
type need int

const (
	nothing need = iota
	redisUp
	postgresUp
	schema // of this binary, in a Postgres that answers
	lines  // a schema and a Redis
)

// check is one question about the installation as a whole.
type check struct {
	name  string
	needs need
	run   func(ctx context.Context, e *exam) Finding
}

var checks = []check{
	{"settings", nothing, settings},
	{"keys", nothing, keys},
	{"admin tokens", nothing, adminTokens},
	{"open files", nothing, openFiles},
	{"redis", nothing, redisReached},
	{"redis version", redisUp, redisVersion},
	{"redis role", redisUp, redisRole},
	{"redis eviction", redisUp, redisEviction},
	{"redis persistence", redisUp, redisPersistence},
	{"redis rights", redisUp, redisRights},
	{"postgres", nothing, postgresReached},
	{"postgres version", postgresUp, postgresVersion},
	{"postgres commits", postgresUp, postgresCommits},
	{"postgres schema", postgresUp, postgresSchema},
	{"postgres rights", schema, postgresRights},
	{"postgres connections", postgresUp, postgresConnections},
	{"clocks", nothing, clocks},
	{"redis memory", lines, redisMemory},
	{"stock", schema, stock},
	{"outbox", schema, outboxEnds},
	{"leader", redisUp, leader},
	{"rooms", schema, roomsThere},
}

// roomCheck is one question about each room.
type roomCheck struct {
	name  string
	needs need
	run   func(ctx context.Context, e *exam, r *ward) Finding
}

var roomChecks = []roomCheck{
	{"room settings", schema, roomSettings},
	{"room in redis", lines, roomInRedis},
	{"room state", lines, roomState},
	{"room schedule", schema, roomSchedule},
	{"room space", lines, roomSpace},
	{"room tick", lines, roomTick},
	{"room orders", schema, roomOrders},
	{"room stock", schema, roomStock},
}

// checkTimeout bounds one check, and the look at everything before them.
const checkTimeout = 10 * time.Second

// Examine runs every check.
func Examine(ctx context.Context, p Patient) Report {
	e := look(ctx, p)
	var r Report
	for _, c := range checks {
		f := e.guarded(ctx, c.needs, func(ctx context.Context) Finding { return c.run(ctx, e) })
		f.Check = c.name
		r.Checks = append(r.Checks, f)
	}
	for _, w := range e.wards {
		if p.Room != "" && p.Room != w.name {
			continue
		}
		for _, c := range roomChecks {
			f := e.guarded(ctx, c.needs, func(ctx context.Context) Finding { return c.run(ctx, e, w) })
			f.Check, f.Room = c.name, w.name
			r.Checks = append(r.Checks, f)
		}
	}
	return r
}

// guarded runs a check whose needs are met.
func (e *exam) guarded(ctx context.Context, n need, run func(context.Context) Finding) Finding {
	if why := e.lacking(n); why != "" {
		return skipped("not looked at: %s", why)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return run(ctx)
}

func good(format string, args ...any) Finding {
	return Finding{Level: OK, Found: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Finding {
	return Finding{Level: Skip, Found: fmt.Sprintf(format, args...)}
}

func warn(do, format string, args ...any) Finding {
	return Finding{Level: Warn, Do: do, Found: fmt.Sprintf(format, args...)}
}

func fail(do, format string, args ...any) Finding {
	return Finding{Level: Fail, Do: do, Found: fmt.Sprintf(format, args...)}
}
