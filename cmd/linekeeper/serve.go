package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/telemetry"
)

type serveCmd struct{ config.Process }

// Check is called before Run: a bad configuration tells all that is wrong with
// it at once, and starts nothing.
func (c *serveCmd) Check() error {
	_, keys := credential.ParseRing(c.Keys.Reveal())
	_, tokens := admin.ParseTokens(c.AdminTokens.Reveal())
	return errors.Join(c.Process.Check(), named("LINEKEEPER_KEYS", keys), named("LINEKEEPER_ADMIN_TOKENS", tokens))
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
	s, err := newServer(ctx, c.Process, log)
	if err != nil {
		return err
	}
	defer s.close()
	return s.run(ctx, nil)
}
