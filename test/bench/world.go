package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/fault"
)

// prefix is what the product's keys begin with.
const prefix = "linekeeper"

// world is everything that runs.
type world struct {
	plan    plan
	only    string // the part that is measured; empty: all
	out     io.Writer
	binary  string // of the product
	dir     string
	started time.Time

	*site
	redis      *devstack.Proc
	postgres   *devstack.Postgres
	bareDB     *pgxpool.Pool
	keys       string
	adminToken string
	adminEntry string // of the list that the product is given

	newcomers newcomers // over all rooms of the product: an address enters once
	plainSize int       // of the body of a poll

	product *fault.Process
	others  map[string]*fault.Process
	stops   []func()
}

// site is one installation of the product: its line, its database, and who signs.
type site struct {
	rdb   redis.UniversalClient
	line  *redisstore.Store
	db    *pgxpool.Pool
	rooms *roomstore.Store
	ring  *credential.Ring
}

func (w *world) say(format string, args ...any) {
	fmt.Fprintf(w.out, "%4.0f s  "+format+"\n", append([]any{time.Since(w.started).Seconds()}, args...)...)
}

func (w *world) close() {
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i]()
	}
}

func (w *world) atEnd(f func()) { w.stops = append(w.stops, f) }

// open starts the servers and the product. The caller closes the world, also
// after an error.
func (w *world) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{w.install, w.openDir, w.startRedis, w.startPostgres, w.startProduct} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// install gets what is missing, as make test does.
func (w *world) install(ctx context.Context) error {
	var missing []devstack.Part
	for _, p := range []devstack.Part{devstack.RedisServer, devstack.PostgresServer} {
		if _, err := devstack.Find(p); err != nil {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return devstack.Install(ctx, w.out, missing...)
}

// openDir begins with an empty directory, on disk, where the user that Postgres
// runs as can get to.
func (w *world) openDir(context.Context) error {
	dir, _, err := devstack.Reachable(w.dir)
	if err != nil {
		return err
	}
	w.dir = dir
	parts := []string{"redis", "postgres"}
	for _, p := range parts {
		if err := os.RemoveAll(filepath.Join(dir, p)); err != nil {
			return err
		}
	}
	w.atEnd(func() {
		for _, p := range parts {
			_ = os.RemoveAll(filepath.Join(dir, p))
		}
	})
	return nil
}

// redisArgs are those of a server for production, but that it never rewrites its
// file: a fork in the middle of a round would be one side's bad luck.
var redisArgs = []string{"--auto-aof-rewrite-percentage", "0"}

func (w *world) startRedis(ctx context.Context) error {
	p, err := devstack.StartRedis(ctx, devstack.Options{Dir: filepath.Join(w.dir, "redis"), Args: redisArgs})
	if err != nil {
		return err
	}
	w.redis = p
	w.atEnd(p.Close)
	w.site = &site{}
	w.rdb, err = w.openRedis(redisURL(p))
	w.line = redisstore.New(w.rdb, prefix)
	return err
}

func redisURL(p *devstack.Proc) string { return "redis://" + p.Addr }

// openRedis is a client until the end of the world.
func (w *world) openRedis(url string) (redis.UniversalClient, error) {
	o, err := config.RedisOptions(config.URL(url))
	if err != nil {
		return nil, err
	}
	rdb := config.OpenRedis(o)
	w.atEnd(func() { _ = rdb.Close() })
	return rdb, nil
}

func (w *world) startPostgres(ctx context.Context) error {
	p, err := devstack.StartPostgres(ctx, devstack.Options{Dir: filepath.Join(w.dir, "postgres")})
	if err != nil {
		return err
	}
	w.postgres = p
	w.atEnd(p.Close)
	if w.db, err = w.database(ctx, "linekeeper"); err != nil {
		return err
	}
	w.rooms = roomstore.New(w.db)
	w.bareDB, err = w.database(ctx, "bare")
	return err
}

// database makes one with the product's schema.
func (w *world) database(ctx context.Context, name string) (*pgxpool.Pool, error) {
	if err := w.postgres.CreateDatabase(ctx, name); err != nil {
		return nil, err
	}
	if _, err := migrations.Up(ctx, w.postgres.DSN(name)); err != nil {
		return nil, err
	}
	db, err := pgxpool.New(ctx, w.postgres.DSN(name))
	if err == nil {
		w.atEnd(db.Close)
	}
	return db, err
}

func (w *world) startProduct(ctx context.Context) (err error) {
	w.keys = credential.GenerateKey()
	if w.ring, err = credential.ParseRing(w.keys); err != nil {
		return err
	}
	if w.adminToken, w.adminEntry, err = admin.NewToken("bench", admin.Admin); err != nil {
		return err
	}
	w.product, err = w.serve(ctx, redisURL(w.redis), "linekeeper")
	return err
}

// serve runs `linekeeper serve` with its defaults. It is told that this machine is a
// trusted proxy, so that each member has an address of their own, as behind a load
// balancer.
func (w *world) serve(ctx context.Context, redis, database string) (*fault.Process, error) {
	return w.start(ctx, w.binary, []string{
		"LINEKEEPER_REDIS_URL=" + redis,
		"LINEKEEPER_DATABASE_URL=" + w.postgres.DSN(database),
		"LINEKEEPER_KEYS=" + w.keys,
		"LINEKEEPER_ADMIN_TOKENS=" + w.adminEntry,
		"LINEKEEPER_LISTEN=127.0.0.1:0",
		"LINEKEEPER_ADMIN_LISTEN=127.0.0.1:0",
		"LINEKEEPER_TRUSTED_PROXIES=127.0.0.0/8",
		"LINEKEEPER_SHUTDOWN_DELAY=0s",
	}, "serve")
}

// start runs a process until the end of the world.
func (w *world) start(ctx context.Context, binary string, env []string, args ...string) (*fault.Process, error) {
	p, err := fault.StartProcess(binary, env, args...)
	if err != nil {
		return nil, err
	}
	w.atEnd(func() { terminate(p) })
	serving, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return p, p.AwaitServing(serving)
}

func terminate(p *fault.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = p.Terminate(ctx)
}

// endServers ends the product and the comparators before the end of the world.
func (w *world) endServers() {
	terminate(w.product)
	for _, p := range w.others {
		terminate(p)
	}
}

// host is the address of a process, without the scheme.
func host(p *fault.Process) string { return strings.TrimPrefix(p.Public, "http://") }

func hosts(all []*fault.Process) []string {
	addrs := make([]string, len(all))
	for i, p := range all {
		addrs[i] = host(p)
	}
	return addrs
}

func only(p *fault.Process) []*fault.Process { return []*fault.Process{p} }

// eventually waits until f is content.
func eventually(ctx context.Context, what string, f func() (bool, error)) error {
	deadline := time.Now().Add(60 * time.Second)
	for {
		ok, err := f()
		if ok && err == nil {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("not within a minute: %s", what), err, ctx.Err())
		}
		time.Sleep(5 * time.Millisecond)
	}
}
