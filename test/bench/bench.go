package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// Result is all that a run has measured.
type Result struct {
	Machine  Machine           `json:"machine"`
	Plan     string            `json:"plan"`
	Contests []Contest         `json:"contests"`
	Ticks    map[string]Spread `json:"ticks"` // by batch: microseconds a member
	Naive    Spread            `json:"naiveTick"`
	Scripts  []ScriptTime      `json:"scripts"`
	Allocs   Allocs            `json:"allocs"`
	Tuning   []string          `json:"tuning"` // of the product's runtime, and of the comparators'
	Figures  figures           `json:"figures"`
	Took     float64           `json:"seconds"`
}

// bench measures everything, writes what was measured, and prints the figures last.
func bench(ctx context.Context, o options, out io.Writer) error {
	p, ok := plans[o.plan]
	if !ok {
		return fmt.Errorf("no plan %q", o.plan)
	}
	w := &world{plan: p, out: out, binary: o.binary, dir: o.dir + "/data", only: o.only, started: time.Now()}
	res, err := w.measure(ctx)
	w.close()
	if err != nil {
		return err
	}
	if err := res.write(o); err != nil {
		return err
	}
	return res.Figures.print(out, o.only == "")
}

// measure runs one contest after the other.
func (w *world) measure(ctx context.Context) (*Result, error) {
	machine := thisMachine(w)
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	machine.versions(ctx, w)
	tuning, err := w.startComparators(ctx)
	if err != nil {
		return nil, err
	}
	w.say("comparators run with %v, as the product does", tuning)
	res := &Result{Tuning: tuning, Machine: machine, Plan: w.plan.name, Figures: figures{}, Ticks: map[string]Spread{}}
	for _, part := range w.parts() {
		if w.only != part.name && (w.only != "" || part.aside) {
			continue
		}
		if err := part.measure(ctx, res); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	res.Machine.LoadAfter = loadAverage()
	res.Took = time.Since(w.started).Seconds()
	return res, nil
}

// part is some of what is measured.
type part struct {
	name    string
	measure func(context.Context, *Result) error
	aside   bool // measured only where it is asked for by name
}

func (w *world) parts() []part {
	return []part{
		{name: "polls", measure: w.polls}, {name: "enters", measure: w.enters}, {name: "sizes", measure: w.sizes},
		{name: "orders", measure: w.orders}, {name: "lab", measure: w.laboratory}, {name: "scale", measure: w.scale, aside: true},
	}
}

func (w *world) polls(ctx context.Context, res *Result) error {
	c, err := w.crowd(ctx, "crowd", w.plan.tickets+unpolled, w.plan.tickets, slow)
	if err != nil {
		return err
	}
	naive, err := w.naiveCrowd(ctx, c)
	if err != nil {
		return err
	}
	w.say("%d tickets, a poll answers %d bytes", len(c.requests), w.plainSize)
	for _, conns := range []int{64, 256} {
		at, err := w.mallocs(ctx)
		if err != nil {
			return err
		}
		same := c.sameSize(w.plainSize)
		polled := c.at.Load()
		contest, err := w.pollContest(ctx, c, same, naive, conns)
		if err != nil {
			return err
		}
		if conns == 64 {
			if res.Allocs, err = w.allocs(ctx, at, c.at.Load()-polled, same.at.Load()); err != nil {
				return err
			}
		}
		res.Contests = append(res.Contests, contest)
		res.Figures[fmt.Sprint("poll_vs_plain_", conns)] = contest.ratio("product", "plain")
		res.Figures[fmt.Sprint("poll_vs_naive_", conns)] = contest.ratio("product", "naive")
	}
	if err := w.closeRooms(ctx, c.room); err != nil {
		return err
	}
	res.Figures["alloc_per_poll"] = one(res.Allocs.Product - res.Allocs.Plain)
	res.Figures["poll_cpu_us_over_plain"] = res.Contests[0].each(func(r map[string]Sample) float64 {
		return r["product"].micros(serverCPU, redisCPU) - r["plain"].micros(serverCPU)
	})
	return nil
}

func (w *world) enters(ctx context.Context, res *Result) error {
	c, err := w.enterContest(ctx)
	if err != nil {
		return err
	}
	res.Contests = append(res.Contests, c)
	res.Figures["enter_vs_plain_64"] = c.ratio("product", "plain")
	res.Figures["enter_vs_naive_64"] = c.ratio("product", "naive")
	return w.closeRooms(ctx, doorRoom)
}

func (w *world) sizes(ctx context.Context, res *Result) error {
	poll, enter, err := w.sizesContest(ctx)
	res.Contests = append(res.Contests, poll, enter)
	res.Figures["poll_1m_vs_10k"] = poll.ratio("1m", "10k")
	res.Figures["enter_1m_vs_10k"] = enter.ratio("1m", "10k")
	return err
}

func (w *world) orders(ctx context.Context, res *Result) error {
	s, err := w.openShop(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		sku  func(int) string
	}{{"order", hundred}, {"order_hot", hot}} {
		c, err := s.orderContest(ctx, kind.name, kind.sku)
		if err != nil {
			return err
		}
		res.Contests = append(res.Contests, c)
		res.Figures[kind.name+"_vs_bare_64"] = c.ratio("product", "bare")
	}
	return nil
}

func (w *world) laboratory(ctx context.Context, res *Result) error {
	w.endServers() // what they still do would be a part of what is measured
	l, err := w.openLab(ctx)
	if err != nil {
		return err
	}
	bytes, err := l.bytesPerWaiting(ctx)
	if err != nil {
		return err
	}
	res.Figures["bytes_per_waiting"] = one(bytes)
	var worst Spread
	for _, batch := range batches {
		t, err := l.ticks(ctx, batch)
		if err != nil {
			return err
		}
		res.Ticks[fmt.Sprint(batch)] = t
		if t.Median > worst.Median {
			worst = t
		}
	}
	res.Figures["tick_us_per_member"] = worst
	if res.Naive, err = l.naiveTicks(ctx); err != nil {
		return err
	}
	if res.Scripts, err = l.scripts(ctx); err != nil {
		return err
	}
	longest := slices.MaxFunc(res.Scripts, func(a, b ScriptTime) int { return cmp.Compare(a.Ms.Median, b.Ms.Median) })
	res.Figures["script_ms_max"] = longest.Ms
	w.say("ticks %.1f us a member at worst; the longest script is %s, %.2f ms", worst.Median, longest.Script, longest.Ms.Median)
	return nil
}
