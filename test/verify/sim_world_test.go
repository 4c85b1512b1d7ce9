//go:build faults

package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/history"
)

// world is one simulated history: three nodes on a real Redis and a real
// Postgres, people, and faults. It lives in a bubble of testing/synctest, where
// time passes only when everybody waits for it, so minutes take milliseconds.
//
// A seed decides the settings, what people do, who goes on at the gate and what
// happens to them. Jitter that the product draws for itself, and the names of
// grants, are not decided by it: a seed leads to the same kind of history, not
// to the same bytes.
type world struct {
	t    *testing.T
	seed uint64
	rnd  *rand.Rand // of the driver alone

	redis        *redis.Options
	dsn          string
	prefix, room string
	raw          *redis.Client // past the gate
	books        *pgxpool.Pool // past the gate
	operators    *roomstore.Store
	ring         *credential.Ring

	plan   plan
	lock   simLock
	gate   *gate
	nodes  []*node
	gone   []*node // that others have replaced
	agenda agenda

	step         atomic.Int64 // by how much the clock of Redis is off, in nanoseconds
	redisDown    atomic.Bool
	postgresDown atomic.Bool
	ending       atomic.Bool // people do nothing new
	relaysAsleep time.Time   // until when no relay delivers anything
	late         sync.WaitGroup
	requests     sync.WaitGroup
	people       sync.WaitGroup
	elapsed      time.Time // until when the clock of Postgres has run

	events    *history.Recorder
	collector *history.Collector
	facts     history.Facts
	faults    int
	crashes   int
	goingBack int      // partial losses to come
	log       []string // of faults, for whoever has to understand a failure
}

// site is what the worlds of one worker share.
type site struct {
	redis *redis.Options
	dsn   string
}

func newWorld(t *testing.T, at site, seed uint64) *world {
	rnd := rand.New(rand.NewPCG(seed, 0x11e5))
	o := *at.redis
	w := &world{
		t: t, seed: seed, rnd: rnd, redis: &o, dsn: at.dsn,
		prefix: fmt.Sprintf("sim-%d-%x", seed, rand.Uint32()), room: fmt.Sprintf("r%d-%x", seed, rand.Uint32()),
		gate: newGate(), plan: newPlan(seed, rnd), events: history.NewRecorder(), elapsed: time.Now(),
	}
	raw := *at.redis
	w.raw = redis.NewClient(&raw)
	var err error
	if w.books, err = pgxpool.New(context.Background(), w.dsn); err != nil {
		t.Fatal(err)
	}
	if w.ring, err = credential.ParseRing(credential.GenerateKey()); err != nil {
		t.Fatal(err)
	}
	w.operators = roomstore.New(w.books)
	w.collector = history.NewCollector(w.raw, w.prefix, w.room)
	w.furnish()
	return w
}

// furnish makes the room and its product.
func (w *world) furnish() {
	ctx, by := context.Background(), room.Actor{Name: "operator"}
	w.plan.schedule.at(&w.plan.settings, time.Now())
	p := room.Product{SKU: w.sku(), Stock: w.plan.stock, PriceCents: 100, Currency: "EUR"}
	if _, _, err := w.operators.PutProduct(ctx, p, 0, by); err != nil {
		w.t.Fatal(err)
	}
	if w.plan.stocked {
		w.plan.settings.Stock = &p.SKU
	}
	if _, err := w.operators.Create(ctx, w.room, w.plan.settings, by); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) sku() string { return "sku-" + w.room }

func (w *world) redisTime() time.Time { return time.Now().Add(time.Duration(w.step.Load())) }
func (w *world) redisAway() bool      { return w.redisDown.Load() }
func (w *world) postgresAway() bool   { return w.postgresDown.Load() }

