package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/doctor"
)

type doctorCmd struct {
	config.Process
	Room string `placeholder:"NAME" help:"Look at this room alone."`
	output
}

// Check lets everything pass: what is wrong with the settings is a finding, and
// must not hide the others.
func (*doctorCmd) Check() error { return nil }

// Run prints one line a check, and fails if one does.
func (c *doctorCmd) Run(ctx context.Context, std streams) error {
	p := doctor.Patient{Conf: c.Process, Room: c.Room, MoreConns: booksConns}
	var stop func()
	p.Redis, p.Postgres, stop = c.connect(ctx)
	defer stop()
	report := doctor.Examine(ctx, p)
	v, err := operators.NewView(report, func(w io.Writer) {
		for _, f := range report.Checks {
			fmt.Fprintln(w, findingLine(f))
		}
	})
	if err := c.shown(std, v, err); err != nil {
		return err
	}
	if n := report.Count(doctor.Fail); n > 0 {
		return fmt.Errorf("%d of %d checks failed", n, len(report.Checks))
	}
	return nil
}

func findingLine(f doctor.Finding) string {
	name, found := f.Check, f.Found
	if f.Room != "" {
		name += " " + f.Room
	}
	if f.Do != "" {
		found += " -> " + f.Do
	}
	return fmt.Sprintf("%s\t%s\t%s", f.Level, name, found)
}

// connect opens what the settings name, as far as they can be read. It has no
// retries: a doctor wants to see the first failure.
func (c *doctorCmd) connect(ctx context.Context) (rdb redis.UniversalClient, pool *pgxpool.Pool, stop func()) {
	if o, err := config.RedisOptions(c.RedisURL); err == nil {
		o.MaxRetries = -1
		rdb = config.OpenRedis(o)
	}
	if conf, err := pgxpool.ParseConfig(c.DatabaseURL.Reveal()); err == nil && c.DatabaseURL != "" {
		conf.MaxConns, conf.MinConns = 2, 0
		conf.ConnConfig.ConnectTimeout = 5 * time.Second
		conf.ConnConfig.RuntimeParams["statement_timeout"] = "5000"
		// A pool connects later; what can fail now has been parsed.
		pool, _ = pgxpool.NewWithConfig(ctx, conf)
	}
	return rdb, pool, func() {
		if rdb != nil {
			_ = rdb.Close()
		}
		if pool != nil {
			pool.Close()
		}
	}
}
