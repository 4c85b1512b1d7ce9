package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/test/fault"
)

// side is one of those that are compared.
type side struct {
	name    string
	servers []*fault.Process // connections are dealt out to them by turns
	stores  []*devstack.Proc // its Redis, where it is not the world's
	load    traffic
	// before and after run outside of the measured time; nil: nothing. What after
	// waits for counts as CPU of the round.
	before, after func(ctx context.Context) error
}

// contest measures sides by turns: a round that warms them up and counts for
// nothing, then those of the plan.
func (w *world) contest(ctx context.Context, name string, conns int, sides ...side) (Contest, error) {
	c := Contest{Name: name, Connections: conns}
	for _, s := range sides {
		c.Sides = append(c.Sides, s.name)
	}
	for i := range w.plan.rounds + 1 {
		round, err := w.round(ctx, conns, sides)
		if err != nil {
			return c, fmt.Errorf("%s at %d: %w", name, conns, err)
		}
		if i > 0 {
			c.Rounds = append(c.Rounds, round)
		}
		slices.Reverse(sides) // nobody always follows the same one
	}
	w.say("%s", c.summary())
	return c, nil
}

func (w *world) round(ctx context.Context, conns int, sides []side) (map[string]Sample, error) {
	round := map[string]Sample{}
	for _, s := range sides {
		sample, err := w.turn(ctx, conns, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		round[s.name] = sample
	}
	return round, nil
}

// turn is one side's part of a round.
func (w *world) turn(ctx context.Context, conns int, s side) (Sample, error) {
	if s.before != nil {
		if err := s.before(ctx); err != nil {
			return Sample{}, err
		}
	}
	at := w.cpu(s)
	t, err := drive(ctx, hosts(s.servers), conns, w.plan.turn, s.load)
	if err == nil && t.requests == 0 {
		err = fmt.Errorf("not one answer in %v", w.plan.turn)
	}
	if err == nil && s.after != nil {
		err = s.after(ctx)
	}
	if err != nil {
		return Sample{}, err
	}
	used := w.cpu(s)
	for p := range used {
		used[p] -= at[p]
	}
	return Sample{Requests: t.requests, Seconds: t.seconds, CPU: used}, nil
}

// The processes whose CPU is told apart.
const (
	serverCPU   = "server"
	redisCPU    = "redis"
	postgresCPU = "postgres"
	loadCPU     = "load"
	besideCPU   = "beside" // the product, in the turn of another
)

func (w *world) cpu(s side) map[string]float64 {
	used := map[string]float64{postgresCPU: cpuSeconds(w.postgres.Pid()), loadCPU: own(os.Getpid())}
	for _, p := range s.servers {
		used[serverCPU] += cpuSeconds(p.Pid())
	}
	stores := s.stores
	if stores == nil {
		stores = []*devstack.Proc{w.redis}
	}
	for _, p := range stores {
		used[redisCPU] += cpuSeconds(p.Pid())
	}
	if !slices.Contains(s.servers, w.product) {
		used[besideCPU] = cpuSeconds(w.product.Pid())
	}
	return used
}

// beside is the part of one core that the product takes in the turn of a side that
// does not use Redis: its own process, and Redis for it.
func (c Contest) beside(side string) Spread {
	return c.each(func(r map[string]Sample) float64 {
		return (r[side].CPU[besideCPU] + r[side].CPU[redisCPU]) / r[side].Seconds
	})
}

// summary is a line for whoever watches.
func (c Contest) summary() string {
	text := fmt.Sprintf("%-11s %3d connections:", c.Name, c.Connections)
	for _, s := range slices.Sorted(maps.Keys(c.Rounds[0])) {
		text += fmt.Sprintf("  %s %.0f/s (%.0f us CPU)", s, c.rate(s).Median, c.micros(s, serverCPU, redisCPU, postgresCPU).Median)
	}
	return text
}
