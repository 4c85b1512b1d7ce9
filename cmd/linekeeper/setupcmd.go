package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/migrations"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
)

// setupCmd makes what a stack lacks to serve. It is safe to run at every start:
// what is there stays.
type setupCmd struct {
	config.Database
	Secrets string        `required:"" placeholder:"DIR" help:"Where the signing key and the admin token are, or are to be made."`
	Owner   int           `default:"65532" help:"The user that the secrets are for, where this runs as root: the one of the image."`
	Within  time.Duration `default:"60s" help:"How long to wait for Postgres."`
}

// Run migrates, makes the secrets, and makes a room and a product to try.
func (c *setupCmd) Run(ctx context.Context, std streams) error {
	pool, err := pgxpool.New(ctx, c.DatabaseURL.Reveal())
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	defer pool.Close()
	if err := awaitPostgres(ctx, pool, c.Within); err != nil {
		return err
	}
	applied, err := migrations.Up(ctx, c.DatabaseURL.Reveal())
	for _, name := range applied {
		fmt.Fprintln(std.out, "applied", name)
	}
	if err != nil {
		return err
	}
	if _, err := openSecrets(c.Secrets, "setup"); err != nil {
		return err
	}
	if err := c.handOver(std); err != nil {
		return err
	}
	if err := makeGoods(ctx, roomstore.New(pool), "setup"); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "Set up: the schema, room default, product demo, and the secrets in %s.\n", c.Secrets)
	fmt.Fprintf(std.out, "To read the admin token:\n  linekeeper admin-token show %[1]s\n"+
		"or, in the compose stack:\n  docker compose run --rm --no-deps setup admin-token show %[1]s\n", c.Secrets)
	return nil
}

// awaitPostgres waits for a server that is still starting.
func awaitPostgres(ctx context.Context, pool *pgxpool.Pool, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := pool.Ping(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("postgres does not answer within %v: %w", within, err)
		}
		sleep(ctx, 500*time.Millisecond)
	}
}

// handOver makes the secrets readable to the user that serves, and to nobody
// else. Only root can give files away; anybody else keeps them.
func (c *setupCmd) handOver(std streams) error {
	if me := os.Geteuid(); me != 0 {
		if me != c.Owner {
			fmt.Fprintf(std.err, "only user %d can read the secrets; to serve as another user, run this as that user, or as root\n", me)
		}
		return nil
	}
	var errs []error
	for _, name := range []string{"", keysFile, adminTokenFile, adminEntryFile} {
		errs = append(errs, os.Chown(filepath.Join(c.Secrets, name), c.Owner, c.Owner))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("give the secrets to user %d: %w", c.Owner, err)
	}
	return nil
}

// adminTokenShow prints the token that setup or dev has made: the image has no shell
// to look into a file with.
type adminTokenShow struct {
	Dir string `arg:"" help:"Directory of the secrets."`
}

// Run prints the file as it is.
func (c *adminTokenShow) Run(std streams) error {
	b, err := os.ReadFile(filepath.Join(c.Dir, adminTokenFile))
	if err != nil {
		return err
	}
	_, err = std.out.Write(b)
	return err
}
