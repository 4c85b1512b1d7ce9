package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

func inLane(name string) with { return header("X-Member-Lane", name) }

// lanes makes the room one with an ordinary lane and one for VIPs.
func lanes(change ...func(*room.Settings)) func(*plan) {
	return settings(func(s *room.Settings) {
		s.Lanes = []room.Lane{{Name: "standard", Weight: 3}, {Name: "vip", Weight: 7}}
		for _, c := range change {
			c(s)
		}
	})
}

func boost(seconds int) func(*room.Settings) {
	return func(s *room.Settings) { s.Priority, s.Lanes[1].BoostSeconds = "boost", seconds }
}

func TestTheLaneIsWhatTheTrustedProxySays(t *testing.T) {
	t.Parallel()
	f := setUp(t, lanes(), options(named("127.0.0.0/8")))
	require.Equal(t, "vip", *f.post(member("ann"), inLane("vip")).is(http.StatusCreated).position().Lane)
	require.Equal(t, "standard", *f.post(member("bob")).is(http.StatusCreated).position().Lane, "the first lane is everybody's")
	require.Equal(t, "standard", *f.post(member("eve"), inLane("standard")).is(http.StatusCreated).position().Lane)

	again := f.post(member("bob"), inLane("vip")).is(http.StatusOK).position()
	require.Equal(t, "standard", *again.Lane, "the lane that is stored wins over the one asked for")
	require.Equal(t, "vip", *f.get(member("ann")).is(http.StatusOK).position().Lane)
	s, _ := f.status(f.room)
	require.Equal(t, []int64{2, 1}, []int64{s.Lanes[0].Waiting, s.Lanes[1].Waiting})
	require.Equal(t, []string{"standard", "vip"}, []string{s.Lanes[0].Name, s.Lanes[1].Name})
}

func TestALaneThatIsNotTheRoomsIsRefusedAndNobodyEnters(t *testing.T) {
	t.Parallel()
	f := setUp(t, lanes(), options(named("127.0.0.0/8")))
	for what, shown := range map[string][]with{
		"unknown":          {inLane("press")},
		"empty":            {inLane("")},
		"another case":     {inLane("VIP")},
		"an index":         {inLane("1")},
		"two":              {inLane("vip"), inLane("standard")},
		"twice the same":   {inLane("vip"), inLane("vip")},
		"two in one value": {inLane("vip, standard")},
	} {
		a := f.post(append(shown, member("ann"))...)
		require.Equal(t, http.StatusBadRequest, a.status, what)
		a.refused(http.StatusBadRequest, "bad-request")
		require.Contains(t, string(a.body), "X-Member-Lane must be one value")
	}
	require.Equal(t, queue.NotEntered, f.get(member("ann")).is(http.StatusOK).position().Status)
}

// What a client says of a lane counts for nothing: neither where members are
// anonymous, nor beside the name of a member that no trusted proxy has sent.
func TestALaneFromAClientCountsForNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t, lanes())
	p := f.post(inLane("vip")).is(http.StatusCreated).position()
	require.Equal(t, "standard", *p.Lane)
	require.Equal(t, "standard", *f.post(inLane("nonsense")).is(http.StatusCreated).position().Lane)
	f.post(body(`{"lane":"vip"}`)).refused(http.StatusBadRequest, "bad-request")

	far := f.serve(named("10.0.0.0/8"))
	far.post(member("ann"), inLane("vip")).refused(http.StatusUnauthorized, "unauthorized")
}

func TestInOneLineRanksAndTotalsAreThoseOfTheLine(t *testing.T) {
	t.Parallel()
	f := setUp(t, lanes(boost(60)), options(named("127.0.0.0/8")))
	f.post(member("ann")).is(http.StatusCreated)
	f.pass(30 * time.Second)
	f.post(member("bob")).is(http.StatusCreated)
	f.site = f.serve(named("127.0.0.0/8")) // which has not read the room yet
	vip := f.post(member("vip"), inLane("vip")).is(http.StatusCreated).position()
	require.EqualValues(t, 0, *vip.Rank, "ahead of both, by a minute")
	require.EqualValues(t, 3, *vip.CurrentTotalWaitingCount)
	require.False(t, *vip.Overtakable)
	require.WithinDuration(t, f.now(), *vip.EnteredAt, 0, "and still entered when it did")
	require.EqualValues(t, f.now().Add(-time.Minute).UnixMicro(), *vip.Score)

	polled := func(m string) spec.Position {
		a := f.post(member(m)).is(http.StatusOK).position()
		if a.QueueTicket == nil {
			return f.get(member(m)).is(http.StatusOK).position()
		}
		return f.get(member(m), ticket(*a.QueueTicket)).is(http.StatusOK).position()
	}
	f.site = f.serve(named("127.0.0.0/8"))
	for i, m := range []string{"vip", "ann", "bob"} {
		p := polled(m)
		require.EqualValues(t, i, *p.Rank, m)
		require.EqualValues(t, 3, *p.CurrentTotalWaitingCount)
		require.Equal(t, m != "vip", *p.Overtakable, m)
	}
	s, _ := f.serve(named("127.0.0.0/8")).status(f.room)
	require.Equal(t, [][]int64{{1, start.UnixMicro()}, {2, start.Add(30 * time.Second).UnixMicro()}}, s.Lanes[0].Marks)
	require.EqualValues(t, 0, s.Lanes[1].Marks[0][0])
}

