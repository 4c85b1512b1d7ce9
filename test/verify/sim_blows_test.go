//go:build faults

package verify

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/history"
)

// blow is a fault of more than one call.
type blow struct {
	name   string
	strike func(w *world)
}

// blows are the faults that are not of one call: of servers, of clocks, of
// processes, and what operators do in the middle of it.
var blows = []blow{
	{"redis away", (*world).redisOutage},
	{"postgres away", (*world).postgresOutage},
	{"relays asleep", (*world).sleepRelays},
	{"node killed", (*world).killOne},
	{"node restarted", (*world).restartOne},
	{"clock forward", func(w *world) { w.stepClock(time.Hour) }},
	{"clock back", func(w *world) { w.stepClock(-time.Hour) }},
	{"clock a little back", func(w *world) { w.stepClock(-30 * time.Second) }},
	{"total loss", (*world).loseAll},
	{"partial loss", (*world).loseSome},
	{"term rolled back", (*world).rollTermBack},
	{"lock lost", (*world).loseLock},
	{"scripts flushed", (*world).flushScripts},
	{"settings changed", (*world).changeSettings},
	{"weights changed", (*world).changeWeights},
	{"paused", (*world).pauseRoom},
	{"closing moved", (*world).moveClosing},
	{"switched off", (*world).switchOff},
	{"released by hand", (*world).releaseByHand},
	{"flushed", (*world).flushRoom},
	{"member blocked", (*world).blockOne},
	{"stock put in", func(w *world) { w.supply(int64(draw(w.rnd, 1, 4))) }},
	{"stock taken away", func(w *world) { w.supply(-2) }},
	{"draw moved", (*world).moveDraw},
}

// strikeLater plans the blows of a world, somewhere in its troubled part.
func (w *world) strikeLater() {
	for range w.plan.blows {
		w.strikeOnce(draw(w.rnd, blows...))
	}
	for _, b := range blows {
		for _, name := range w.plan.theme.blows {
			if b.name == name {
				w.strikeOnce(b)
			}
		}
	}
}

func (w *world) strikeOnce(b blow) {
	w.agenda.after(time.Duration(w.rnd.Int64N(int64(w.plan.length))), func() {
		if !w.ending.Load() {
			w.note("%s", b.name)
			b.strike(w)
		}
	})
}

func (w *world) redisOutage() {
	w.redisDown.Store(true)
	w.agenda.after(w.upTo(30*time.Second), func() { w.redisDown.Store(false) })
}

func (w *world) postgresOutage() {
	w.postgresDown.Store(true)
	for _, n := range w.nodes {
		n.cutPostgres()
	}
	w.agenda.after(w.upTo(20*time.Second), func() { w.postgresDown.Store(false) })
}

// sleepRelays has orders committed, and their grants ended much later.
func (w *world) sleepRelays() {
	w.relaysAsleep = time.Now().Add(30*time.Second + w.upTo(60*time.Second))
}

