package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// ScriptTime is how long a script keeps Redis busy, in milliseconds: the longest
// call of each pass.
type ScriptTime struct {
	Script string  `json:"script"`
	Calls  int     `json:"calls"`
	Ms     Spread  `json:"ms"`
	Usual  float64 `json:"usual"` // the median of all calls
	Worst  float64 `json:"worst"` // the longest of all
}

// scripts runs every script that a sale needs, on the room of a million, and asks
// SLOWLOG how long Redis executed it: waiting for a turn or for the network is
// not in it. That the machine gave Redis no time is; so the figure is the median
// over passes of the longest call.
func (l *lab) scripts(ctx context.Context) ([]ScriptTime, error) {
	for setting, value := range map[string]string{"slowlog-log-slower-than": "0", "slowlog-max-len": "100"} {
		if err := l.rdb.ConfigSet(ctx, setting, value).Err(); err != nil {
			return nil, err
		}
	}
	if err := l.setBatch(ctx, 10_000); err != nil {
		return nil, err
	}
	longest, all := map[string][]float64{}, map[string][]float64{}
	for pass := range l.plan.passes {
		time.Sleep(tickEvery)
		times, err := l.pass(ctx, pass)
		if err != nil {
			return nil, err
		}
		for script, ms := range times {
			longest[script] = append(longest[script], slices.Max(ms))
			all[script] = append(all[script], ms...)
		}
	}
	out := make([]ScriptTime, 0, len(longest))
	for _, script := range slices.Sorted(maps.Keys(longest)) {
		out = append(out, ScriptTime{script, len(all[script]), spreadOf(longest[script]), spreadOf(all[script]).Median, slices.Max(longest[script])})
	}
	return out, nil
}

// pass makes each call some times and returns the times of each, in milliseconds.
func (l *lab) pass(ctx context.Context, pass int) (map[string][]float64, error) {
	p := &onePass{lab: l, ctx: ctx, times: map[string][]float64{}}
	p.tick()
	p.members(pass)
	p.grants()
	p.room()
	return p.times, p.err
}

// onePass is one pass; it stops at its first error.
type onePass struct {
	*lab
	ctx    context.Context
	times  map[string][]float64
	issued []queue.Decision
	err    error
}

// timed makes a call and looks up how long it was executed.
func (p *onePass) timed(script string, call func() error) {
	if p.err != nil {
		return
	}
	if p.err = call(); p.err != nil {
		return
	}
	entries, err := p.rdb.SlowLogGet(p.ctx, 5).Result()
	if err != nil {
		p.err = err
		return
	}
	for _, e := range entries { // the newest first
		if len(e.Args) > 0 && strings.HasPrefix(strings.ToLower(e.Args[0]), "eval") {
			p.times[script] = append(p.times[script], float64(e.Duration.Nanoseconds())/1e6)
			return
		}
	}
}

// tick is one of a whole batch, call by call.
func (p *onePass) tick() {
	keep := p.step.Seq + 1
	for more := true; more && p.err == nil && len(p.issued) < 10_000; {
		p.step.Seq++
		var res queue.Reservation
		p.timed("reserve", func() (err error) {
			res, err = p.line.Reserve(p.ctx, labRoom, p.step, queue.Take{Keep: keep, Effective: 10_000, Max: scheduler.MaxTake})
			return err
		})
		more = res.More
		decisions := make([]queue.Decision, len(res.Taken))
		for i, c := range res.Taken {
			decisions[i] = queue.Decision{Member: c.Member, Grant: credential.NewGrantID()}
		}
		if len(decisions) > 0 {
			p.timed("issue", func() error {
				_, err := p.line.Issue(p.ctx, labRoom, p.step, decisions)
				return err
			})
		}
		p.issued = append(p.issued, decisions...)
	}
}

// members is what people do, of the back of the line.
func (p *onePass) members(pass int) {
	for i := range 20 {
		newcomer, known := credential.NewMember(), p.all[len(p.all)-1-pass*100-i]
		p.timed("enter", func() error { _, err := p.line.Enter(p.ctx, labRoom, newcomer, 0); return err })
		p.timed("standing", func() error { _, err := p.line.Standing(p.ctx, labRoom, known.id); return err })
		p.timed("look", func() error { _, err := p.line.Look(p.ctx, labRoom, known.id); return err })
		p.timed("leave", func() error {
			_, err := p.line.Leave(p.ctx, labRoom, known.id, known.score, queue.OutcomeLeft)
			return err
		})
	}
	front, err := p.rdb.ZRange(p.ctx, key(labRoom, "lane0"), 0, 499).Result()
	if err != nil {
		p.err = err
	}
	p.timed("heard", func() error { return p.line.Heard(p.ctx, labRoom, front) })
}

// grants is what happens to those who were let through.
func (p *onePass) grants() {
	spent := make([]queue.Spent, 0, 500)
	for i, d := range p.issued {
		g := queue.Grant{ID: d.Grant, Room: labRoom, Member: d.Member}
		if i < 20 {
			p.timed("pickup", func() error { _, err := p.line.PickUp(p.ctx, g, "k"); return err })
			p.timed("claim", func() error { return p.line.Claim(p.ctx, g, "claim", 15*time.Second) })
			p.timed("release", func() error { return p.line.Release(p.ctx, g, "claim") })
		}
		spent = append(spent, queue.Spent{Member: d.Member, Grant: d.Grant, Order: credential.NewGrantID()})
		if len(spent) == cap(spent) {
			p.timed("consume", func() error { _, err := p.line.Consume(p.ctx, labRoom, spent); return err })
			spent = spent[:0]
		}
	}
}

// room is what is done for the room as a whole.
func (p *onePass) room() {
	for range 5 {
		p.timed("reap", func() error { _, err := p.line.Reap(p.ctx, labRoom); return err })
		p.timed("snapshot", func() error { _, err := p.line.SnapshotMarks(p.ctx, labRoom); return err })
	}
	p.life.Version++
	p.timed("configure", func() error { return p.line.Update(p.ctx, p.life) })
}
