package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is main without the process.
func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.plan, "plan", "full", "how much is measured: quick or full")
	f.StringVar(&o.binary, "binary", "bin/bench/linekeeper", "the product")
	f.StringVar(&o.dir, "dir", "bin/bench", "where data and results go")
	f.StringVar(&o.page, "page", "", "a page to put the results into; none: no page")
	f.StringVar(&o.only, "only", "", "measure one part: polls, enters, sizes, orders, lab or scale")
	f.StringVar(&o.redis, "redis", "", "of a comparator")
	f.StringVar(&o.database, "database", "", "of a comparator")
	f.StringVar(&o.answers, "answers", "", "of the comparator plain")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case f.NArg() == 0:
		return bench(ctx, o, out)
	case f.NArg() == 2 && f.Arg(0) == "comparator":
		return compare(ctx, f.Arg(1), o)
	case f.NArg() == 2 && f.Arg(0) == "profile":
		return profile(ctx, f.Arg(1), o, out)
	}
	return errors.New("usage: bench [flags], bench [flags] comparator (plain, naive or bare), bench [flags] profile (poll, enter or order)")
}

// options are the flags.
type options struct {
	plan, binary, dir, page  string
	only                     string
	redis, database, answers string
}

// compare serves as a comparator.
func compare(ctx context.Context, kind string, o options) error {
	var c *comparator
	var err error
	switch kind {
	case "plain":
		c, err = plain(o.answers)
	case "naive":
		c, err = naiveServer(o.redis)
	case "bare":
		c, err = bareServer(ctx, o.database)
	default:
		err = fmt.Errorf("no comparator %q", kind)
	}
	if err != nil {
		return err
	}
	return c.serve(ctx)
}
