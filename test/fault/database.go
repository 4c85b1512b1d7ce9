package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

// Database is a Postgres server to be broken, with one database of the product
// on it. Its methods connect to it directly, past any Proxy.
type Database struct {
	Server *devstack.Postgres
	name   string
}

// NewDatabase breaks a server; name is the product's database.
func NewDatabase(p *devstack.Postgres, name string) *Database { return &Database{p, name} }

// DSN is the database's URL.
func (d *Database) DSN() string { return d.Server.DSN(d.name) }

// Kill ends the server and all its sessions with SIGKILL.
func (d *Database) Kill() { d.Server.Kill() }

// Start starts it again, and returns when it has recovered.
func (d *Database) Start() error { return d.Server.Start() }

// TerminateSessions ends every session of the database, as an operator does
// with pg_terminate_backend, and says how many there were.
func (d *Database) TerminateSessions(ctx context.Context) (n int, err error) {
	err = d.do(ctx, "terminate sessions", func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n)
	})
	return n, err
}

// ReadOnly has every session refuse to write, also those that are there.
func (d *Database) ReadOnly(ctx context.Context) error { return d.readOnly(ctx, "on") }

// Writable ends ReadOnly.
func (d *Database) Writable(ctx context.Context) error { return d.readOnly(ctx, "off") }

func (d *Database) readOnly(ctx context.Context, value string) error {
	return d.do(ctx, "set default_transaction_read_only "+value, func(c *pgx.Conn) error {
		if _, err := c.Exec(ctx, "ALTER SYSTEM SET default_transaction_read_only = "+value); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
			return err
		}
		return awaitSetting(ctx, c, value)
	})
}

// awaitSetting waits for the postmaster, which tells its sessions when it gets
// to it.
func awaitSetting(ctx context.Context, c *pgx.Conn, value string) error {
	for {
		var now string
		if err := c.QueryRow(ctx, "SHOW default_transaction_read_only").Scan(&now); err != nil || now == value {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Deadlock locks these products in the opposite order of an order's, over and
// over until ctx ends, pausing for hold between two locks. Its own session looks
// for no deadlock, so it is the product's transaction that finds it and ends with
// 40P01. It says how often it got all the locks.
func (d *Database) Deadlock(ctx context.Context, hold time.Duration, skus ...string) (rounds int) {
	against := slices.Sorted(slices.Values(skus))
	slices.Reverse(against)
	for ctx.Err() == nil {
		if err := d.rival(ctx, hold, against); err == nil {
			rounds++
			continue
		}
		sleepUntil(ctx, time.Now().Add(hold)) // something else has broken the server meanwhile
	}
	return rounds
}

func (d *Database) rival(ctx context.Context, hold time.Duration, skus []string) error {
	c, err := pgx.Connect(ctx, d.DSN())
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SET LOCAL deadlock_timeout = '1h'"); err != nil {
		return err
	}
	for _, sku := range skus {
		if _, err := tx.Exec(ctx, "SELECT FROM products WHERE sku = $1 FOR UPDATE", sku); err != nil {
			return err
		}
		if !sleepUntil(ctx, time.Now().Add(hold)) {
			return ctx.Err()
		}
	}
	return tx.Rollback(ctx)
}

func (d *Database) do(ctx context.Context, what string, f func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, d.DSN())
	for until := time.Now().Add(patience); err != nil && time.Now().Before(until) && sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); {
		c, err = pgx.Connect(ctx, d.DSN()) // it is coming back, perhaps
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if err := f(c); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
