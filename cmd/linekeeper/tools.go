package main

import (
	"context"
	"fmt"
	"time"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/migrations"
)

type migrateCmd struct {
	Up     migrateUp     `cmd:"" help:"Apply what is missing. Any number of processes may do so at once."`
	Down   migrateDown   `cmd:"" help:"Undo the last migration, and with it the data that it made room for."`
	Status migrateStatus `cmd:"" help:"List the migrations and when they were applied."`
}

type migrateUp struct{ config.Database }

func (c *migrateUp) Run(ctx context.Context, std streams) error {
	applied, err := migrations.Up(ctx, c.DatabaseURL.Reveal())
	for _, name := range applied {
		fmt.Fprintln(std.out, "applied", name)
	}
	if err == nil && len(applied) == 0 {
		fmt.Fprintln(std.out, "nothing to apply")
	}
	return err
}

type migrateDown struct{ config.Database }

func (c *migrateDown) Run(ctx context.Context, std streams) error {
	name, err := migrations.Down(ctx, c.DatabaseURL.Reveal())
	if err == nil {
		fmt.Fprintln(std.out, "undone", name)
	}
	return err
}

type migrateStatus struct{ config.Database }

func (c *migrateStatus) Run(ctx context.Context, std streams) error {
	all, err := migrations.Status(ctx, c.DatabaseURL.Reveal())
	for _, m := range all {
		when := "pending"
		if !m.AppliedAt.IsZero() {
			when = "applied " + m.AppliedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(std.out, "%-30s %s\n", m.Name, when)
	}
	return err
}

type keysCmd struct {
	New keysNew `cmd:"" help:"Make a signing key, as LINEKEEPER_KEYS wants it."`
}

type keysNew struct{}

func (keysNew) Run(std streams) error {
	_, err := fmt.Fprintln(std.out, credential.GenerateKey())
	return err
}

type tokenCmd struct {
	New tokenNew `cmd:"" help:"Make an admin token, and its entry for LINEKEEPER_ADMIN_TOKENS."`
}

type tokenNew struct {
	Name string `arg:"" help:"Whose it is; it stands in the audit list."`
	Role string `enum:"viewer,operator,admin" default:"operator" help:"What it may do: ${enum}."`
}

func (c *tokenNew) Run(std streams) error {
	role, err := admin.ParseRole(c.Role)
	if err != nil {
		return err
	}
	token, line, err := admin.NewToken(c.Name, role)
	if err != nil {
		return err
	}
	fmt.Fprintln(std.err, "The token is shown once. For LINEKEEPER_ADMIN_TOKENS:", line)
	_, err = fmt.Fprintln(std.out, token)
	return err
}
