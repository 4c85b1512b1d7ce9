package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/linekeeper/linekeeper/admin"
	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/migrations"
)

type migrateCmd struct {
	Up     migrateUp     `cmd:"" help:"Apply what is missing. Any number of processes may do so at once."`
	Down   migrateDown   `cmd:"" help:"Undo the last migration, and with it the data that it made room for."`
	Status migrateStatus `cmd:"" help:"List the migrations and when they were applied."`
}

type migrateUp struct{ config.Database }

// Run says what has been done, by the names of the files.
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

// Run says what has been done, by the names of the files.
func (c *migrateDown) Run(ctx context.Context, std streams) error {
	name, err := migrations.Down(ctx, c.DatabaseURL.Reveal())
	if err == nil {
		fmt.Fprintln(std.out, "undone", name)
	}
	return err
}

type migrateStatus struct {
	config.Database
	output
}

// migrationShown is one line of the list.
type migrationShown struct {
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"appliedAt"` // null while it is pending
}

// Run lists every migration this binary knows.
func (c *migrateStatus) Run(ctx context.Context, std streams) error {
	all, err := migrations.Status(ctx, c.DatabaseURL.Reveal())
	if err != nil {
		return err
	}
	list := make([]migrationShown, len(all))
	for i, m := range all {
		list[i].Name = m.Name
		if at := m.AppliedAt.UTC(); !m.AppliedAt.IsZero() {
			list[i].AppliedAt = &at
		}
	}
	v, err := operators.NewView(map[string]any{"migrations": list}, func(w io.Writer) {
		for _, m := range list {
			when := "pending"
			if m.AppliedAt != nil {
				when = "applied " + m.AppliedAt.Format(time.RFC3339)
			}
			fmt.Fprintf(w, "%s\t%s\n", m.Name, when)
		}
	})
	return c.shown(std, v, err)
}

type adminTokenCmd struct {
	New  adminTokenNew  `cmd:"" aliases:"create" help:"Make an admin token, and its entry for LINEKEEPER_ADMIN_TOKENS."`
	Show adminTokenShow `cmd:"" help:"Print the admin token that setup or dev has made in a directory."`
}

type adminTokenNew struct {
	Name string `arg:"" help:"Whose it is; it stands in the audit list."`
	Role string `enum:"viewer,operator,admin" default:"operator" help:"What it may do: ${enum}."`
}

// Run prints what it makes, once.
func (c *adminTokenNew) Run(std streams) error {
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
