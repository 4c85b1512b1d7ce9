package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// straight enters with a fresh grant, as somebody does whom nobody bars.
func (f *fixture) straight(member string) queue.Standing {
	f.Helper()
	f.ids++
	st, err := f.EnterWith(f.Context(), f.room, member, queue.Entry{Grant: fmt.Sprintf("s%d", f.ids), Asked: f.clock})
	require.NoError(f, err, "enter %s", member)
	return st
}

// set puts changed rules in force.
func (f *fixture) set(change func(*queue.Rules)) {
	f.Helper()
	change(&f.life.Rules)
	f.life.Version++
	require.NoError(f, f.Update(f.Context(), f.life))
}

func direct(r *queue.Rules) { r.Direct = true }

func TestWhoEntersWhileNobodyWaitsIsLetStraightIn(t *testing.T) {
	f := setup(t, direct)
	f.tick()
	st := f.straight("ann")
	require.Equal(t, queue.Ready, st.Status)
	require.True(t, st.New)
	require.Equal(t, "s1", st.Grant.ID)
	require.Equal(t, st.Place, st.Grant.Place)
	g := f.pickUp("ann")
	require.NoError(t, f.Claim(t.Context(), g, "c1", time.Second), "the grant is as good as any")
	s := f.snap()
	require.EqualValues(t, 1, s.Lanes[0].Admitted)
	require.Equal(t, st.Place.Score, s.Lanes[0].Watermark)
	require.EqualValues(t, 1, s.Counters["entered"])
	f.conserved()
}

func TestEnteringAgainGivesNoSecondGrantAndChargesNothing(t *testing.T) {
	f := setup(t, direct)
	f.tick()
	first := f.straight("ann")
	before := f.dump()
	f.pass(time.Millisecond)
	again := f.straight("ann")
	require.False(t, again.New)
	require.Equal(t, first.Grant.ID, again.Grant.ID)
	require.Equal(t, before["state"], f.dump()["state"])
	f.set(func(r *queue.Rules) { r.Direct = false })
	f.enter("bob")
	f.set(direct)
	f.pass(time.Second)
	require.Equal(t, queue.Waiting, f.straight("bob").Status, "whoever has a place keeps it")
}

func TestNobodyIsLetStraightInPastWhoWaits(t *testing.T) {
	f := setup(t, direct)
	f.tick()
	f.enter("ann")
	require.Equal(t, queue.Waiting, f.straight("bob").Status)
	require.Len(t, f.reserve().Taken, 2)
	require.Equal(t, queue.Waiting, f.straight("cy").Status, "those taken have been told that they wait, and may come back")
}

func TestStraightInIsChargedToTheSameBucket(t *testing.T) {
	f := setup(t, direct, func(r *queue.Rules) { r.Batch = 5 })
	f.tick()
	in := 0
	for i := range 200 {
		st := f.straight(fmt.Sprint("m", i))
		if st.Status == queue.Waiting {
			require.Equal(t, 5, in, "a full bucket, and no more")
			break
		}
		in++
	}
	f.pass(time.Second)
	require.Len(t, f.tick(), 1)
	f.pass(time.Second)
	for i := range 5 {
		require.Equal(t, queue.Ready, f.straight(fmt.Sprint("n", i)).Status)
	}
	require.Equal(t, queue.Waiting, f.straight("late").Status)
	require.Empty(t, f.tick(), "a tick finds the bucket as empty as enter has left it")
}

func TestStraightInKeepsTheBatchThatTheLastTickSaid(t *testing.T) {
	f := setup(t, direct)
	require.Equal(t, queue.Waiting, f.straight("early").Status, "before the first tick nobody has said how fast")
	f.tick()
	f.step.Seq++
	_, err := f.Reserve(t.Context(), f.room, f.step, queue.Take{Keep: f.step.Seq, Effective: 2, Max: 500})
	require.NoError(t, err)
	f.pass(time.Second)
	require.Equal(t, queue.Ready, f.straight("a").Status)
	require.Equal(t, queue.Ready, f.straight("b").Status)
	require.Equal(t, queue.Waiting, f.straight("c").Status, "the controller has told it to go slow")
}

func TestStraightInKeepsABatchThatIsSmallerThanTheLastTicks(t *testing.T) {
	f := setup(t, direct)
	f.tick()
	f.set(func(r *queue.Rules) { r.Batch = 1 })
	require.Equal(t, queue.Ready, f.straight("a").Status)
	require.Equal(t, queue.Waiting, f.straight("b").Status)
}

