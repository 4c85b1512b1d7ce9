//go:build faults

package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/history"
)

// kinds are all ways in which a schedule breaks a fleet.
func (f *fleet) kinds() []fault.Kind {
	all := append(f.redisKinds(), f.postgresKinds()...)
	all = append(all, f.networkKinds()...)
	return append(all, f.processKinds()...)
}

// some draws n of the kinds: a short run has not the time for all.
func some(d *fault.Dice, kinds []fault.Kind, n int) (out []fault.Kind) {
	for _, i := range perm(d, len(kinds))[:min(n, len(kinds))] {
		out = append(out, kinds[i])
	}
	return out
}

func (f *fleet) redisKinds() []fault.Kind {
	redis, s := []string{"redis"}, time.Second
	kinds := []fault.Kind{
		{Name: "redis killed", Needs: redis, Shortest: s / 2, Longest: 4 * s, Start: f.killRedis, Stop: f.startRedis},
		{Name: "redis hangs", Needs: redis, Shortest: s, Longest: 4 * s,
			Start: said("", func(context.Context, *fault.Dice) error { f.redis.Server.Pause(); return nil }),
			Stop:  func(context.Context) error { f.redis.Server.Resume(); return nil }},
		{Name: "redis emptied", Needs: redis, Start: f.emptyRedis},
		{Name: "scripts forgotten", Needs: redis, Start: said("SCRIPT FLUSH", func(ctx context.Context, _ *fault.Dice) error { return f.redis.ForgetScripts(ctx) })},
		{Name: "redis full", Needs: redis, Shortest: s, Longest: 5 * s,
			Start: said("maxmemory", func(ctx context.Context, _ *fault.Dice) error { return f.redis.Fill(ctx) }), Stop: f.redis.Drain},
		{Name: "redis read-only", Needs: redis, Shortest: s, Longest: 5 * s,
			Start: said("REPLICAOF", func(ctx context.Context, _ *fault.Dice) error { return f.redis.Demote(ctx) }), Stop: f.redis.Promote},
		{Name: "redis pauses clients", Needs: redis, Shortest: 3 * s, Longest: 3 * s, Start: f.pauseClients},
		{Name: "redis drops clients", Needs: redis, Start: said("CLIENT KILL", func(ctx context.Context, _ *fault.Dice) error { return f.redis.DropClients(ctx) })},
		{Name: "redis clock stepped", Needs: []string{"clock"}, Shortest: 2 * s, Longest: 10 * s, Start: f.moveClock},
		{Name: "term rolled back", Needs: redis, Start: said("DECRBY 2", func(ctx context.Context, _ *fault.Dice) error {
			return f.redis.RollBack(ctx, fleetPrefix+":term", 2)
		})},
	}
	if f.plan.appendOnly {
		kinds = append(kinds, fault.Kind{Name: "redis loses power", Needs: redis, Shortest: s / 2, Longest: 2 * s, Start: f.cutPower, Stop: f.startRedis})
	}
	return kinds
}

// said makes a Start that has nothing to say but what.
func said(what string, start func(context.Context, *fault.Dice) error) func(context.Context, *fault.Dice) (string, error) {
	return func(ctx context.Context, d *fault.Dice) (string, error) { return what, start(ctx, d) }
}

// killRedis is a crash of the process: the machine goes on, and so does what it
// has been told to write.
func (f *fleet) killRedis(context.Context, *fault.Dice) (string, error) {
	kind := history.TotalLoss
	if f.plan.appendOnly {
		kind = history.PartialLoss
	}
	over := f.lose(kind)
	f.redis.Kill()
	over()
	return string(kind) + " at most", nil
}

func (f *fleet) startRedis(context.Context) error { return f.redis.Start() }

func (f *fleet) cutPower(ctx context.Context, d *fault.Dice) (string, error) {
	back := d.Between(300*time.Millisecond, time.Second)
	defer f.lose(history.PartialLoss)()
	return fmt.Sprintf("forgets %v", back), f.redis.PowerCut(ctx, back)
}

func (f *fleet) emptyRedis(ctx context.Context, _ *fault.Dice) (string, error) {
	defer f.lose(history.TotalLoss)()
	return "FLUSHALL", f.redis.FlushAll(ctx)
}

func (f *fleet) pauseClients(ctx context.Context, d *fault.Dice) (string, error) {
	long, writes := d.Between(500*time.Millisecond, 3*time.Second), d.Chance(0.5)
	return fmt.Sprintf("%v, writes only %v", long, writes), f.redis.PauseClients(ctx, long, writes)
}

// moveClock steps the clock of Redis by an hour, or by less than what is taken
// for a step, either way. It stays there.
func (f *fleet) moveClock(_ context.Context, d *fault.Dice) (string, error) {
	by := pick(d, time.Hour, -time.Hour, 5*time.Minute, -5*time.Minute, 20*time.Second, -20*time.Second)
	return by.String(), f.stepClock(by)
}