// note keeps what was done to the world.
func (w *world) note(format string, args ...any) {
	w.faults++
	w.log = append(w.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// run lets the world go on for d.
func (w *world) run(d time.Duration) {
	w.until(d, func() bool { return false })
}

// until lets the world go on until over, for d at most. It is the one place
// that decides who is next.
func (w *world) until(d time.Duration, over func() bool) {
	for end := time.Now().Add(d); time.Now().Before(end) && !over(); {
		synctest.Wait()
		w.agenda.due(time.Now())
		if s := w.gate.pick(w.rnd); s != nil {
			s.verdict <- w.judge(s)
			continue
		}
		next := time.NewTimer(min(w.agenda.wait(time.Now()), time.Until(end)))
		select {
		case <-w.gate.arrived:
		case <-next.C:
		}
		next.Stop()
	}
}

// await lets the world go on until wait has returned, for d at most.
func (w *world) await(d time.Duration, wait func()) {
	var over atomic.Bool
	go func() {
		wait()
		over.Store(true)
	}()
	w.until(d, over.Load)
}

// judge decides what becomes of one stop.
func (w *world) judge(s *stop) verdict {
	if s.kind == "redis" && w.redisAway() || s.kind == "postgres" && w.postgresAway() {
		return verdict{fate: notSent}
	}
	if left := time.Until(w.relaysAsleep); left > 0 && s.what == "X2-taken" {
		return verdict{fate: delayed, delay: left}
	}
	if w.ending.Load() || w.rnd.Float64() >= w.plan.odds(s) {
		return verdict{}
	}
	v := verdict{fate: w.fateOf(s), delay: w.delay()}
	w.note("%s: %s %v", s, v.fate, v.delay)
	if s.kind == "point" && v.fate == notSent {
		w.crash(s.node)
	}
	return v
}

// fateOf draws what can happen to a stop of its kind.
func (w *world) fateOf(s *stop) fate {
	switch s.kind {
	case "redis":
		if len(w.plan.theme.redis) > 0 {
			return draw(w.rnd, w.plan.theme.redis...)
		}
		return draw(w.rnd, replyLost, echoed, twice, notSent, delayed, late)
	case "postgres":
		if s.what == "commit" {
			return draw(w.rnd, notSent, noAnswer, delayed, late, spoilt)
		}
		return draw(w.rnd, notSent, noAnswer, delayed)
	}
	if w.crashes < w.plan.crashes && w.rnd.IntN(4) == 0 {
		return notSent // of a failpoint: the process dies here
	}
	return delayed
}

func (f fate) String() string {
	return [...]string{"carried out", "reply lost", "echoed", "run twice", "not sent", "delayed", "late", "no answer", "spoilt"}[f]
}

func draw[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

// upTo draws a time, short ones more often.
func (w *world) upTo(d time.Duration) time.Duration {
	f := w.rnd.Float64()
	return max(time.Duration(f*f*f*float64(d)), time.Millisecond)
}

// close ends everything that runs, so that nothing is left in the bubble.
func (w *world) close() {
	w.ending.Store(true)
	w.gone = append(w.gone, w.nodes...)
	for _, n := range w.gone {
		n.crash()
	}
	w.await(time.Hour, func() {
		w.people.Wait()
		w.requests.Wait()
		for _, n := range w.gone {
			n.wait()
		}
		w.late.Wait()
	})
	w.cleanUp()
	_ = w.raw.Close()
	w.books.Close()
}

// cleanUp leaves the shared servers as they were.
func (w *world) cleanUp() {
	ctx := context.Background()
	if keys, err := w.raw.Keys(ctx, w.prefix+":*").Result(); err == nil && len(keys) > 0 {
		w.raw.Del(ctx, keys...)
	}
	for _, q := range []string{
		`DELETE FROM outbox WHERE room = $1`, `DELETE FROM orders WHERE room = $1`,
		`DELETE FROM draw_pieces WHERE room = $1`, `DELETE FROM draws WHERE room = $1`,
		`DELETE FROM room_progress WHERE room = $1`, `DELETE FROM room_exclusions WHERE room = $1`, `DELETE FROM rooms WHERE name = $1`,
	} {
		if _, err := w.books.Exec(ctx, q, w.room); err != nil {
			w.t.Errorf("clean up: %v", err)
		}
	}
}
