package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/load"
	"github.com/linekeeper/linekeeper/room"
)

// loadCmd has no environment variable for the server's address: whoever loads
// something else than this machine has to say so each time.
type loadCmd struct {
	operators.Remote
	Shape       string        `arg:"" optional:"" enum:"constant,ramp,burst" default:"constant" help:"How people come: ${enum}."`
	URL         string        `name:"url" default:"http://127.0.0.1:8080" help:"The public API to load. Name it for anything but this machine."`
	Room        string        `default:"default" help:"The room that people enter."`
	SKU         string        `name:"sku" default:"demo" help:"What they order, one piece each."`
	Arrivals    int           `default:"1000" help:"How many people come."`
	Over        time.Duration `default:"10s" help:"The time in which they come, whatever the answers are."`
	Tail        time.Duration `default:"1m" help:"How long to go on after that until all are through, at most."`
	Order       float64       `default:"0.9" help:"Share of those with an entry token who order."`
	Twice       float64       `default:"0.1" help:"Share of people who load the page again, and press the button twice at once."`
	Vanish      float64       `default:"0.05" help:"Share of people who stop asking."`
	Leave       float64       `default:"0.05" help:"Share of people who give their place or token up."`
	Think       load.Think    `default:"exp:2s" placeholder:"TIME" help:"From the token to the order: 2s, 1s-5s (evenly between) or exp:2s (exponential)."`
	Intruders   float64       `default:"0.01" help:"Intruders on top, for each who comes: they try to order without a grant."`
	Connections int           `default:"256" help:"Connections, at most. Each is kept and used for whoever is due next."`
	Forwarded   bool          `default:"true" negatable:"" help:"Show an address for each person in X-Forwarded-For; a server believes it from trusted proxies."`
	Tidy        bool          `default:"true" negatable:"" help:"At the end, take those who still have a place out of the line."`
	Seed        uint64        `placeholder:"N" help:"Chance: the same seed makes the same people. By default it is drawn, and the report has it."`
	JSON        string        `name:"json" placeholder:"FILE" help:"Write the report as JSON."`
	HTML        string        `name:"html" placeholder:"FILE" help:"Write the report as a page with diagrams, in one file."`
	Quiet       bool          `short:"q" help:"Do not show how it goes."`
}

func (c *loadCmd) plan() load.Plan {
	p := load.Plan{
		URL: strings.TrimRight(c.URL, "/"), Room: c.Room, SKU: c.SKU,
		Arrivals: load.Arrivals{Shape: c.Shape, People: c.Arrivals, Over: c.Over},
		People: load.People{
			Order: c.Order, Twice: c.Twice, Vanish: c.Vanish, Leave: c.Leave, Intruders: c.Intruders, Think: c.Think,
		},
		Tail: c.Tail, Connections: c.Connections, Forwarded: c.Forwarded, Tidy: c.Tidy, Seed: c.Seed,
	}
	if c.AdminToken != "" {
		p.Operator = operatorsView{c.Client()}
	}
	return p
}

// operatorsView is the operators' API, as package load asks for it.
type operatorsView struct{ *operators.Client }

// Snapshot is the room at one moment.
func (o operatorsView) Snapshot(ctx context.Context, room string) ([]byte, error) {
	v, err := o.Stats(ctx, room)
	return v.Body, err
}

// Settings is the room with its settings.
func (o operatorsView) Settings(ctx context.Context, room string) ([]byte, error) {
	v, err := o.GetRoom(ctx, room)
	return v.Body, err
}

// Check refuses what can't be run. A token is not needed: without one, what only
// operators see is not judged.
func (c *loadCmd) Check() error {
	wrong := []error{c.plan().Validate()}
	if !room.ValidName(c.Room) {
		wrong = append(wrong, fmt.Errorf("--room: %q can't be the name of a room", c.Room))
	}
	if !room.ValidSKU(c.SKU) {
		wrong = append(wrong, fmt.Errorf("--sku: %q can't be a SKU", c.SKU))
	}
	if c.AdminToken != "" {
		wrong = append(wrong, c.Remote.Check())
	}
	return errors.Join(wrong...)
}

// Run loads the room, and prints what came of it.
func (c *loadCmd) Run(ctx context.Context, std streams) error {
	p := c.plan()
	if p.Seed == 0 {
		p.Seed = rand.Uint64() >> 11 // which every reader of JSON can hold
	}
	files, err := c.reports()
	if err != nil {
		return misuse{err}
	}
	show, done := c.progress(std.err)
	report, err := load.Run(ctx, p, show)
	done()
	var none load.Unreachable
	switch {
	case errors.As(err, &none):
		return err
	case err != nil:
		return misuse{err}
	}
	if err := errors.Join(report.WriteText(std.out), files.write(report)); err != nil {
		return err
	}
	if n := report.Broken(); n > 0 {
		return fmt.Errorf("promises were broken: %d violations", n)
	}
	if report.Came > 0 && report.People.TurnedAway == report.Came {
		return errors.New("nobody got in")
	}
	return nil
}

// reportFiles are opened before anything is sent: a run is not to be lost to a
// typing error in a path.
type reportFiles []reportFile

type reportFile struct {
	*os.File
	as func(*load.Report, io.Writer) error
}

func (c *loadCmd) reports() (files reportFiles, err error) {
	for _, f := range []struct {
		path string
		as   func(*load.Report, io.Writer) error
	}{{c.JSON, (*load.Report).WriteJSON}, {c.HTML, (*load.Report).WriteHTML}} {
		if f.path == "" {
			continue
		}
		file, failed := os.Create(f.path)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		files = append(files, reportFile{file, f.as})
	}
	return files, err
}

func (f reportFiles) write(r *load.Report) (err error) {
	for _, file := range f {
		err = errors.Join(err, file.as(r, file), file.Close())
	}
	return err
}

// progress shows each second: in place on a terminal, else line by line. done is
// to be called at the end.
func (c *loadCmd) progress(w io.Writer) (show func(load.Progress), done func()) {
	switch {
	case c.Quiet:
		return nil, func() {}
	case isTerminal(w):
		return func(p load.Progress) { fmt.Fprintf(w, "\r%s\x1b[K", p) }, func() { fmt.Fprint(w, "\r\x1b[K") }
	default:
		return func(p load.Progress) { fmt.Fprintln(w, p) }, func() {}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
