package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/internal/pooler"
	"github.com/linekeeper/linekeeper/migrations"
)

// startWithin is how long a process that starts waits for parts that do not
// answer yet.
const startWithin = 30 * time.Second

// checkParts refuses parts that would break promises: a Redis that may evict
// places, a Postgres that may forget orders, a pooler in front of it, a schema of
// another version. It waits for parts that are not there yet.
func (s *server) checkParts(ctx context.Context) error {
	return errors.Join(
		s.patiently(ctx, "redis", s.checkRedis),
		s.patiently(ctx, "postgres", s.checkPostgres))
}

// refusal is a fault that waiting does not mend.
type refusal struct{ error }

func (s *server) patiently(ctx context.Context, part string, check func(context.Context) error) error {
	deadline := time.Now().Add(startWithin)
	for {
		err := check(ctx)
		var r refusal
		if err == nil || errors.As(err, &r) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		s.log.Warn("waiting for a part", "part", part, "err", err)
		sleep(ctx, time.Second)
	}
}

const minRedis = 7

// checkRedis looks at every server that takes writes: in a Cluster each has
// settings of its own, and one that evicts loses the places of its rooms.
func (s *server) checkRedis(ctx context.Context) error {
	cluster, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return s.checkServer(ctx, s.rdb)
	}
	return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		if err := s.checkServer(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Options().Addr, err)
		}
		return nil
	})
}

func (s *server) checkServer(ctx context.Context, c redis.Cmdable) error {
	info, err := c.Info(ctx, "server", "memory", "persistence").Result()
	var answered redis.Error
	if errors.As(err, &answered) && strings.Contains(err.Error(), "wrong number of arguments") {
		return nil // the memory stand-in of dev, which has said so itself
	}
	if err != nil {
		return trusted("LINEKEEPER_REDIS_URL", fmt.Errorf("redis: %w", err))
	}
	if v := infoText(info, "redis_version"); major(v) < minRedis {
		return refusal{fmt.Errorf("redis %s is too old; Linekeeper needs %d.0 or newer", v, minRedis)}
	}
	switch p := infoText(info, "maxmemory_policy"); {
	case p == "noeviction":
	case s.conf.AllowEviction:
		s.log.Warn("redis may evict people's places", "policy", p, "setting", "maxmemory-policy noeviction")
	default:
		return refusal{fmt.Errorf("redis has maxmemory-policy %s and may evict people's places; set it to noeviction (or LINEKEEPER_ALLOW_EVICTION=true, and lose them)", p)}
	}
	if infoText(info, "aof_enabled") == "0" {
		s.log.Warn("redis keeps no append-only file: a restart loses places, which then have to be restored from tickets", "setting", "appendonly yes")
	}
	return nil
}

func (s *server) checkPostgres(ctx context.Context) error {
	err := pooler.Check(ctx, s.books, s.books.Config().ConnConfig.RuntimeParams)
	if errors.Is(err, pooler.Err) {
		return refusal{fmt.Errorf("postgres: %w", err)}
	}
	if err != nil {
		return trusted("LINEKEEPER_DATABASE_URL", fmt.Errorf("postgres: %w", err))
	}
	var version int
	var commit string
	err = s.books.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, current_setting('synchronous_commit')").Scan(&version, &commit)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	if version < 150000 {
		return refusal{fmt.Errorf("postgres %d is too old; Linekeeper needs 15 or newer", version/10000)}
	}
	if commit == "off" {
		return refusal{errors.New("postgres has synchronous_commit off and may forget orders it has acknowledged; set it to on")}
	}
	err = migrations.Check(ctx, s.books)
	if errors.Is(err, migrations.ErrSchema) {
		return refusal{fmt.Errorf("%w; run `linekeeper migrate up`", err)}
	}
	return err
}

// infoText reads one field of INFO.
func infoText(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return v
		}
	}
	return ""
}

func major(version string) int {
	n, _ := strconv.Atoi(strings.SplitN(version, ".", 2)[0])
	return n
}
