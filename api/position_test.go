package api_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

func of[T any](v T) *T { return &v }

// unpredictable are the fields that hold chance, a signature or the moment;
// each has a test of its own.
var unpredictable = cmpopts.IgnoreFields(spec.Position{}, "NextPollAfterMs", "ServerTime", "QueueTicket", "EntryToken")

// shows compares a position with what it should be, field by field.
func (f *fixture) shows(got, want spec.Position) {
	f.t.Helper()
	want.Room, want.RoomState = f.room, queue.Open
	require.Empty(f.t, cmp.Diff(want, got, unpredictable), "-want +got of a member who is %s", want.Status)
	require.WithinDuration(f.t, f.now(), got.ServerTime, 10*time.Second, "the clock is that of Redis")
	require.Equal(f.t, got.Status == queue.Ready || got.Status == queue.Claimed, got.EntryToken != nil)
}

// at is the part of a position that says where a place is.
func at(score int64, p spec.Position) spec.Position {
	p.Score, p.EnteredAt, p.Lane = &score, of(time.UnixMicro(score).UTC()), of("standard")
	p.Lifted, p.Overtakable = of(false), of(false)
	return p
}

func TestEveryFieldOfAPositionFollowsTheStatus(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first := f.post().is(http.StatusCreated).position()
	require.NotNil(t, first.QueueTicket)
	ann, score := *first.QueueTicket, start.UnixMicro()
	waiting := at(score, spec.Position{Status: queue.Waiting, Rank: of(int64(0)), CurrentTotalWaitingCount: of(int64(1)), PollingIntervalSeconds: 1})
	f.shows(first, waiting)
	f.shows(f.post(ticket(ann)).is(http.StatusOK).position(), waiting)
	behind := f.post().is(http.StatusCreated).position()
	f.shows(behind, at(score+1, spec.Position{Status: queue.Waiting, Rank: of(int64(1)), CurrentTotalWaitingCount: of(int64(2)), PollingIntervalSeconds: 1}))

	taken := f.reserve()
	require.Len(t, taken, 2)
	processing := f.serve().poll(ann)
	f.shows(processing, waiting)
	require.Nil(t, processing.QueueTicket, "a ticket that is good is not renewed")

	f.issue(taken)
	f.pass(500 * time.Millisecond)
	expiry := start.Add(300 * time.Second).UTC()
	ready := at(score, spec.Position{Status: queue.Ready, EntryTokenExpiresAt: &expiry, PollingIntervalSeconds: 5})
	got := f.poll(ann)
	f.shows(got, ready)
	entry := *got.EntryToken
	f.pass(100 * time.Second)
	got = f.serve().poll(ann)
	f.shows(got, ready) // I17: asking again lengthens nothing
	require.Equal(t, entry, *got.EntryToken)

	g, err := f.ring.Grant(entry)
	require.NoError(t, err)
	require.Equal(t, score, g.Place.Score)
	require.NoError(t, f.line.Claim(t.Context(), g, "attempt", 15*time.Second))
	claimed := at(score, spec.Position{Status: queue.Claimed, EntryTokenExpiresAt: &expiry, PollingIntervalSeconds: 1})
	got = f.serve().poll(ann)
	f.shows(got, claimed)
	require.Equal(t, entry, *got.EntryToken, "a retry of the order needs it")

	order := uuid.NewString()
	_, err = f.line.Consume(t.Context(), f.room, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: order}})
	require.NoError(t, err)
	f.shows(f.serve().poll(ann), spec.Position{Status: queue.Consumed, OrderID: &order, PollingIntervalSeconds: 5})
	f.pass(time.Hour)
	f.shows(f.serve().poll(ann), spec.Position{Status: queue.NotEntered, LastOutcome: of(queue.OutcomeConsumed), PollingIntervalSeconds: 5})
}

