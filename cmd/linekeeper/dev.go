package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/internal/telemetry"
	"github.com/linekeeper/linekeeper/migrations"
)

// devCmd runs the whole product around private servers of its own.
type devCmd struct {
	LogLevel       slog.Level `env:"LINEKEEPER_LOG_LEVEL" default:"warn" help:"Least level that is logged: debug, info, warn or error."`
	LogTransitions bool       `env:"LINEKEEPER_LOG_TRANSITIONS" default:"false" negatable:"" help:"Log one line for every change of a member's state."`
	config.Limits

	Dir         string `default:".linekeeper" help:"Where data, keys and the admin token are kept between runs."`
	Listen      string `env:"LINEKEEPER_LISTEN" default:"127.0.0.1:8080" help:"Address of the public API."`
	AdminListen string `env:"LINEKEEPER_ADMIN_LISTEN" default:"127.0.0.1:8081" help:"Address of the operators' API."`
	Redis       string `enum:"server,memory" default:"server" help:"server: a private redis-server. memory: a stand-in inside this process, which keeps nothing."`
	Crowd       int    `placeholder:"N" help:"Let so many simulated shoppers go through the room."`
	Install     bool   `default:"true" negatable:"" help:"Install a missing redis-server or Postgres."`
}

// devPorts are where the private servers listen, if nothing else does.
const devRedisPort, devPostgresPort = 16379, 15432

// thisMachine are the addresses of this machine alone.
var thisMachine = config.Prefixes{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// dev is a running development stack.
type dev struct {
	devCmd
	std   streams
	dir   string
	conf  config.Process
	token string
	hooks []redis.Hook // of the stand-in
	stop  []func()
}

// Run starts everything, serves until ctx ends, and leaves no process behind.
func (c *devCmd) Run(ctx context.Context, std streams) error {
	d := &dev{devCmd: *c, std: std}
	defer d.close()
	for _, step := range []func(context.Context) error{d.openDir, d.install, d.startRedis, d.startPostgres, d.secrets} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil // interrupted while starting
			}
			return err
		}
	}
	return d.serve(ctx)
}

func (d *dev) say(format string, args ...any) { fmt.Fprintf(d.std.out, format+"\n", args...) }

func (d *dev) close() {
	for i := len(d.stop) - 1; i >= 0; i-- {
		d.stop[i]()
	}
}

func (d *dev) openDir(context.Context) error {
	wanted, err := filepath.Abs(d.Dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(wanted, 0o755); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	used, moved, err := devstack.Reachable(wanted)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if moved {
		d.say("data are kept in %s, because the user that runs Postgres can't reach %s", used, wanted)
	} else {
		d.say("data are kept in %s", used)
	}
	d.dir = used
	return nil
}

// install gets what is missing. Without a redis-server the stand-in serves,
// and says what it is; without Postgres there is nothing to run.
func (d *dev) install(ctx context.Context) error {
	parts := []devstack.Part{devstack.PostgresServer}
	if d.Redis == "server" {
		parts = append(parts, devstack.RedisServer)
	}
	var missing []devstack.Part
	for _, p := range parts {
		if _, err := devstack.Find(p); err != nil {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var err error
	if d.Install {
		err = devstack.Install(ctx, d.std.out, missing...)
	}
	if _, found := devstack.Find(devstack.PostgresServer); found != nil {
		return errors.Join(err, found)
	}
	if d.Redis == "server" {
		if _, found := devstack.Find(devstack.RedisServer); found != nil {
			d.say("no redis-server to be had (%v)", errors.Join(err, found))
			d.Redis = "memory"
		}
	}
	return nil
}

func (d *dev) startRedis(ctx context.Context) error {
	if d.Redis == "memory" {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		if err := m.Start(); err != nil {
			return fmt.Errorf("redis stand-in: %w", err)
		}
		d.stop = append(d.stop, m.Close)
		d.conf.RedisURL = config.URL("redis://" + m.Addr())
		d.hooks = append(d.hooks, withoutFlags{})
		d.say("*** Redis is a stand-in inside this process: it is NOT DURABLE and not fast.")
		d.say("*** Every place is gone when this process ends. Never judge the product by it.")
		return nil
	}
	d.say("starting redis-server ...")
	p, err := devstack.StartRedis(ctx, devstack.Options{Dir: filepath.Join(d.dir, "redis"), Port: devRedisPort})
	if err != nil {
		return err
	}
	d.stop = append(d.stop, p.Close)
	d.conf.RedisURL = config.URL("redis://" + p.Addr)
	return nil
}

func (d *dev) startPostgres(ctx context.Context) error {
	d.say("starting postgres ...")
	p, err := devstack.StartPostgres(ctx, devstack.Options{Dir: filepath.Join(d.dir, "postgres"), Port: devPostgresPort})
	if err != nil {
		return err
	}
	d.stop = append(d.stop, p.Close)
	if err := p.CreateDatabase(ctx, "linekeeper"); err != nil {
		return err
	}
	dsn := p.DSN("linekeeper")
	d.conf.DatabaseURL = config.URL(dsn)
	applied, err := migrations.Up(ctx, dsn)
	if err != nil {
		return err
	}
	if len(applied) > 0 {
		d.say("migrated the database: %s", strings.Join(applied, ", "))
	}
	return nil
}

func (d *dev) secrets(context.Context) error {
	s, err := openSecrets(d.dir, "dev")
	d.token = s.adminToken
	d.conf.Keys, d.conf.AdminTokens = config.Secret(s.keys), config.Secret(s.adminEntry)
	return err
}

func (d *dev) serve(ctx context.Context) error {
	c := d.conf
	c.LogLevel, c.LogTransitions, c.Listen, c.AdminListen = d.LogLevel, d.LogTransitions, d.Listen, d.AdminListen
	c.KeyPrefix, c.Roles = "linekeeper", config.RoleAPI|config.RoleScheduler|config.RoleRelay
	c.Limits, c.TrustedProxies = d.Limits, thisMachine // a crowd of this machine shows an address for each
	c.Identity, c.LeaderTTL = config.IdentityTicket, 5*time.Second
	log := telemetry.Logger(d.std.err, d.LogLevel)
	redis.SetLogger(redisLog{log})
	s, err := newServer(ctx, c, log, d.hooks...)
	if err != nil {
		return err
	}
	defer s.close()
	s.index = links(d.AdminListen)
	if err := makeGoods(ctx, s.rooms, "dev"); err != nil {
		return err
	}
	return s.run(ctx, func(public, operators net.Addr) {
		for _, err := s.line.Snapshot(ctx, "default"); err != nil && ctx.Err() == nil; _, err = s.line.Snapshot(ctx, "default") {
			sleep(ctx, 50*time.Millisecond) // before a scheduler has begun the room nobody can enter
		}
		d.welcome(public, operators)
		if d.Crowd > 0 {
			go d.crowd(ctx, "http://"+public.String())
		}
	})
}
