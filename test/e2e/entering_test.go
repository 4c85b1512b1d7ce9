package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// proxied are the settings of processes that are told who members are.
var proxied = []string{"LINEKEEPER_IDENTITY=header", "LINEKEEPER_TRUSTED_PROXIES=127.0.0.0/8"}

func TestSimultaneousEntersOfOneMemberGiveOnePlace(t *testing.T) {
	t.Parallel()
	t.Run("by the name that a proxy gives", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a, b := w.start(proxied...), w.start(proxied...)
		w.open(settings{"paused": true})
		w.onePlace(a, b, func() *shopper { return w.member("ann") })
	})
	t.Run("by one blank ticket", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a, b := w.pair()
		w.open(settings{"paused": true, "enterNeedsTicket": true})
		blank := w.shopper()
		p := blank.enter(a).is(200).position()
		require.Equal(t, queue.NotEntered, p.Status, "without a ticket nobody enters this room")
		require.NotNil(t, p.QueueTicket)
		require.Zero(t, w.snapshot().Counters["entered"], "a request without a ticket must leave nothing behind")
		ticket := blank.ticket
		w.onePlace(a, b, func() *shopper { return &shopper{w: w, t: t, room: room, ticket: ticket} })
	})
}

// onePlace has 64 copies of one member enter at once.
func (w *world) onePlace(a, b *process, copied func() *shopper) {
	w.t.Helper()
	answers := make([]answer, 64)
	together(len(answers), func(i int) { answers[i] = copied().enter([]*process{a, b}[i%2]) })
	scores, made := map[int64]bool{}, 0
	for _, got := range answers {
		require.Contains(w.t, []int{200, 201}, got.status, "%s", got.body)
		made += got.status - 200
		scores[*got.position().Score] = true
	}
	require.Len(w.t, scores, 1, "one member must have one score")
	require.Equal(w.t, 1, made, "one enter must make the place and all others find it")
	s := w.snapshot()
	require.EqualValues(w.t, 1, s.Sizes["waiting"])
	w.conserved(s)
}

// Everybody enters at once; the line is then let through bit by bit, and at no
// moment has somebody a token while a smaller score still waits.
func TestFiveHundredEnterAtOnceAndAreAdmittedInOrder(t *testing.T) {
	t.Parallel()
	const n = 500
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"paused": true, "batchSize": 50, "intervalMs": 500, "pickupTtlSeconds": 60})
	both := []*process{a, b}
	all, at := make([]*shopper, n), make([]spec.Position, n)
	together(n, func(i int) {
		all[i] = w.shopper()
		if got := all[i].enter(both[i%2]); got.status != 201 {
			t.Errorf("enter: %d %v %s", got.status, got.err, got.body)
		} else {
			at[i] = got.position()
		}
	})
	require.False(t, t.Failed())
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return int(*at[i].Score - *at[j].Score) })
	for rank, i := range order {
		require.EqualValues(t, rank, *at[i].Rank, "ranks must be those of the scores, each once")
		require.True(t, rank == 0 || *at[i].Score > *at[order[rank-1]].Score, "two members have one score")
		require.EqualValues(t, rank, *all[i].poll(both[rank%2]).is(200).position().Rank)
	}

	w.do("resume")
	sweeps := 0
	harness.Eventually(t, 2*patience, "everybody is admitted", func() bool {
		sweeps++
		return w.sweep(all, order, both[sweeps%2]) == n
	})
	require.Greater(t, sweeps, 2, "they were let through all at once")
	w.conserved(w.snapshot())
}

// sweep polls from the back of the line to its front: whoever is polled later
// and has a smaller score must be at least as far. Returns how many are READY.
func (w *world) sweep(all []*shopper, order []int, p *process) int {
	w.t.Helper()
	ready := 0
	for rank := len(order) - 1; rank >= 0; rank-- {
		s := all[order[rank]]
		if s.token == "" {
			s.poll(p).is(200)
		}
		if s.token != "" {
			ready++
		} else {
			require.Zero(w.t, ready, "somebody behind rank %d was admitted first", rank)
		}
	}
	return ready
}

