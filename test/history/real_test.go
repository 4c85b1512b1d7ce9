//go:build faults

package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// walk is a room on a real Redis and a real Postgres, a clock that the test
// moves, and people who do whatever comes to mind. It needs the scripts of the
// faults build, which keep a journal.
type walk struct {
	*testing.T
	ctx    context.Context
	rdb    *redis.Client
	db     *pgxpool.Pool
	store  *redisstore.Store
	place  *order.Service
	prefix string
	clock  time.Time
	dice   *rand.Rand
	life   queue.Life
	steps  map[string]*queue.Step // of each leader
	term   int64
	taken  map[string][]queue.Candidate
	tokens map[string]queue.Grant // by member
	ticket map[string]queue.Place
	kept   map[string]string // the room, some time ago

	events    *Recorder
	collector *Collector
	facts     Facts
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{
		T: t, ctx: t.Context(), rdb: harness.Redis(t), db: harness.Database(t), prefix: fmt.Sprintf("walk%d", seed),
		clock: time.UnixMicro(1_764_500_000_123_457), dice: rand.New(rand.NewPCG(seed, 7)), steps: map[string]*queue.Step{},
		taken: map[string][]queue.Candidate{}, tokens: map[string]queue.Grant{}, ticket: map[string]queue.Place{}, events: NewRecorder(),
	}
	w.store = redisstore.New(w.rdb, w.prefix, redisstore.WithClock(func() time.Time { return w.clock }))
	w.place = order.New(w.store, pgstore.New(w.db, pgstore.Options{}), order.Options{})
	w.collector = NewCollector(w.rdb, w.prefix, "r")
	w.life = queue.Life{
		Room: "r", Generation: 7, Sale: 3, RestorableFrom: 6, Version: 1, Settings: []byte(`{}`), Floors: make([]int64, queue.MaxLanes),
		Rules: queue.Rules{
			Batch: 5, Interval: time.Second, TokenTTL: 20 * time.Second, PickupTTL: 6 * time.Second, ClaimLease: 15 * time.Second,
			ProcessingTimeout: 3 * time.Second, AwayAfter: 15 * time.Second, ForgetAfter: 40 * time.Second, DoneTTL: 30 * time.Second,
			MaxWaiting: 40, MaxInFlight: 6, Capacity: 12, Weights: []int{1},
		},
	}
	require.NoError(t, w.store.Create(w.ctx, w.life))
	w.sql(`INSERT INTO products (sku, stock, price_cents, currency) VALUES ('s', 60, 100, 'EUR')`)
	w.sql(`INSERT INTO rooms (name, settings) VALUES ('r', '{}')`)
	w.facts.Stock = map[string]int64{"s": 60}
	w.newTerm("a")
	if n := w.rdb.LLen(w.ctx, w.prefix+":{r}:journal").Val(); n == 0 {
		t.Skip("built without the overlay of test/fault: the scripts keep no journal")
	}
	return w
}

func (w *walk) sql(q string, args ...any) {
	w.Helper()
	_, err := w.db.Exec(w.ctx, q, args...)
	require.NoError(w, err)
}

func (w *walk) newTerm(leader string) {
	w.term++
	w.steps[leader] = &queue.Step{Generation: w.life.Generation, Term: w.term, Leader: leader}
}

func (w *walk) someone() string { return "m" + strconv.Itoa(w.dice.IntN(25)) }

func (w *walk) chance(n int) bool { return w.dice.IntN(100) < n }

// ask records a call to the line.
func (w *walk) ask(f F, member string, do func() (queue.Standing, error)) {
	op := w.events.Invoke(Event{F: f, Member: member, Client: member, Rank: -1, Total: -1})
	st, err := do()
	e := Event{F: f, Type: OK, Code: "200", Member: member, Status: string(st.Status), Score: st.Place.Score, Rank: -1, Total: -1,
		OrderID: st.OrderID, Outcome: string(st.Outcome), Grant: st.Grant.ID}
	if st.New {
		e.Code = "201"
	}
	if st.Status == queue.Waiting {
		e.Rank, e.Total = st.Rank, max(st.Total, st.Rank+1)
	}
	if err != nil {
		e.Type, e.Code = Fail, err.Error()
	}
	if st.Grant.ID != "" && err == nil {
		if g, err := w.store.PickUp(w.ctx, st.Grant, "k"); err == nil {
			w.tokens[member] = g
			e.Expires = g.Expiry.UnixMicro()
		}
	}
	if st.Place.Score > 0 {
		w.ticket[member] = st.Place
	}
	w.events.End(op, e)
}

