package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// recoverIn is how long after the promotion of a replica the line may stand.
const recoverIn = 15 * time.Second

// promoted waits until another server than old is the one that who names.
func promoted(t testing.TB, old *devstack.Proc, who func() (*devstack.Proc, error)) time.Time {
	t.Helper()
	harness.Eventually(t, patience, "a replica is promoted", func() bool {
		now, err := who()
		return err == nil && now != old
	})
	return time.Now()
}

// ticksSince waits until the scheduler has come by these rooms after a moment.
func (w *world) ticksSince(moment time.Time, within time.Duration, rooms ...string) {
	w.t.Helper()
	for _, name := range rooms {
		harness.Eventually(w.t, time.Until(moment)+within, "the scheduler ticks "+name, func() bool {
			s, ok := w.look(name)
			return ok && s.TickedAt != nil && s.TickedAt.After(moment)
		})
	}
}

// look is the snapshot of a room, if it can be had.
func (w *world) look(name string) (snapshot, bool) {
	w.t.Helper()
	got := w.operate("GET", "/admin/v1/rooms/"+name+"/snapshot", nil)
	if got.status != 200 {
		return snapshot{}, false
	}
	return decoded[snapshot](got), true
}

// keen is shoppers who come one after the other while servers fail, and hold on
// to what was acknowledged to them: they poll and order until they have an
// answer, and where their token turns out to be lost, wait for another.
type keen struct {
	w  *world
	at func() *process

	stopping chan struct{}
	gone     sync.WaitGroup

	mu        sync.Mutex
	bought    map[*shopper]string // their orders
	inside    map[*shopper]int64  // the places of those who have none
	refused   int                 // answers that sent them away for a moment
	last      string              // of these
	failovers []time.Time         // when each began
	mistakes  []string
}

// come lets n shoppers at a time in, until leave.
func (k *keen) come(n int) *keen {
	k.stopping, k.bought, k.inside = make(chan struct{}), map[*shopper]string{}, map[*shopper]int64{}
	k.w.t.Cleanup(k.leave)
	for range n {
		k.gone.Go(func() {
			for !k.ending() {
				k.shop()
			}
		})
	}
	return k
}

func (k *keen) ending() bool {
	select {
	case <-k.stopping:
		return true
	default:
		return false
	}
}

// leave returns when everybody has had the answer to the last request.
func (k *keen) leave() {
	if !k.ending() {
		close(k.stopping)
	}
	k.gone.Wait()
}

func (k *keen) shop() {
	s := k.w.shopper()
	got, ok := k.insist(s.enter, k.ending)
	if !ok {
		return
	}
	score := *got.position().Score
	k.note(func() { k.inside[s] = score })
	for !k.ending() {
		got, ok := k.insist(s.poll, k.ending)
		if !ok {
			return
		}
		at := got.position()
		switch {
		case at.Status == queue.NotEntered:
			k.lost(s, score)
			return
		case at.Status == queue.Waiting && *at.Score != score:
			k.mistake("the place %d is %d now", score, *at.Score)
		case s.token != "" && k.order(s):
			return
		}
	}
}

// order tells whether the shopper has an order now. It is asked until that is
// known, also when the others have left.
func (k *keen) order(s *shopper) bool {
	deadline := time.Now().Add(patience)
	got, ok := k.insist(func(p *process) answer { return s.order(p, "demo", 1) }, func() bool { return time.Now().After(deadline) })
	switch {
	case !ok:
		k.mistake("it is not known whether there is an order")
		return true
	case got.code() == "entry-token-invalid": // the grant was lost, and its member has the place back
		s.token = ""
		return false
	}
	k.note(func() {
		k.bought[s] = got.order().ID
		delete(k.inside, s)
	})
	return true
}

// lost accepts a place that is gone only where its member had come, and had been
// let through, while a failover was under way: then the ticket proves a place
// that has been used, for all that is known. What Postgres was told before says
// who had been let through.
func (k *keen) lost(s *shopper, score int64) {
	floor := sql[int64](k.w, "SELECT floors[1] FROM room_progress WHERE room = $1", room)
	k.note(func() {
		delete(k.inside, s)
		meanwhile := slices.ContainsFunc(k.failovers, func(began time.Time) bool {
			// Replication lags, on a busy machine.
			return score > began.Add(-time.Second).UnixMicro() && score < began.Add(recoverIn).UnixMicro()
		})
		if floor < score || !meanwhile {
			k.mistakes = append(k.mistakes, fmt.Sprintf("the place %d is lost; those up to %d have been let through", score, floor))
		}
	})
}

// insist makes a request until the answer says something, or it is time to give
// up. No answer but those of an outage may say nothing.
func (k *keen) insist(request func(*process) answer, giveUp func() bool) (answer, bool) {
	for !giveUp() {
		got := request(k.at())
		time.Sleep(20 * time.Millisecond) // the shoppers' pace, not a wait for anything
		switch {
		case got.status == 200, got.status == 201, got.code() == "entry-token-invalid":
			return got, true
		case !unavailable(got):
			k.mistake("%d %v %s", got.status, got.err, got.body)
		}
		k.note(func() {
			k.refused++
			k.last = fmt.Sprintf("%s %d %s", time.Now().Format("15:04:05.000"), got.status, got.body)
		})
	}
	return answer{}, false
}