// What the first, simple design of such a queue was verified to do.
func TestTheSimplePromises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.stock("demo", 1000)
	in := func(t *testing.T, name string, s settings) *world {
		t.Parallel()
		own := *w
		own.t = t
		own.openRoom(name, s)
		return &own
	}
	at := func(w *world, name string) *shopper { return &shopper{w: w, t: w.t, room: name} }

	t.Run("first entry returns rank 0 and the total", func(t *testing.T) {
		w := in(t, "first", settings{"paused": true})
		p := at(w, "first").enter(a).is(201).position()
		require.EqualValues(t, 0, *p.Rank)
		require.EqualValues(t, 1, *p.CurrentTotalWaitingCount)
		p = at(w, "first").enter(b).is(201).position()
		require.EqualValues(t, 1, *p.Rank)
		require.EqualValues(t, 2, *p.CurrentTotalWaitingCount)
	})
	t.Run("repeated entry keeps the rank", func(t *testing.T) {
		w := in(t, "repeated", settings{"paused": true})
		ann := at(w, "repeated")
		first := ann.enter(a).is(201).position()
		for i := range 5 {
			at(w, "repeated").enter(a).is(201) // others enter in between
			p := ann.enter([]*process{b, a}[i%2]).is(200).position()
			require.Equal(t, *first.Score, *p.Score)
			require.EqualValues(t, 0, *p.Rank)
		}
		status := decoded[spec.RoomStatus](w.ask("GET", a.public+"/v1/rooms/repeated", nil, "").is(200))
		require.LessOrEqual(t, status.Waiting, int64(6), "entering again must not count again")
	})
	t.Run("distinct members have distinct ranks", func(t *testing.T) {
		w := in(t, "distinct", settings{"paused": true})
		ranks := make([]int64, 8)
		together(len(ranks), func(i int) { ranks[i] = *at(w, "distinct").enter([]*process{a, b}[i%2]).position().Rank })
		slices.Sort(ranks)
		require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7}, ranks)
	})
	t.Run("responses tell WAITING, READY and NOT_ENTERED apart", func(t *testing.T) {
		w := in(t, "states", settings{"paused": true})
		ann := at(w, "states")
		require.Equal(t, queue.Waiting, ann.enter(a).is(201).position().Status)
		w.operate("POST", "/admin/v1/rooms/states/resume", nil).is(200)
		ann.until(b, queue.Ready)
		ann.leave(a).is(204)
		p := ann.poll(b).is(200).position()
		require.Equal(t, queue.NotEntered, p.Status)
		require.Equal(t, queue.OutcomeLeft, *p.LastOutcome)
		require.Nil(t, p.EntryToken)
		ann.leave(b).is(204)
		at(w, "states").poll(a).is(401, "ticket-invalid")
	})
	// That a token ends with its TTL: TestTokenEndsAtItsExpiryHoweverOftenItIsPolled.
	t.Run("one tick admits no more than the batch", func(t *testing.T) {
		w := in(t, "tick", settings{"paused": true, "batchSize": 5, "intervalMs": 60_000})
		for range 12 {
			at(w, "tick").enter(a).is(201)
		}
		w.operate("POST", "/admin/v1/rooms/tick/resume", nil).is(200)
		look := func() snapshot {
			return decoded[snapshot](w.operate("GET", "/admin/v1/rooms/tick/snapshot", nil).is(200))
		}
		harness.Eventually(t, patience, "the first batch is admitted", func() bool { return look().admitted() == 5 })
		for range 3 {
			last := *look().TickedAt
			harness.Eventually(t, patience, "the scheduler ticks again", func() bool { return look().TickedAt.After(last) })
		}
		s := look()
		require.EqualValues(t, 5, s.admitted(), "the next batch is due in 30 s, with however many schedulers")
		require.EqualValues(t, 7, s.Sizes["waiting"])
	})
	t.Run("an order without a token is rejected", func(t *testing.T) {
		w := in(t, "without", nil)
		at(w, "without").order(a, "demo", 1).is(401, "entry-token-missing")
	})
	t.Run("a committed order takes the token away", func(t *testing.T) {
		w := in(t, "committed", nil)
		ann := at(w, "committed")
		ann.admitted(a)
		ann.order(b, "demo", 1).is(201)
		require.Nil(t, ann.until(a, queue.Consumed).EntryToken)
		ann.order(a, "demo", 3).is(409, "entry-token-consumed")
		require.Equal(t, 1, sql[int](w, fmt.Sprintf("SELECT count(*) FROM orders WHERE room = '%s'", "committed")))
	})
}