func (w *walk) act() {
	m := w.someone()
	switch n := w.dice.IntN(100); {
	case n < 30:
		w.ask(Enter, m, func() (queue.Standing, error) { return w.store.Enter(w.ctx, "r", m, 0) })
	case n < 50:
		w.ask(Poll, m, func() (queue.Standing, error) {
			if at := w.ticket[m]; at.Score > 0 {
				return w.store.Poll(w.ctx, "r", m, at)
			}
			return w.store.Standing(w.ctx, "r", m)
		})
	case n < 55:
		_ = w.store.Heard(w.ctx, "r", []string{m, w.someone()})
	case n < 70:
		w.tick()
	case n < 77:
		_, err := w.store.Reap(w.ctx, "r")
		require.NoError(w, err)
	case n < 80:
		_, _ = w.store.Leave(w.ctx, "r", m, w.ticket[m].Score, queue.OutcomeLeft)
	case n < 83:
		_, _ = w.store.Restore(w.ctx, "r", queue.Lost{Generation: w.life.Generation, Member: m, Ticket: w.life.Generation - w.dice.Int64N(2),
			Place: queue.Place{Score: w.clock.UnixMicro() - w.dice.Int64N(20_000_000)}, LostToken: w.chance(20)})
	case n < 95:
		w.order(m)
	default:
		w.deliver()
	}
}

func (w *walk) tick() {
	leader := []string{"a", "b"}[w.dice.IntN(2)]
	if w.chance(10) || w.steps[leader] == nil {
		w.newTerm(leader)
	}
	step := w.steps[leader]
	step.Seq++
	res, err := w.store.Reserve(w.ctx, "r", *step, queue.Take{Keep: step.Seq - w.dice.Int64N(2), Effective: 5, Max: 4})
	if errors.Is(err, queue.ErrStale) {
		_, _ = w.store.Issue(w.ctx, "r", *step, []queue.Decision{{Member: w.someone(), Grant: uuid.NewString()}})
		return
	}
	require.NoError(w, err)
	if len(res.Taken) == 0 || w.chance(15) {
		return
	}
	var ds []queue.Decision
	for _, c := range res.Taken {
		d := queue.Decision{Member: c.Member, Grant: uuid.NewString()}
		if w.chance(10) {
			d.Grant = ""
		}
		ds = append(ds, d)
	}
	if w.chance(20) {
		w.clock = w.clock.Add(time.Duration(w.dice.IntN(4000)) * time.Millisecond)
	}
	for range 1 + w.dice.IntN(2) {
		_, err = w.store.Issue(w.ctx, "r", *step, ds)
		require.NoError(w, err)
	}
}

func (w *walk) history() History {
	w.deliver()
	require.NoError(w, w.collector.Collect(w.ctx))
	f, err := ReadFinal(w.ctx, w.rdb, w.db, w.prefix, "r")
	require.NoError(w, err)
	w.facts.Quiesced = true
	return History{Room: Room{"r"}, Events: w.events.Events(), Journal: w.collector.Lives(), Final: f, Facts: w.facts, Pictures: w.TempDir()}
}

// The other half of a check that has been seen to fail: it passes what the real
// scripts do, through steps of the clock, losses, flushes, changes of settings,
// two leaders who do not know of each other, and attempts that die.
func TestWalksOnTheRealScriptsBreakNoPromise(t *testing.T) {
	var mu sync.Mutex
	ran := map[string]bool{}
	t.Cleanup(func() {
		for _, name := range []string{"enter", "standing", "heard", "reserve", "issue", "reap", "pickup", "claim", "consume", "leave", "restore", "configure"} {
			if len(ran) > 0 && !ran[name] {
				t.Errorf("%s never ran: walks on which little happens show little", name)
			}
		}
	})
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := newWalk(t, seed)
			for i := range 1500 {
				w.pass()
				w.act()
				if i%20 == 0 {
					require.NoError(t, w.collector.Collect(t.Context()))
				}
			}
			h := w.history()
			res := Examine(h)
			for _, v := range res.Violations {
				t.Error(v)
			}
			t.Logf("%d calls, %d steps, %d orders, %d lives", res.Calls, res.Steps, len(h.Final.Orders), len(h.Journal))
			require.Greater(t, res.Steps, 800)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range h.Journal {
				for _, s := range l.Steps {
					ran[s.Script] = true
				}
			}
		})
	}
}