// TestALastOutcomeIsTold has each way in which a stay ends, but for orders and
// flushes.
func TestALastOutcomeIsTold(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.ForgetAfterSeconds = 60 }))
	ended := func(text string, o queue.Outcome) {
		t.Helper()
		f.shows(f.serve().poll(text), spec.Position{Status: queue.NotEntered, LastOutcome: &o, PollingIntervalSeconds: 5})
	}

	left := f.enter()
	f.leave(ticket(left)).is(http.StatusNoContent)
	ended(left, queue.OutcomeLeft)
	f.leave(ticket(left)).is(http.StatusNoContent)

	evicted := f.enter()
	c, err := f.ring.Ticket(evicted)
	require.NoError(t, err)
	_, err = f.line.Leave(t.Context(), f.room, c.Member, 0, queue.OutcomeEvicted)
	require.NoError(t, err)
	ended(evicted, queue.OutcomeEvicted)

	expired, _ := f.ready()
	f.pass(301 * time.Second)
	ended(expired, queue.OutcomeExpired)

	forgotten := f.enter()
	require.Equal(t, 1, f.tick())
	for range 20 { // the grant waits 30 s to be fetched, then the place 60 s
		f.pass(5 * time.Second)
		require.NoError(t, f.line.Heard(t.Context(), f.room, nil))
		_, err = f.line.Reap(t.Context(), f.room)
		require.NoError(t, err)
	}
	ended(forgotten, queue.OutcomeForgotten)
}

func TestAMemberWhoIsAwayIsShownAsWaiting(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann := f.enter()
	require.Equal(t, 1, f.tick())
	f.pass(31 * time.Second) // nobody has fetched the grant
	_, err := f.line.Reap(t.Context(), f.room)
	require.NoError(t, err)
	snapshot, err := f.line.Snapshot(t.Context(), f.room)
	require.NoError(t, err)
	require.EqualValues(t, 1, snapshot.Away)
	f.shows(f.serve().poll(ann), at(start.UnixMicro(), spec.Position{Status: queue.Waiting, Rank: of(int64(0)),
		CurrentTotalWaitingCount: of(int64(1)), PollingIntervalSeconds: 1}))
}

func TestWhoNeverEnteredIsToldSo(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) {
		s.EnterNeedsTicket = true
		s.Message = map[string]string{"en": "soon"}
	}))
	stranger := *f.post().is(http.StatusOK).position().QueueTicket
	f.shows(f.poll(stranger), spec.Position{Status: queue.NotEntered, PollingIntervalSeconds: 5, Message: spec.Message{"en": "soon"}})
}

// TestTheTotalIsNeverBelowTheRank is about a process that has read the room's
// sizes before others came.
func TestTheTotalIsNeverBelowTheRank(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	old, err := f.line.Snapshot(t.Context(), f.room)
	require.NoError(t, err)
	late := f.serve(func(o *api.Options) { o.Snapshots = frozen{f.line, old} })
	f.crowd(5)
	ann := late.enter()
	p := late.poll(ann)
	require.EqualValues(t, 5, *p.Rank)
	require.EqualValues(t, 6, *p.CurrentTotalWaitingCount, "I19: at least rank + 1, whatever the room's view says")
	f.crowd(1)
	p = f.serve().poll(ann)
	require.EqualValues(t, 6, *p.Rank)
	require.EqualValues(t, 7, *p.CurrentTotalWaitingCount)
}

func TestPollsAreSpreadAndBoundedNearTheFront(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		batch, ahead       int
		low, high, seconds int
	}{
		"at the front":                        {1, 0, 800, 1200, 1},
		"not far behind":                      {1, 150, 2400, 3333, 3}, // a third of pickupTtl cuts the spread off
		"far behind, and soon served":         {50, 1000, 2666, 3333, 4},
		"behind the horizon, nobody need ask": {1, 1000, 4000, 6000, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t, settings(func(s *room.Settings) { s.BatchSize, s.PickupTTLSeconds = c.batch, 10 }))
			f.crowd(c.ahead)
			ann := f.enter()
			least, most := 1<<30, 0
			for range 40 {
				a := f.get(ticket(ann)).is(http.StatusOK)
				p := a.position()
				require.EqualValues(t, c.ahead, *p.Rank)
				require.Equal(t, c.seconds, p.PollingIntervalSeconds)
				require.Equal(t, strconv.Itoa((p.NextPollAfterMs+999)/1000), a.header.Get("Retry-After"))
				least, most = min(least, p.NextPollAfterMs), max(most, p.NextPollAfterMs)
			}
			require.GreaterOrEqual(t, least, c.low)
			require.LessOrEqual(t, most, c.high)
			require.Greater(t, most-least, (c.high-c.low)/4, "polls that are not spread come at once")
		})
	}
}

