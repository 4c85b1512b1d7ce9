package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
)

// The tests of this file are what the simplest queue of this kind is expected
// to do. That a token ends with its TTL is in orders_test.go.

func TestFirstEntryReturnsRankZeroAndTheTotal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"paused": true})
	p := w.shopper().enter(a).is(201).position()
	require.EqualValues(t, 0, *p.Rank)
	require.EqualValues(t, 1, *p.CurrentTotalWaitingCount)
	p = w.shopper().enter(b).is(201).position()
	require.EqualValues(t, 1, *p.Rank)
	require.EqualValues(t, 2, *p.CurrentTotalWaitingCount)
}

func TestRepeatedEntryKeepsTheRank(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"paused": true})
	ann := w.shopper()
	first := ann.enter(a).is(201).position()
	for i := range 5 {
		w.shopper().enter(a).is(201) // others enter in between
		p := ann.enter([]*process{b, a}[i%2]).is(200).position()
		require.Equal(t, *first.Score, *p.Score)
		require.EqualValues(t, 0, *p.Rank)
	}
	require.EqualValues(t, 6, w.snapshot().Sizes["waiting"], "entering again must not count again")
	status := decoded[spec.RoomStatus](w.ask("GET", b.public+"/v1/rooms/"+room, nil, "").is(200))
	require.LessOrEqual(t, status.Waiting, int64(6))
}

func TestDistinctMembersWhoEnterAtOnceHaveDistinctRanks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"paused": true})
	ranks := make([]int64, 8)
	together(len(ranks), func(i int) {
		if p := w.shopper().enter([]*process{a, b}[i%2]).position(); p.Rank != nil {
			ranks[i] = *p.Rank
		}
	})
	slices.Sort(ranks)
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7}, ranks)
}

func TestAnswersTellWaitingReadyAndNotEnteredApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"paused": true})
	ann := w.shopper()
	ann.poll(a).is(401, "ticket-invalid") // nobody yet
	require.Equal(t, queue.Waiting, ann.enter(a).is(201).position().Status)
	w.do("resume")
	require.NotNil(t, ann.until(b, queue.Ready).EntryToken)
	ann.leave(a).is(204)
	p := ann.poll(b).is(200).position()
	require.Equal(t, queue.NotEntered, p.Status)
	require.Equal(t, queue.OutcomeLeft, *p.LastOutcome)
	require.Nil(t, p.EntryToken)
	ann.leave(b).is(204)
	ann.order(a, "demo", 1).is(401, "entry-token-invalid")
}

func TestOneTickAdmitsNoMoreThanTheBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"paused": true, "batchSize": 5, "intervalMs": 60_000})
	w.line(12, a, b)
	w.do("resume")
	w.untilSnapshot("the first batch is admitted", func(s snapshot) bool { return s.admitted() == 5 })
	w.ticks(3)
	s := w.snapshot()
	require.EqualValues(t, 5, s.admitted(), "the next are due in 36 s, however many tick")
	require.EqualValues(t, 7, s.Sizes["waiting"])
}

func TestOrderWithoutATokenIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start()
	w.open(nil)
	w.shopper().order(a, "demo", 1).is(401, "entry-token-missing")
	require.Zero(t, w.placed())
}

func TestCommittedOrderTakesTheTokenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(nil)
	ann := w.shopper()
	ann.admitted(a)
	ann.order(b, "demo", 1).is(201)
	require.Nil(t, ann.until(a, queue.Consumed).EntryToken)
	ann.order(a, "demo", 3).is(409, "entry-token-consumed")
	require.Equal(t, 1, w.placed())
}

func TestWhoHasOrderedMayEnterAgainAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(nil)
	ann := w.shopper()
	first := ann.admitted(a)
	made := ann.order(b, "demo", 1).is(201).order()
	ann.until(a, queue.Consumed)
	again := ann.enter(b).is(201).position()
	require.Greater(t, *again.Score, *first.Score)
	spent := ann.token
	ann.token = ""
	ann.until(a, queue.Ready)
	require.NotEqual(t, spent, ann.token, "a new place brings a new grant")
	require.NotEqual(t, made.ID, ann.order(b, "demo", 1).is(201).order().ID)
	require.Equal(t, 2, w.placed())
}
