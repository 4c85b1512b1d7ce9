package e2e

import (
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
	require.Greater(t, sweeps, 1, "they were let through all at once")
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