func (k *keen) note(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

func (k *keen) mistake(format string, args ...any) {
	k.note(func() { k.mistakes = append(k.mistakes, fmt.Sprintf(format, args...)) })
}

func (k *keen) count(of func() int) (n int) {
	k.note(func() { n = of() })
	return n
}

// buy waits until n more have ordered.
func (k *keen) buy(n int) {
	k.w.t.Helper()
	bought := func() int { return len(k.bought) }
	before := k.count(bought)
	defer k.note(func() {
		if k.w.t.Failed() {
			k.w.t.Logf("%d are inside, %d were refused, at last by %s; mistakes: %v", len(k.inside), k.refused, k.last, k.mistakes)
		}
	})
	harness.Eventually(k.w.t, patience, "orders are placed", func() bool { return k.count(bought) >= before+n })
}

// verify looks for all that was acknowledged, and for nothing else.
func (k *keen) verify(p *process) {
	t := k.w.t
	t.Helper()
	k.leave()
	require.Empty(t, k.mistakes, "what must not be")
	for s, score := range k.inside {
		at := s.poll(p).is(200).position()
		if at.Status == queue.NotEntered {
			k.lost(s, score)
		} else {
			require.Equal(t, score, *at.Score, "a place that was acknowledged is another one now")
		}
	}
	require.Empty(t, k.mistakes, "what must not be")
	for s, id := range k.bought {
		require.Equal(t, id, s.orderByID(p, id).is(200).order().ID)
		// The token has paid. That a failover may have forgotten it changes nothing.
		require.Equal(t, id, s.order(p, "demo", 1).is(200).order().ID)
	}
	require.Equal(t, len(k.bought), k.w.placed(), "an order without an acknowledgement, or a second one for a grant")
}

// R4, R5, case 38, redis/redis#6062: one failover that is asked for, and one
// because the primary has died, among people who enter, poll and order.
func TestSentinelFailoversAreShortOutagesAndLoseNothing(t *testing.T) {
	t.Parallel()
	g := harness.Sentinel(t)
	w := onGroup(t, g.URL())
	a, b := w.pair()
	w.open(settings{"batchSize": 4, "intervalMs": 500, "claimLeaseSeconds": 11, "pickupTtlSeconds": 60})
	w.openRoom("still", settings{"paused": true})
	ann := w.shopper()
	ann.admitted(a)
	made := ann.order(b, "demo", 1).is(201).order()
	ann.until(a, queue.Consumed)
	still := make([]*shopper, 5)
	for i := range still {
		still[i] = &shopper{w: w, t: t, room: "still"}
		still[i].enter([]*process{a, b}[i%2]).is(201)
	}
	k := (&keen{w: w, at: turns(a, b)}).come(6)
	k.note(func() { k.bought[ann] = made.ID })
	k.buy(6)
	primary := func() (*devstack.Proc, error) { return g.Primary(t.Context()) }

	old, err := primary()
	require.NoError(t, err)
	k.note(func() { k.failovers = append(k.failovers, time.Now()) })
	require.NoError(t, g.Failover(t.Context()))
	w.ticksSince(promoted(t, old, primary), recoverIn+slack, room, "still")
	k.buy(6)

	old, err = primary()
	require.NoError(t, err)
	k.note(func() { k.failovers = append(k.failovers, time.Now()) })
	old.Kill()
	for _, p := range []*process{a, b} {
		got := w.shopper().enter(p)
		now, err := primary()
		require.NoError(t, err)
		if now == old && got.status != 201 { // who was served may know a primary that we do not
			got.is(503, "unavailable")
			require.NotEmpty(t, got.header.Get("Retry-After"))
			w.ask("GET", p.public+"/livez", nil, "").is(200)
		}
	}
	w.ticksSince(promoted(t, old, primary), recoverIn+slack, room, "still")
	require.Positive(t, k.count(func() int { return k.refused }), "nobody has noticed the outage")
	k.buy(6)
	w.untilHealth(patience, 200, a, b)
	harness.Eventually(t, patience, "requests go through again", func() bool { return ann.poll(b).status == 200 }) // readiness knows nothing of the breaker
	k.verify(b)
	for rank, s := range still {
		require.EqualValues(t, rank, *s.poll(b).is(200).position().Rank)
	}
	w.conserved(w.snapshot())
	require.True(t, w.leader().leads())
}

// Case 38 as well: the primary dies while its replicas lag, and what it has
// acknowledged last never was, for Redis. Postgres and the tickets know better.
func TestFailoverThatForgetsIsMendedByTicketsAndPostgres(t *testing.T) {
	t.Parallel()
	g := harness.Sentinel(t)
	w := onGroup(t, g.URL())
	a, b := w.pair()
	w.open(settings{"batchSize": 1, "intervalMs": 60_000, "claimLeaseSeconds": 11})
	ann, bob := w.shopper(), w.shopper()
	ann.admitted(a)
	place := *bob.enter(b).is(201).position().Score
	term := w.untilSnapshot("bob waits", func(s snapshot) bool { return s.Sizes["waiting"] == 1 }).Term

	old := g.Servers[0]
	require.NoError(t, devstack.Detach(t.Context(), old))
	made := ann.order(a, "demo", 1).is(201).order()
	ann.until(b, queue.Consumed)
	w.patch(a, settings{"intervalMs": 100})
	bob.until(a, queue.Ready)
	w.patch(a, settings{"paused": true})
	w.untilSnapshot("the pause is known", func(s snapshot) bool { return s.RoomState == "PAUSED" })
	var late []*shopper
	var scores []int64
	for i := range 3 {
		late = append(late, w.shopper())
		scores = append(scores, *late[i].enter([]*process{a, b}[i%2]).is(201).position().Score)
	}
	generation := w.snapshot().Generation
	old.Kill()
	w.ticksSince(promoted(t, old, func() (*devstack.Proc, error) { return g.Primary(t.Context()) }), recoverIn+slack, room)

	// The settings of before are pushed again, so that all stands still for us.
	s := w.untilSnapshot("the pause is in force again", func(s snapshot) bool { return s.RoomState == "PAUSED" })
	require.Equal(t, generation, s.Generation, "a part that is lost is not a new life")
	require.GreaterOrEqual(t, s.Term, term)
	require.EqualValues(t, 2, s.Counters["entered"], "the three who came last are not forgotten: this test shows nothing")

	// A grant that Redis does not know pays for nothing, now or later.
	require.NotEmpty(t, bob.token)
	bob.order(a, "demo", 1).is(401, "entry-token-invalid")
	at := bob.poll(b).is(200).position()
	require.Equal(t, queue.Waiting, at.Status)
	require.Equal(t, place, *at.Score)
	require.EqualValues(t, 0, *at.Rank)
	for i, s := range late {
		at := s.poll([]*process{b, a}[i%2]).is(200).position()
		require.Equal(t, scores[i], *at.Score, "the ticket brings the place back with the next poll")
		require.EqualValues(t, i+1, *at.Rank)
	}
	// A grant that Redis believes to be unused has paid already.
	require.Equal(t, made.ID, ann.order(b, "demo", 1).is(200).order().ID)
	require.Equal(t, 1, w.placed())

	spent := bob.token
	w.do("resume")
	for _, s := range append(late, bob) {
		s.until(a, queue.Ready)
		s.order(b, "demo", 1).is(201)
	}
	require.NotEqual(t, spent, bob.token)
	require.Equal(t, 5, w.placed())
	s = w.snapshot()
	require.EqualValues(t, 3, s.Counters["restored"])
	w.conserved(s)
}

// R3, case 44, apecloud/kubeblocks#10753 and redis/redis#2087: a primary that
// keeps nothing comes back before anybody misses it, and its replicas copy the
// void. Tokens of before pay for nothing, and places come back.
func TestPrimaryRebornEmptyIsALossThatTicketsMend(t *testing.T) {
	t.Parallel()
	g := harness.Sentinel(t)
	w := onGroup(t, g.URL())
	a, b := w.pair()
	w.open(nil)
	ann := w.shopper()
	held := ann.admitted(a)
	w.do("pause")
	w.untilSnapshot("the line stands still", func(s snapshot) bool { return s.RoomState == "PAUSED" })
	line := w.line(4, a, b)
	scores := make([]int64, len(line))
	for i, s := range line {
		scores[i] = *s.poll(a).is(200).position().Score
	}
	before := w.snapshot()
	for _, s := range g.Sentinels {
		s.Pause() // they are to miss it, on the busiest machine
	}
	g.Servers[0].Kill()
	require.NoError(t, g.Servers[0].Start())
	harness.Eventually(t, patience, "the replicas are as empty as the primary", func() bool {
		for _, p := range g.Servers[1:] {
			if n, err := direct(t, p).Exists(t.Context(), w.prefix+":{"+room+"}:lane0").Result(); err != nil || n > 0 {
				return false
			}
		}
		return true
	})
	for _, s := range g.Sentinels {
		s.Resume()
	}
	harness.Eventually(t, recoverIn+slack, "a generation begins", func() bool {
		s, ok := w.look(room)
		return ok && s.Generation > before.Generation
	})
	spent := ann.token
	ann.order(b, "demo", 1).is(401, "entry-token-invalid")
	require.Equal(t, *held.Score, *ann.pollWith(a, spent).is(200).position().Score, "but her place is hers again")
	for i, s := range line {
		at := s.until([]*process{b, a}[i%2], queue.Waiting)
		require.Equal(t, scores[i], *at.Score, "a place was lost")
	}
	require.Equal(t, orderOfScores(append([]int64{*held.Score}, scores...)), ranks(t, append([]*shopper{ann}, line...), b))
	require.Zero(t, w.placed())
	w.conserved(w.snapshot())
}