func TestStraightInKeepsTheCapacity(t *testing.T) {
	f := setup(t, direct, func(r *queue.Rules) { r.Capacity = 2 })
	f.tick()
	f.straight("ann")
	f.straight("bob")
	g := f.pickUp("ann")
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	require.Equal(t, queue.Waiting, f.straight("cy").Status)
	_, err := f.Consume(t.Context(), f.room, []queue.Spent{{Member: "ann", Grant: g.ID, Order: "o"}})
	require.NoError(t, err)
	require.Equal(t, queue.Waiting, f.straight("dan").Status, "cy waits for that place")
	require.Equal(t, []string{"cy"}, f.tick())
}

func TestNobodyIsLetStraightInWhileTheRoomLetsNobodyThrough(t *testing.T) {
	for name, change := range map[string]func(*queue.Rules){
		"not asked for":   func(r *queue.Rules) { r.Direct = false },
		"paused":          func(r *queue.Rules) { r.Paused = true },
		"before admitsAt": func(r *queue.Rules) { r.AdmitsAt = start.Add(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, direct)
			f.tick()
			f.set(change)
			require.Equal(t, queue.Waiting, f.straight("ann").Status)
		})
	}
	t.Run("settling after a loss", func(t *testing.T) {
		f := setup(t, direct)
		f.life.Generation, f.step.Generation = 8, 8
		require.NoError(t, f.Create(t.Context(), f.life))
		f.tick()
		require.Equal(t, queue.Waiting, f.straight("ann").Status)
	})
}

func TestAGrantByEnteringThatNobodyFetchesKeepsThePlace(t *testing.T) {
	f := setup(t, direct)
	f.tick()
	at := f.straight("ann").Place
	f.pass(30 * time.Second)
	require.Equal(t, 1, f.reap().Away)
	f.enter("bob")
	st := f.standing("ann")
	require.Equal(t, queue.Waiting, st.Status)
	require.Equal(t, at, st.Place)
	require.Equal(t, []string{"ann", "bob"}, f.tick())
	f.conserved()
}

func TestAGrantOfSeveralWordsIsNotGiven(t *testing.T) {
	f := setup(t, direct)
	f.tick()
	before := f.dump()
	_, err := f.EnterWith(t.Context(), f.room, "ann", queue.Entry{Grant: "g x", Asked: f.clock})
	require.ErrorContains(t, err, "not one word")
	require.Equal(t, before, f.dump())
}

// switchedOff is a room that is off, whatever else it says.
func switchedOff(r *queue.Rules) { r.Off = true }

func TestARoomThatIsOffPassesEverybodyAtOnceAndCounts(t *testing.T) {
	f := setup(t, switchedOff, func(r *queue.Rules) {
		r.Batch, r.Capacity, r.OpensAt, r.AdmitsAt = 1, 1, start.Add(time.Hour), start.Add(2*time.Hour)
	})
	before := f.dump()["state"].(map[string]string)["tat"]
	for i := range 100 {
		require.Equal(t, queue.Ready, f.straight(fmt.Sprint("m", i)).Status)
	}
	s := f.snap()
	require.EqualValues(t, 100, s.Counters["passed_off"])
	require.EqualValues(t, 100, s.Lanes[0].Admitted)
	require.Equal(t, queue.Off, s.State(s.Now))
	require.Equal(t, before, f.dump()["state"].(map[string]string)["tat"], "the rate is not charged")
	f.conserved()
}

func TestThoseWhoAreAwayDoNotFillARoomThatIsOff(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.MaxWaiting = 2 })
	f.enter("ann", "bob")
	f.tick()
	f.pass(30 * time.Second)
	require.Equal(t, 2, f.reap().Away)
	_, err := f.EnterWith(t.Context(), f.room, "cy", queue.Entry{Grant: "g", Asked: f.clock})
	require.ErrorIs(t, err, queue.ErrFull)
	f.set(switchedOff)
	require.Equal(t, queue.Ready, f.straight("cy").Status)
}

func TestOffEmptiesALineOfAThousandInOrder(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch, r.Capacity = 10, 10 })
	f.enterMany(0, 1000)
	require.Len(t, f.tick(), 10)
	tat := f.dump()["state"].(map[string]string)["tat"]
	f.set(switchedOff)
	require.Equal(t, queue.Waiting, f.straight("late").Status, "not past those in line")
	got := f.tick()
	require.Len(t, got, 991)
	for i, m := range got[:990] {
		require.Equal(t, fmt.Sprintf("m%05d", 10+i), m)
	}
	require.Equal(t, "late", got[990])
	require.EqualValues(t, 991, f.snap().Counters["passed_off"])
	require.Equal(t, tat, f.dump()["state"].(map[string]string)["tat"])
	require.Equal(t, queue.Ready, f.straight("later").Status)

	f.set(func(r *queue.Rules) { r.Off = false })
	f.enterMany(1000, 1020)
	f.pass(time.Second)
	require.Empty(t, f.tick(), "1,001 are inside: over the capacity until they have gone")
	f.conserved()
}

