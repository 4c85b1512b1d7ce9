package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/sim"
)

type simulateCmd struct {
	Shape       string        `arg:"" optional:"" enum:"steady,burst,waves,slow,outage" default:"steady" help:"How people come, and what becomes of the database: ${enum}."`
	Solve       bool          `help:"Propose a batch and weights with which the waits that --lane names are kept."`
	Lane        []laneFlag    `sep:"none" placeholder:"NAME=ARRIVALS[,weight=N][,wait=TIME]" help:"A lane: arrivals a second on average, its weight, the wait that is wanted. Repeat it for more. Without any: standard=260."`
	Batch       int           `default:"400" help:"The operator's batch: let through per interval, at most."`
	Interval    time.Duration `default:"1s" help:"Length of an interval."`
	Capacity    int           `default:"0" help:"How many may be inside at once; 0: any number."`
	Fixed       bool          `help:"Keep the batch as it is, as a room that is not adaptive does."`
	TokenTTL    time.Duration `name:"token-ttl" default:"5m" help:"How long an entry token is good for."`
	Think       time.Duration `default:"20s" help:"How long people take from the token to the order, on average."`
	NoShows     float64       `name:"no-shows" default:"0.1" help:"Share of people who are let through and never order, from 0 to 1."`
	Connections int           `default:"20" help:"Orders that the database does at once."`
	Service     time.Duration `default:"100ms" help:"What an order takes there when nothing else runs, on average."`
	Length      time.Duration `help:"Stop after this time. By default the shape has one."`
	Seed        uint64        `default:"1" help:"Chance: the same seed gives the same run."`
	CSV         string        `name:"csv" placeholder:"FILE" help:"Write a line for every five seconds."`
	SVG         string        `name:"svg" placeholder:"FILE" help:"Draw the run."`
	output
}

// laneFlag is a lane as one writes it: vip=5,weight=7,wait=20s.
type laneFlag sim.Lane

// UnmarshalText reads a lane.
func (l *laneFlag) UnmarshalText(text []byte) error {
	name, rest, _ := strings.Cut(string(text), "=")
	parts := strings.Split(rest, ",")
	arrivals, err := strconv.ParseFloat(parts[0], 64)
	if name == "" || err != nil {
		return fmt.Errorf("must be like vip=5,weight=7,wait=20s, got %q", text)
	}
	*l = laneFlag{Name: name, Weight: 1, Arrivals: arrivals}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "weight":
			l.Weight, err = strconv.Atoi(value)
		case "wait":
			l.Target, err = time.ParseDuration(value)
		default:
			err = errors.New("no such property")
		}
		if err != nil || l.Target < 0 {
			return fmt.Errorf("has %q in it; after the arrivals come weight=N and wait=TIME", part)
		}
	}
	return nil
}

// plan is what the flags say.
func (c *simulateCmd) plan() sim.Plan {
	p := sim.Default()
	p.Shape, _ = sim.NamedShape(c.Shape)
	if c.Length != 0 {
		p.Shape.Length = c.Length
	}
	p.Room.Batch, p.Room.Interval, p.Room.Capacity = c.Batch, c.Interval, c.Capacity
	p.Room.Fixed, p.Room.GrantTTL = c.Fixed, c.TokenTTL
	p.People = sim.People{Think: c.Think, NoShows: c.NoShows}
	p.Database = sim.Database{Connections: c.Connections, Service: c.Service}
	p.Seed = c.Seed
	if len(c.Lane) > 0 {
		p.Room.Lanes = nil
	}
	for _, l := range c.Lane {
		p.Room.Lanes = append(p.Room.Lanes, sim.Lane(l))
	}
	return p
}

// Check refuses what can't be run.
func (c *simulateCmd) Check() error {
	p := c.plan()
	if err := p.Validate(); err != nil {
		return err
	}
	for _, l := range p.Room.Lanes {
		if l.Target > 0 || !c.Solve {
			return nil
		}
	}
	return errors.New("--solve needs a lane with a wait that is wanted: --lane vip=5,wait=20s")
}

// Run prints what came out. There is no network and no clock in it.
func (c *simulateCmd) Run(std streams) error {
	p := c.plan()
	var result sim.Result
	if c.Solve {
		answer, err := sim.Solve(p)
		if err != nil {
			return err
		}
		result = answer.Result
	} else {
		result = sim.Run(p)
	}
	if err := errors.Join(toFile(c.CSV, result.WriteCSV), toFile(c.SVG, result.WriteSVG)); err != nil {
		return err
	}
	v, err := operators.NewView(result.Summary(), func(w io.Writer) {
		if c.Solve {
			fmt.Fprintln(w, "proposed\t"+proposal(result.Plan.Room))
		}
		_ = result.WriteText(w)
	})
	return c.shown(std, v, err)
}

// proposal is an answer in the words of `room set`.
func proposal(r sim.Room) string {
	lanes := make([]string, len(r.Lanes))
	for i, l := range r.Lanes {
		lanes[i] = fmt.Sprintf(`{"name":%q,"weight":%d}`, l.Name, l.Weight)
	}
	return fmt.Sprintf("batchSize=%d intervalMs=%d adaptive=%t 'lanes=[%s]'", r.Batch, r.Interval.Milliseconds(), !r.Fixed, strings.Join(lanes, ","))
}

// toFile writes a file, if one is named.
func toFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