// answerOf waits until the process has read the room anew.
func (f *fixture) answerOf(text string) spec.Position {
	f.t.Helper()
	var p spec.Position
	f.eventually("an answer of this moment", func() bool {
		p = f.poll(text)
		return !p.ServerTime.Before(f.now())
	})
	return p
}

func TestTheEstimatedWaitIsMeasured(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.BatchSize = 10 }))
	f.crowd(300)
	ann := f.enter()
	require.Nil(t, f.answerOf(ann).EstimatedWaitSeconds, "nothing is measured yet")
	f.pass(250 * time.Millisecond)
	require.Positive(t, f.tick())
	require.Nil(t, f.answerOf(ann).EstimatedWaitSeconds, "the first quarter of a second says nothing: a batch comes at once")
	near := func(p spec.Position) {
		t.Helper()
		require.NotNil(t, p.EstimatedWaitSeconds)
		seconds := float64(*p.Rank+1) / 10
		require.InEpsilon(t, seconds, float64(*p.EstimatedWaitSeconds), 0.15, "with %d ahead, at 10 a second", *p.Rank)
		require.Len(t, p.EstimatedWaitRange, 2)
		require.LessOrEqual(t, p.EstimatedWaitRange[0], *p.EstimatedWaitSeconds)
		require.GreaterOrEqual(t, float64(p.EstimatedWaitRange[1]), seconds, "%v, likely %d", p.EstimatedWaitRange, *p.EstimatedWaitSeconds)
	}
	for range 3 {
		for range 4 {
			f.pass(time.Second)
			require.Equal(t, 10, f.tick())
		}
		near(f.answerOf(ann))
	}

	f.change(func(s *room.Settings) { s.Paused = true })
	for range 3 {
		f.pass(10 * time.Second)
		p := f.answerOf(ann)
		require.Equal(t, queue.Paused, p.RoomState)
		require.Nil(t, p.EstimatedWaitSeconds, "nobody knows how long a pause lasts")
		require.Nil(t, p.EstimatedWaitRange)
	}
	f.change(func(s *room.Settings) { s.Paused = false })
	f.pass(time.Second)
	require.Equal(t, 10, f.tick())
	near(f.answerOf(ann)) // a pause is no measurement
}

func TestThoseWhoLeaveTheLineShortenTheEstimate(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.BatchSize = 10 }))
	f.crowd(600)
	ann := f.enter()
	f.answerOf(ann)
	for range 12 {
		// As many as are let through leave from the places before hers.
		members, err := f.rdb.ZRange(t.Context(), f.key("lane0"), -11, -2).Result()
		require.NoError(t, err)
		for _, m := range members {
			_, err := f.line.Leave(t.Context(), f.room, m, 0, queue.OutcomeLeft)
			require.NoError(t, err)
		}
		f.pass(time.Second)
		require.Equal(t, 10, f.tick())
		f.answerOf(ann)
	}
	p := f.answerOf(ann)
	require.EqualValues(t, 360, *p.Rank)
	require.InEpsilon(t, 18, float64(*p.EstimatedWaitSeconds), 0.15, "half of those ahead will leave as well")
}

func TestTheErrorOfTheEstimateIsMeasured(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var ratios []float64
	f := setUp(t, settings(func(s *room.Settings) { s.BatchSize = 10 }), options(func(o *api.Options) {
		o.Observer.Waited = func(_ string, told, waited time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			ratios = append(ratios, told.Seconds()/waited.Seconds())
		}
	}))
	f.crowd(100)
	var tickets []string
	for range 60 {
		tickets = append(tickets, f.enter())
	}
	second := func() {
		f.pass(time.Second)
		f.tick()
		f.answerOf(tickets[0])
	}
	for range 4 {
		second()
	}
	for _, text := range tickets { // who are told for the first time
		f.poll(text)
	}
	for range 14 {
		second()
	}
	for _, text := range tickets {
		f.poll(text)
	}
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, ratios, "one in eight of sixty")
	for _, r := range ratios {
		require.InDelta(t, 1, r, 0.25, "at a steady rate")
	}
}
