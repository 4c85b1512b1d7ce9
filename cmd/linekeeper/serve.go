package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/telemetry"
)

type serveCmd struct{ config.Process }

// Check is called before Run: a bad configuration tells all that is wrong with
// it at once, and starts nothing.
func (c *serveCmd) Check() error {
	var keys error
	if c.Keys != "" { // that it is there where it is needed, Process checks
		_, keys = credential.ParseRing(c.Keys.Reveal())
	}
	_, tokens := admin.ParseTokens(c.AdminTokens.Reveal())
	return errors.Join(c.Process.Check(), named("LINEKEEPER_KEYS", keys), named("LINEKEEPER_ADMIN_TOKENS", tokens), checkIdentity(c.Process))
}

// redisLog takes what the Redis client says of itself, per connection and
// attempt, as detail: the probe and the metrics tell an outage once.
type redisLog struct{ log *slog.Logger }

// Printf implements go-redis's logger.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, v...))
}

func named(setting string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	return nil
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, std streams) error {
	log := telemetry.Logger(std.err, c.LogLevel)
	redis.SetLogger(redisLog{log})
	s, err := newServer(ctx, c.Process, log)
	if err != nil {
		return err
	}
	defer s.close()
	return s.run(ctx, nil)
}