// Whoever is near the front of a lane that is part of a longer line is listened
// for, and so must be heard.
func TestInOneLineWhoIsNearTheFrontOfTheLaneIsHeard(t *testing.T) {
	t.Parallel()
	f := setUp(t, lanes(boost(3600), func(s *room.Settings) { s.BatchSize, s.Paused = 1, true }), options(named("127.0.0.0/8")))
	p := f.post(member("ann")).is(http.StatusCreated).position()
	for i := range 1100 { // VIPs, all ahead of her
		_, err := f.line.Enter(t.Context(), f.room, fmt.Sprint("vip-", i), 1)
		require.NoError(t, err)
	}
	for range 4 {
		_, err := f.line.Reap(t.Context(), f.room)
		require.NoError(t, err)
	}
	heard := func() float64 {
		at, err := f.rdb.ZScore(t.Context(), f.key("seen"), "ann").Result()
		require.NoError(t, err, "the room listens for the first of a lane")
		return at
	}
	before := heard()
	f.pass(2 * time.Second)
	stop := f.run()
	got := f.get(member("ann"), ticket(*p.QueueTicket)).is(http.StatusOK).position()
	require.GreaterOrEqual(t, *got.Rank, f.life.Rules.Horizon(), "far back in the line")
	stop()
	require.Greater(t, heard(), before)
}

func TestALiftIsShown(t *testing.T) {
	t.Parallel()
	f := setUp(t, lanes(func(s *room.Settings) { s.MaxWaitSeconds, s.BatchSize = 60, 4 }), options(named("127.0.0.0/8")))
	for _, m := range []string{"ann", "bob"} {
		require.False(t, *f.post(member(m)).is(http.StatusCreated).position().Lifted)
	}
	f.pass(2 * time.Minute)
	f.post(member("vip"), inLane("vip")).is(http.StatusCreated)
	taken := f.reserve()
	require.True(t, *f.get(member("ann")).is(http.StatusOK).position().Lifted, "while processing")
	f.issue(taken)
	ann := f.get(member("ann")).is(http.StatusOK).position()
	require.Equal(t, queue.Ready, ann.Status)
	require.True(t, *ann.Lifted)
	require.False(t, *f.get(member("vip")).is(http.StatusOK).position().Lifted)
}

// In lanes, each has a pace of its own; in one line all move together.
func TestTheEstimateIsTheLanesOwnOrThatOfTheLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*room.Settings)
		seconds func(rank int64) float64
	}{
		"lanes":    {func(*room.Settings) {}, func(rank int64) float64 { return float64(rank+1) / 3 }},
		"one line": {boost(60), func(rank int64) float64 { return float64(rank+1) / 10 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t, lanes(func(s *room.Settings) { s.BatchSize = 10 }, c.change), options(named("127.0.0.0/8")))
			for i := range 300 {
				_, err := f.line.Enter(t.Context(), f.room, fmt.Sprint("m", i), i%2)
				require.NoError(t, err)
			}
			ann := *f.post(member("ann")).is(http.StatusCreated).position().QueueTicket
			show := func() spec.Position {
				var p spec.Position
				f.eventually("an answer of this moment", func() bool {
					p = f.get(member("ann"), ticket(ann)).is(http.StatusOK).position()
					return !p.ServerTime.Before(f.now())
				})
				return p
			}
			show()
			for range 10 {
				f.pass(time.Second)
				require.Equal(t, 10, f.tick())
				show()
			}
			p := show()
			require.InEpsilon(t, c.seconds(*p.Rank), float64(*p.EstimatedWaitSeconds), 0.15, "with %d ahead", *p.Rank)
		})
	}
}