func (f *fleet) postgresKinds() []fault.Kind {
	postgres, s := []string{"postgres"}, time.Second
	return []fault.Kind{
		{Name: "postgres killed", Needs: postgres, Shortest: s / 2, Longest: 3 * s,
			Start: said("", func(context.Context, *fault.Dice) error { f.db.Kill(); return nil }),
			Stop:  func(context.Context) error { return f.db.Start() }},
		{Name: "postgres hangs", Needs: postgres, Shortest: s, Longest: 4 * s,
			Start: said("", func(context.Context, *fault.Dice) error { f.db.Server.Pause(); return nil }),
			Stop:  func(context.Context) error { f.db.Server.Resume(); return nil }},
		{Name: "sessions terminated", Needs: postgres, Start: func(ctx context.Context, _ *fault.Dice) (string, error) {
			n, err := f.db.TerminateSessions(ctx)
			return fmt.Sprint(n), err
		}},
		{Name: "postgres read-only", Needs: postgres, Shortest: s, Longest: 4 * s,
			Start: said("", func(ctx context.Context, _ *fault.Dice) error { return f.db.ReadOnly(ctx) }), Stop: f.db.Writable},
		{Name: "deadlocks", Needs: postgres, Shortest: 4 * s, Longest: 8 * s, Start: f.deadlock},
		{Name: "settings changed", Needs: postgres, Start: f.changeSettings},
		{Name: "room paused", Needs: postgres, Shortest: s, Longest: 4 * s,
			Start: said("", func(ctx context.Context, _ *fault.Dice) error {
				return f.set(ctx, func(s *room.Settings) { s.Paused = true })
			}),
			Stop: func(ctx context.Context) error { return f.set(ctx, func(s *room.Settings) { s.Paused = false }) }},
	}
}

// deadlock has a rival lock the goods the other way round for some seconds.
func (f *fleet) deadlock(ctx context.Context, d *fault.Dice) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	hold := d.Between(100*time.Millisecond, 400*time.Millisecond)
	go func() {
		defer cancel()
		f.note("the rival has had all locks %d times", f.db.Deadlock(ctx, hold, goods...))
	}()
	return fmt.Sprintf("holding each lock for %v", hold), nil
}

func (f *fleet) changeSettings(ctx context.Context, d *fault.Dice) (string, error) {
	batch, interval, capacity := pick(d, 2, 5, 20), pick(d, 250, 1000), pick(d, 0, 20, 60)
	return fmt.Sprintf("batch %d every %d ms, capacity %d", batch, interval, capacity), f.set(ctx, func(s *room.Settings) {
		s.BatchSize, s.IntervalMs, s.Capacity = batch, interval, capacity
	})
}

func (f *fleet) networkKinds() []fault.Kind {
	net := func(name string, longest time.Duration, how func(p *fault.Proxy, d *fault.Dice) string) fault.Kind {
		var broken *fault.Proxy
		return fault.Kind{Name: name, Needs: []string{"network"}, Shortest: longest / 4, Longest: longest,
			Start: func(_ context.Context, d *fault.Dice) (string, error) {
				s := pick(d, f.stations...)
				side := pick(d, "redis", "redis", "postgres")
				broken = s.redis
				if side == "postgres" {
					broken = s.postgres
				}
				return fmt.Sprintf("%s to %s %s", s.name, side, how(broken, d)), nil
			},
			Stop: func(context.Context) error {
				broken.Heal()
				for _, s := range f.stations {
					if !s.isHealed() {
						s.redis.Lose(f.plan.replies)
					}
				}
				return nil
			}}
	}
	way := func(d *fault.Dice) fault.Way { return pick(d, fault.ToServer, fault.ToClient) }
	s := time.Second
	return []fault.Kind{
		net("network cut one way", 6*s, func(p *fault.Proxy, d *fault.Dice) string { w := way(d); p.Cut(w); return fmt.Sprint(w) }),
		net("network cut both ways", 6*s, func(p *fault.Proxy, _ *fault.Dice) string { p.Cut(fault.BothWays); return "" }),
		net("network holds", 4*s, func(p *fault.Proxy, d *fault.Dice) string { w := way(d); p.Hold(w); return fmt.Sprint(w) }),
		net("network slow", 6*s, func(p *fault.Proxy, d *fault.Dice) string {
			by := d.Between(5*time.Millisecond, 150*time.Millisecond)
			p.Slow(by)
			return by.String()
		}),
		net("network loses answers", 6*s, func(p *fault.Proxy, d *fault.Dice) string { p.Lose(0.2); return "" }),
		net("connections refused", 3*s, func(p *fault.Proxy, _ *fault.Dice) string { p.Refuse(); p.Reset(); return "" }),
		net("connections reset", 0, func(p *fault.Proxy, _ *fault.Dice) string { p.Reset(); return "" }),
	}
}

func (f *fleet) processKinds() []fault.Kind {
	s := time.Second
	var halted *station
	return []fault.Kind{
		{Name: "process halted", Needs: []string{"process"}, Shortest: s, Longest: 8 * s,
			Start: func(_ context.Context, d *fault.Dice) (string, error) {
				halted = pick(d, f.stations...)
				halted.halt(true)
				return halted.name, on(halted, (*fault.Process).Stop)
			},
			Stop: func(context.Context) error {
				halted.halt(false)
				return on(halted, (*fault.Process).Continue)
			}},
		{Name: "process killed", Needs: []string{"process"}, Start: func(_ context.Context, d *fault.Dice) (string, error) {
			s := pick(d, f.stations...)
			return s.name, on(s, func(p *fault.Process) error { p.Kill(); return nil })
		}},
		{Name: "leader killed", Needs: []string{"process"}, Start: func(context.Context, *fault.Dice) (string, error) {
			for _, s := range f.stations {
				if p := s.process(); p != nil && leads(p) {
					p.Kill()
					return s.name, nil
				}
			}
			return "nobody led", nil
		}},
		{Name: "process restarted", Needs: []string{"process"}, Start: func(ctx context.Context, d *fault.Dice) (string, error) {
			s := pick(d, f.stations...)
			stopping, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			return s.name, on(s, func(p *fault.Process) error { return p.Terminate(stopping) })
		}},
	}
}

// on does something to the process of a station. That none is there, because
// another fault has just ended it, is no failure of the schedule.
func on(s *station, do func(*fault.Process) error) error {
	p := s.process()
	if p == nil {
		s.f.note("%s: no process is there to be broken", s.name)
		return nil
	}
	return do(p)
}
