//go:build faults

package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault/point"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// simWorkers is how many histories run beside each other. Most of their time
// they wait for a server.
const simWorkers = 8

// TestShortHistoriesBreakNoPromise runs many short histories, each from a seed
// of its own, and checks each.
func TestShortHistoriesBreakNoPromise(t *testing.T) {
	if mutant != "" {
		t.Skip("a mutant is alive")
	}
	first, n := seedOf(t)%1_000_000, histories(t, 120, 1000)
	var next atomic.Uint64
	next.Store(first)
	for i := range simWorkers {
		t.Run(fmt.Sprint("worker", i), func(t *testing.T) {
			t.Parallel()
			at := newSite(t)
			for seed := next.Add(1) - 1; seed < first+n && !t.Failed(); seed = next.Add(1) - 1 {
				simulate(t, at, seed)
			}
		})
	}
}

// histories is how many short histories are run; LINEKEEPER_HISTORIES says
// otherwise.
func histories(t *testing.T, quick, ifLong uint64) uint64 {
	switch text := os.Getenv("LINEKEEPER_HISTORIES"); {
	case text != "":
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatalf("LINEKEEPER_HISTORIES: %v", err)
		}
		return n
	case long():
		return ifLong
	}
	return quick
}

func newSite(t *testing.T) site {
	point.SetHandler(standAtPoint)
	point.SetSkew(skewOf)
	// Scripts are known by name once their text has been sent.
	harness.Redis(t).ScriptFlush(t.Context())
	return site{redis: harness.Redis(t).Options(), dsn: harness.DSN(t)}
}

// standAtPoint has a simulated node stand at the gate at each failpoint.
func standAtPoint(ctx context.Context, name string) {
	n, ok := ctx.Value(nodeKey{}).(*node)
	// The points around an extend are passed with a mutex held: whoever waits for
	// it could not be told from somebody at work.
	if ok && !n.crashed() && !strings.HasPrefix(name, "T8-") {
		n.w.gate.pass(ctx, n, "point", name)
	}
}

// skewOf is how far a node's own clock is off. The product must not mind.
func skewOf(ctx context.Context) time.Duration {
	if n, ok := ctx.Value(nodeKey{}).(*node); ok {
		return n.skew
	}
	return 0
}

// simulate runs the history of one seed and counts it.
func simulate(t *testing.T, at site, seed uint64) {
	w, h := live(t, at, seed)
	violations := history.Check(h)
	tally.History(len(h.Events)/2, unknowns(h.Events), len(violations))
	tally.Faults(w.faults)
	if len(violations) > 0 {
		w.report(t, h, violations)
	}
}

// live runs the history of one seed.
func live(t *testing.T, at site, seed uint64) (w *world, h history.History) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, at, seed)
		h = w.play()
		w.close()
	})
	return w, h
}

func unknowns(events []history.Event) (n int) {
	for _, e := range events {
		if e.Type == history.Unknown {
			n++
		}
	}
	return n
}

// play is the whole of a history: trouble, then quiet, then the end of all
// that can end.
func (w *world) play() history.History {
	for i := range 3 {
		w.nodes = append(w.nodes, w.startNode(fmt.Sprint("node", i)))
	}
	w.everySecond()
	for i := range w.plan.members {
		w.invite(i)
	}
	w.strikeLater()
	w.run(w.plan.length)
	w.calm()
	return w.history()
}

// everySecond reads the journal and lets the clock of Postgres keep up.
func (w *world) everySecond() {
	w.collect()
	w.elapse(time.Since(w.elapsed))
	w.elapsed = time.Now()
	w.agenda.after(time.Second, w.everySecond)
}

// calm ends all faults, lets people come to an end, and waits until all that
// time ends has ended.
func (w *world) calm() {
	w.redisDown.Store(false)
	w.postgresDown.Store(false)
	w.ending.Store(true)
	w.await(5*time.Minute, func() {
		w.people.Wait()
		w.requests.Wait()
		w.late.Wait()
	})
	w.set(func(s *room.Settings) {
		s.Paused, s.Off, s.Capacity, s.BatchSize, s.IntervalMs, s.ForgetAfterSeconds = false, false, 0, 1000, 1000, 60
		s.OpensAt, s.ClosesAt, s.Draining, s.Adaptive = nil, nil, false, false
		if !s.Draw { // which keeps the time at which it ends
			s.AdmitsAt = nil
		}
	})
	// What is left in line is admitted, not fetched, goes away, and is forgotten;
	// what was fetched expires.
	for range 60 {
		w.run(10 * time.Second)
		if w.quiet() {
			break
		}
	}
	w.collect()
}

// quiet tells whether nothing is left that time has to end.
func (w *world) quiet() bool { return w.final().Settled() }

func (w *world) final() history.Final {
	f, err := history.ReadFinal(context.Background(), w.raw, w.books, w.prefix, w.room)
	if err != nil {
		w.t.Fatalf("read the final state: %v", err)
	}
	return f
}

func (w *world) history() history.History {
	final := w.final()
	// There was time enough for everything to end. What has not is a fault.
	w.facts.Quiesced = true
	w.facts.OneOrder = w.plan.settings.OneOrderPerMember
	w.facts.Stock = map[string]int64{w.sku(): w.plan.stock}
	return history.History{
		Room: history.Room{Name: w.room}, Events: w.events.Events(), Journal: w.collector.Lives(), Final: final, Facts: w.facts,
	}
}

var reports sync.Mutex

// report keeps a history that broke a promise, and says how to see it again.
func (w *world) report(t *testing.T, h history.History, violations []history.Violation) {
	reports.Lock()
	defer reports.Unlock()
	dir := keep(t, fmt.Sprint("sim-", w.seed))
	if err := os.WriteFile(filepath.Join(dir, "faults.txt"), []byte(strings.Join(w.log, "\n")+"\n"), 0o600); err != nil {
		t.Errorf("keep the faults: %v", err)
	}
	if err := h.Write(dir); err != nil {
		t.Errorf("keep the history: %v", err)
	}
	for _, v := range violations[:min(len(violations), 3)] {
		t.Errorf("seed %d: %s", w.seed, v)
	}
}
