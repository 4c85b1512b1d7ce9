package redisstore

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// TestTicksUnderFaultsKeepRateCapacityAndFence runs four schedulers, with or
// without what a lock would save, against one room in virtual time: replies are
// lost and calls run again, issues come seconds late or never, old calls arrive
// after new ones, processes crash between reserve and issue, and the counter of
// terms is set back. I8, I10, I11 and I12 are checked all along.
func TestTicksUnderFaultsKeepRateCapacityAndFence(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			m := newModel(t, seed)
			m.run(30 * time.Second)
			m.checkRate()
		})
	}
}

// model is a room, its schedulers, and the calls that are under way.
type model struct {
	*fixture
	rnd     *rand.Rand
	calls   pending
	counter int64 // of terms
	granted []granted
	lock    bool // one scheduler keeps its term; else each tick takes one
}

type granted struct {
	at time.Time
	n  int
}

// sched is one scheduler of the model.
type sched struct {
	id   string
	step queue.Step
}

// pending is what happens later, by time.
type pending []event

type event struct {
	at  time.Time
	run func()
}

func (p pending) Len() int           { return len(p) }
func (p pending) Less(i, j int) bool { return p[i].at.Before(p[j].at) }
func (p pending) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push and Pop are for container/heap.
func (p *pending) Push(x any) { *p = append(*p, x.(event)) }
func (p *pending) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

func newModel(t *testing.T, seed uint64) *model {
	rnd := rand.New(rand.NewPCG(seed, 1))
	pick := func(n ...int) int { return n[rnd.IntN(len(n))] }
	f := setup(t, func(r *queue.Rules) {
		r.Batch, r.Interval = pick(1, 7, 50, 400), time.Duration(pick(100, 1000))*time.Millisecond
		r.Capacity, r.PickupTTL, r.ForgetAfter = pick(0, 0, 30, 500), 3*time.Second, time.Hour
	})
	m := &model{fixture: f, rnd: rnd, lock: rnd.IntN(2) == 0}
	f.enterMany(0, 2000)
	for i := range 4 {
		s := &sched{id: fmt.Sprint("s", i)}
		m.after(m.upTo(100*time.Millisecond), func() { m.tick(s) })
	}
	m.after(500*time.Millisecond, m.reapAll)
	return m
}

func (m *model) upTo(d time.Duration) time.Duration {
	return time.Duration(m.rnd.Int64N(int64(d)) + 1).Truncate(time.Microsecond)
}

func (m *model) sometimes(p float64) bool { return m.rnd.Float64() < p }

func (m *model) after(d time.Duration, run func()) { heap.Push(&m.calls, event{m.clock.Add(d), run}) }

func (m *model) run(d time.Duration) {
	end := m.clock.Add(d)
	for m.calls.Len() > 0 && m.calls[0].at.Before(end) {
		e := heap.Pop(&m.calls).(event)
		m.clock = e.at
		e.run()
		m.check()
	}
}

func (m *model) newTerm(s *sched) {
	m.counter++
	if m.sometimes(0.05) {
		m.counter = max(1, m.counter-2) // set back by a failover
	}
	s.step = queue.Step{Generation: 7, Term: m.counter, Leader: s.id}
}

func (m *model) tick(s *sched) {
	if !m.lock || s.step.Term == 0 {
		m.newTerm(s)
	}
	s.step.Seq++
	step, take := s.step, queue.Take{Keep: s.step.Seq, Effective: m.life.Rules.Batch, Max: 500}
	r, err := m.Reserve(m.Context(), m.room, step, take)
	var stale queue.StaleError
	if errors.As(err, &stale) {
		m.counter = max(m.counter, stale.Term)
		m.newTerm(s)
		m.after(m.upTo(100*time.Millisecond), func() { m.tick(s) })
		return
	}
	require.NoError(m, err)
	if m.sometimes(0.1) { // the reply was lost and the client asks again
		again, err := m.Reserve(m.Context(), m.room, step, take)
		require.NoError(m, err)
		require.ElementsMatch(m, r.Taken, again.Taken)
	}
	if m.sometimes(0.05) { // a copy that arrives much later
		m.after(m.upTo(3*time.Second), func() { _, _ = m.Reserve(m.Context(), m.room, step, take) })
	}
	switch {
	case len(r.Taken) == 0:
		m.after(r.Wait+m.upTo(3*time.Millisecond), func() { m.tick(s) })
	case m.sometimes(0.05): // crashed in between, and started again
		s.step.Term = 0
		m.after(time.Second, func() { m.tick(s) })
	default:
		m.after(m.delay(), func() { m.issueLate(s, step, r) })
	}
}

// delay is a call's time: mostly short, sometimes beyond processingTimeout.
func (m *model) delay() time.Duration {
	if m.sometimes(0.2) {
		return m.upTo(7 * time.Second)
	}
	return m.upTo(50 * time.Millisecond)
}

func (m *model) issueLate(s *sched, step queue.Step, r queue.Reservation) {
	var ds []queue.Decision
	for _, c := range r.Taken {
		m.ids++
		ds = append(ds, queue.Decision{Member: c.Member, Grant: fmt.Sprint("g", m.ids)})
	}
	newest := m.snap().Term
	before := m.snap().Lanes[0].Admitted
	for range 1 + m.rnd.IntN(2) { // once, or again after a lost reply
		if _, err := m.Issue(m.Context(), m.room, step, ds); err != nil {
			require.ErrorIs(m, err, queue.ErrStale)
		}
	}
	n := int(m.snap().Lanes[0].Admitted - before)
	if step.Term < newest {
		require.Zero(m, n, "I12: an older term has granted")
	}
	if n > 0 {
		m.granted = append(m.granted, granted{m.clock, n})
	}
	m.after(m.upTo(time.Millisecond), func() { m.tick(s) })
}

func (m *model) reapAll() {
	m.reap()
	m.after(500*time.Millisecond, m.reapAll)
}

func (m *model) check() {
	m.conserved()
	if limit := m.life.Rules.Capacity; limit > 0 {
		inside := m.rdb.ZCount(m.Context(), m.key("ready"), "("+unixMicro(m.clock), "+inf").Val()
		s := m.snap()
		require.LessOrEqual(m, inside+s.Claimed+s.Processing, int64(limit), "I11")
	}
}

// checkRate is I10 over every window between two grants.
func (m *model) checkRate() {
	batch, interval := float64(m.life.Rules.Batch), m.life.Rules.Interval
	for i := range m.granted {
		n := 0
		for _, g := range m.granted[i:] {
			n += g.n
			w := g.at.Sub(m.granted[i].at)
			require.LessOrEqual(m, float64(n), batch*float64(w)/float64(interval)+batch+1e-6, "I10: %d in %v", n, w)
		}
	}
	require.NotEmpty(m, m.granted, "a model in which nothing happens proves nothing")
}

// Members far behind are not listened for. When the batch grows they are in
// reach at once, and are served in order, however rarely they poll.
func TestAGrowingBatchKeepsTheOrderOfRarePollers(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 3000)
	got := f.tick()
	f.life.Version, f.life.Rules.Batch = 2, 10_000
	require.NoError(t, f.Update(t.Context(), f.life))
	f.pass(time.Second)
	got = append(got, f.tick()...)
	require.Equal(t, 3000, len(got))
	for i, m := range got {
		require.Equal(t, fmt.Sprintf("m%05d", i), m)
	}
}