// anyNode is a node that takes requests, nil if none does.
func (w *world) anyNode(rnd *rand.Rand) *node {
	var up []*node
	for _, n := range w.nodes {
		if !n.crashed() && !n.leaving.Load() {
			up = append(up, n)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return draw(rnd, up...)
}

// crash kills a node; another process takes its place after a while.
func (w *world) crash(n *node) {
	if n.crashed() {
		return
	}
	w.crashes++
	n.crash()
	w.replaceLater(n)
}

func (w *world) replaceLater(n *node) {
	w.agenda.after(w.upTo(10*time.Second), func() {
		if w.ending.Load() {
			return
		}
		for i, old := range w.nodes {
			if old == n {
				w.gone = append(w.gone, old)
				w.nodes[i] = w.startNode(n.name + "'")
			}
		}
	})
}

func (w *world) killOne() { w.crash(draw(w.rnd, w.nodes...)) }

// restartOne stops a node as SIGTERM does: it takes nothing new, answers what it
// has, and then ends.
func (w *world) restartOne() {
	n := draw(w.rnd, w.nodes...)
	if n.crashed() || !n.leaving.CompareAndSwap(false, true) {
		return
	}
	w.requests.Go(func() {
		n.serving.Wait()
		n.stop()
	})
	w.replaceLater(n)
}

func (w *world) stepClock(d time.Duration) {
	w.step.Add(int64(d))
	if d < -time.Minute {
		w.facts.TimeSteps++
	}
}

// roomKeysOf lists the keys of the room that are there, its journal among them.
func (w *world) roomKeysOf() []string {
	all, err := w.raw.Keys(context.Background(), w.prefix+":{"+w.room+"}:*").Result()
	if err != nil {
		w.t.Errorf("list the keys of the room: %v", err)
	}
	return all
}

// loseAll is a Redis that comes back empty.
func (w *world) loseAll() {
	ctx := context.Background()
	w.collect()
	keys := append(w.roomKeysOf(), w.prefix+":term", w.prefix+":leader")
	if err := w.raw.Del(ctx, keys...).Err(); err != nil {
		w.t.Errorf("lose all: %v", err)
	}
	w.lost(history.TotalLoss)
}

// loseSome is a failover to a replica that lags: the room goes back by some
// seconds.
func (w *world) loseSome() {
	ctx := context.Background()
	kept := map[string]string{}
	keys := append(w.roomKeysOf(), w.prefix+":term")
	for _, k := range keys {
		v, err := w.raw.Dump(ctx, k).Result()
		if err != nil && err != redis.Nil {
			w.t.Errorf("remember the room: %v", err)
		}
		kept[k] = v
	}
	w.goingBack++
	w.agenda.after(w.upTo(5*time.Second), func() {
		w.goingBack--
		w.collect()
		for _, k := range w.roomKeysOf() {
			w.raw.Del(ctx, k)
		}
		for k, v := range kept {
			if v == "" {
				w.raw.Del(ctx, k)
			} else if err := w.raw.RestoreReplace(ctx, k, 0, v).Err(); err != nil {
				w.t.Errorf("lose some: %v", err)
			}
		}
		w.lost(history.PartialLoss)
	})
}

// lost tells the checker of a loss, and the driver to read the journal, which
// has gone back too.
func (w *world) lost(kind history.LossKind) {
	w.facts.Losses = append(w.facts.Losses, history.Loss{Kind: kind, Mono: history.Now()})
	w.collect()
}

func (w *world) collect() {
	if err := w.collector.Collect(context.Background()); err != nil {
		w.t.Errorf("collect the journal: %v", err)
	}
}

func (w *world) rollTermBack() { w.raw.DecrBy(context.Background(), w.prefix+":term", 2) }

func (w *world) loseLock() { w.lock.rob() }

func (w *world) flushScripts() { w.raw.ScriptFlush(context.Background()) }

func (w *world) changeSettings() {
	w.set(func(s *room.Settings) {
		s.BatchSize = draw(w.rnd, 1, 3, 10)
		s.Capacity = draw(w.rnd, 0, 2, 6)
		s.IntervalMs = draw(w.rnd, 200, 1000)
	})
}

func (w *world) pauseRoom() {
	w.set(func(s *room.Settings) { s.Paused = true })
	w.agenda.after(w.upTo(20*time.Second), func() { w.set(func(s *room.Settings) { s.Paused = false }) })
}

// moveClosing closes the room in a while, or drains it, and opens it again.
func (w *world) moveClosing() {
	if w.plan.settings.Draw { // which ends at a time that it has to keep
		return
	}
	closes := w.redisTime().Add(w.upTo(10 * time.Second))
	if begun := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); closes.Before(begun) {
		closes = begun // of all bubbles; settings know no time before it
	}
	w.set(func(s *room.Settings) {
		s.OpensAt, s.AdmitsAt, s.ClosesAt, s.Draining = nil, nil, &closes, w.rnd.IntN(3) == 0
	})
	w.agenda.after(10*time.Second+w.upTo(20*time.Second), func() {
		w.set(func(s *room.Settings) { s.ClosesAt, s.Draining = nil, false })
	})
}

// at writes the schedule into settings, for a room that begins at begun.
func (c schedule) at(s *room.Settings, begun time.Time) {
	for _, m := range []struct {
		in time.Duration
		to **time.Time
	}{{c.opens, &s.OpensAt}, {c.admits, &s.AdmitsAt}, {c.closes, &s.ClosesAt}} {
		if m.in > 0 {
			at := begun.Add(m.in)
			*m.to = &at
		}
	}
}

// switchOff has everybody pass for a while.
func (w *world) switchOff() {
	w.set(func(s *room.Settings) { s.Off = true })
	w.agenda.after(w.upTo(20*time.Second), func() { w.set(func(s *room.Settings) { s.Off = false }) })
}

// releaseByHand lets some go beyond the rate, as an operator does: now, and once
// more while the first may not have been spent.
func (w *world) releaseByHand() {
	for _, n := range []int{draw(w.rnd, 1, 3, 10), 1} {
		if _, err := w.operators.Release(context.Background(), w.room, n, 0, room.Actor{Name: "operator"}); err != nil {
			w.t.Errorf("release by hand: %v", err)
		}
		w.facts.Released += int64(n)
	}
}

func (w *world) set(change func(*room.Settings)) {
	ctx := context.Background()
	r, err := w.operators.Get(ctx, w.room)
	if err == nil {
		_, err = w.operators.Update(ctx, w.room, r.Version, func(s room.Settings) (room.Settings, error) {
			change(&s)
			return s, nil
		}, room.Actor{Name: "operator"})
	}
	if err != nil {
		w.t.Errorf("change the settings: %v", err)
	}
}

// flushRoom ends the sale, after any loss that would take the flush back. That is
// left out: until the next generation has begun, people are told places of the
// sale that is over.
func (w *world) flushRoom() {
	if w.goingBack > 0 {
		w.agenda.after(5*time.Second, w.flushRoom)
		return
	}
	if _, err := w.operators.Flush(context.Background(), w.room, room.Actor{Name: "operator"}); err != nil {
		w.t.Errorf("flush the room: %v", err)
	}
	w.facts.Losses = append(w.facts.Losses, history.Loss{Kind: history.Flush, Mono: history.Now()})
}

func (w *world) blockOne() {
	m := "m0" + string("0123456789"[w.rnd.IntN(8)])
	if err := w.operators.Block(context.Background(), w.room, room.Subject{Member: m}, room.Actor{Name: "operator"}); err != nil {
		w.t.Errorf("block %s: %v", m, err)
	}
	w.facts.Barred = append(w.facts.Barred, history.Barring{Member: m, Mono: history.Now()})
}

// supply puts n pieces into stock while orders take from it, or takes as many
// away as there are. Where an order holds the row it comes back later: nothing
// here may wait for what the driver has stopped.
func (w *world) supply(n int64) {
	ctx, began := context.Background(), history.Now()
	var old, now int64
	err := pgx.BeginFunc(ctx, w.books, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT stock FROM products WHERE sku = $1 FOR UPDATE NOWAIT`, w.sku()).Scan(&old); err != nil {
			return err
		}
		now = max(old+n, 0)
		_, err := tx.Exec(ctx, `UPDATE products SET stock = $2 WHERE sku = $1`, w.sku(), now)
		return err
	})
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "55P03":
		w.agenda.after(100*time.Millisecond, func() { w.supply(n) })
	case err != nil:
		w.t.Errorf("change the stock: %v", err)
	default:
		w.facts.Supplies = append(w.facts.Supplies, history.Supply{SKU: w.sku(), N: now - old, Mono: began})
	}
}

// moveDraw moves the end of a draw, which may have been seen already.
func (w *world) moveDraw() {
	by, now := time.Duration(w.rnd.IntN(20)-8)*time.Second, time.Now()
	w.set(func(s *room.Settings) {
		if s.Draw {
			at := s.AdmitsAt.Add(by)
			if at.Before(now) {
				at = now
			}
			s.AdmitsAt = &at
		}
	})
}