func TestOffLetsThoseInLineThroughWhateverTheTimesSay(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	f.set(func(r *queue.Rules) { r.AdmitsAt = start.Add(time.Hour) })
	require.Empty(t, f.tick())
	f.set(switchedOff)
	require.Equal(t, []string{"ann"}, f.tick())
}

// What was taken while the room was off stays free, also where the room is on
// again before it is issued: charged at once it would run the bucket over.
func TestWhatWasTakenWhileOffIsNotChargedLater(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 10 })
	f.enterMany(0, 300)
	f.set(switchedOff)
	r := f.reserve()
	require.Len(t, r.Taken, 300)
	f.set(func(r *queue.Rules) { r.Off = false })
	require.Len(t, f.grantAll(r), 300)
	require.EqualValues(t, 300, f.snap().Counters["passed_off"])
	f.enterMany(300, 330)
	require.Len(t, f.tick(), 10, "the bucket is as it was")
	require.EqualValues(t, 300, f.snap().Counters["passed_off"])
}

func TestPauseAndDrainWinOverOff(t *testing.T) {
	f := setup(t, switchedOff)
	f.enter("ann")
	f.set(func(r *queue.Rules) { r.Paused = true })
	require.Empty(t, f.tick())
	require.Equal(t, queue.Waiting, f.straight("bob").Status)
	require.Equal(t, queue.Paused, f.life.Rules.State(start, start, false))
	f.set(func(r *queue.Rules) { r.Paused, r.Draining = false, true })
	_, err := f.EnterWith(t.Context(), f.room, "cy", queue.Entry{Grant: "g", Asked: f.clock})
	require.ErrorIs(t, err, queue.ErrClosed)
	require.Equal(t, []string{"ann", "bob"}, f.tick())
	require.Zero(t, f.snap().Counters["passed_off"], "a room that drains does so at its rate")
}

func TestNobodyIsLetThroughBeforeTheRoomOpens(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	f.set(func(r *queue.Rules) { r.OpensAt = start.Add(time.Minute) })
	require.Empty(t, f.tick())
	f.keepHearing(time.Minute)
	require.Equal(t, []string{"ann"}, f.tick())
}

func TestAFullRoomThatIsEagerIsAskedAgainSoon(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Capacity, r.Interval = 1, 2*time.Second })
	f.enterMany(0, 10)
	require.Len(t, f.tick(), 1)
	require.Equal(t, 500*time.Millisecond, f.reserve().Wait)
	f.set(func(r *queue.Rules) { r.Eager = true })
	require.Equal(t, 20*time.Millisecond, f.reserve().Wait)
}

// A pause of an hour: whoever polls keeps the place, and whoever does not has it
// when they come back.
func TestAPauseEvictsNobody(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 2 })
	f.enterMany(0, 6)
	require.Equal(t, []string{"m00000", "m00001"}, f.tick())
	g := f.pickUp("m00000")
	f.set(func(r *queue.Rules) { r.Paused = true })
	require.NoError(t, f.Claim(t.Context(), g, "c", time.Minute), "who has a token may order")
	for range 30 {
		f.reap()
		f.reserve()
		f.keepHearing(time.Minute, "m00002", "m00003", "m00004")
	}
	s := f.snap()
	require.Zero(t, s.Counters["evicted"]+s.Counters["left"])
	f.set(func(r *queue.Rules) { r.Paused = false })
	require.Equal(t, queue.Waiting, f.status("m00004"))
	require.Equal(t, []string{"m00002", "m00003"}, f.tick())
	f.conserved()
}

// The driver sends a call again whose answer was lost, and a network may keep a
// copy for long: for two more stays of the member, or until a loss is over.
func TestALateCopyOfAnEnterBringsNoGrantBack(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Direct, r.Batch, r.Settle = true, 10, 0 })
	f.tick()
	copied := queue.Entry{Asked: f.clock}
	for range 2 {
		f.pass(time.Second)
		require.Equal(t, queue.Ready, f.straight("ann").Status, "who is quick to come again is let straight in")
		g := f.pickUp("ann")
		if copied.Grant == "" {
			copied.Grant = g.ID
		}
		f.pass(time.Second)
		_, err := f.Consume(t.Context(), f.room, []queue.Spent{{Member: "ann", Grant: g.ID, Order: "o"}})
		require.NoError(t, err)
	}
	comesLate := func() queue.Status {
		f.pass(time.Second)
		st, err := f.EnterWith(t.Context(), f.room, "ann", copied)
		require.NoError(t, err)
		return st.Status
	}
	require.Equal(t, queue.Waiting, comesLate(), "a grant never comes back")
	f.life.Generation++
	require.NoError(t, f.Create(t.Context(), f.life))
	f.step = queue.Step{Generation: f.life.Generation, Term: f.step.Term + 1, Leader: f.step.Leader, Seq: 1}
	f.tick()
	require.Equal(t, queue.Waiting, comesLate(), "nor into another generation")
}
