package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

func members(r queue.Reservation) []string {
	var out []string
	for _, c := range r.Taken {
		out = append(out, c.Member)
	}
	return out
}

func TestReserveTakesTheFirstInOrder(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 3 })
	f.enter("ann", "bob", "cy", "dan")
	r := f.reserve()
	require.Equal(t, []string{"ann", "bob", "cy"}, members(r))
	require.False(t, r.More)
	require.EqualValues(t, 1, r.Version)
	require.Equal(t, []int64{0}, r.Watermarks)
	require.Equal(t, start.UnixMicro()+3, r.LastScore)
	for _, m := range []string{"ann", "bob", "cy"} {
		st := f.standing(m)
		require.Equal(t, queue.Waiting, st.Status, "processing shows as WAITING")
		require.Zero(t, st.Rank)
		require.LessOrEqual(t, st.Rank+1, st.Total)
	}
	f.conserved()
}

func TestOneTickIssuesNoMoreThanTheBatch(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 200)
	require.Len(t, f.tick(), 50)
	require.Empty(t, f.tick(), "the same instant")
	f.pass(time.Second)
	got := f.tick()
	require.Len(t, got, 50)
	require.Equal(t, "m00050", got[0])
	f.conserved()
}

func TestABatchOf10000IsFilledInOneTick(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 10_000 })
	f.enterMany(0, 10_050)
	got := f.tick()
	require.Equal(t, 10_000, len(got))
	require.True(t, slices.IsSorted(got))
	require.Empty(t, f.tick())
}

func TestReserveSaysHowLongToWait(t *testing.T) {
	f := setup(t)
	require.Equal(t, 500*time.Millisecond, f.reserve().Wait, "nobody waits")
	f.enterMany(0, 200)
	require.Len(t, f.tick(), 50)
	require.Equal(t, 500*time.Millisecond, f.reserve().Wait, "until half a batch is allowed")
	f.pass(500 * time.Millisecond)
	require.Len(t, f.tick(), 25)
	f.pass(499 * time.Millisecond)
	require.Equal(t, time.Millisecond, f.reserve().Wait)
}

func TestAShortLineDoesNotWaitForHalfABatch(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 51)
	require.Len(t, f.tick(), 50)
	require.Equal(t, 20*time.Millisecond, f.reserve().Wait, "one waits: one is enough")
	f.pass(20 * time.Millisecond)
	require.Len(t, f.tick(), 1)
}

func TestTheBucketDoesNotSaveUp(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 500)
	f.tick()
	f.pass(time.Hour)
	require.NoError(t, f.Heard(t.Context(), f.room, nil))
	require.Len(t, f.tick(), 50, "a burst after a pause is one batch")
}

func TestTheRateIsExactOverAnHour(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 7; r.Interval = 3 * time.Second; r.MaxWaiting = 1 << 30 })
	total, entered := 0, 0
	for range 1200 {
		for entered < total+30 {
			f.enter(fmt.Sprint("m", entered))
			entered++
		}
		total += len(f.tick())
		f.pass(3 * time.Second)
	}
	require.InDelta(t, 7*1200, total, 7, "no remainder is lost, none is made")
}

func TestReserveDoesNotCharge(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 100)
	require.Len(t, f.reserve().Taken, 50)
	f.pass(6 * time.Second) // its scheduler died; they go back and cost nothing
	require.Equal(t, 50, f.reap().Returned)
	got := f.tick()
	require.Len(t, got, 50)
	require.Equal(t, "m00000", got[0], "to their old places")
	f.conserved()
}

func TestWhatIsInProcessingCountsAgainstTheRate(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 200)
	f.reserve()
	f.step.Seq++
	r, err := f.Reserve(t.Context(), f.room, f.step, queue.Take{Keep: 1, Effective: 50, Max: 500})
	require.NoError(t, err)
	require.Empty(t, r.Taken)
	require.Positive(t, r.Wait)
}

func TestRepeatedReserveAnswersTheSame(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 100)
	first := f.reserve()
	require.Equal(t, members(first), members(f.take(f.step)), "a lost reply")
	f.grantAll(first)
	require.Empty(t, f.take(f.step).Taken, "issued since")
}

func TestStaleSteps(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 200)
	take := queue.Take{Keep: 1, Effective: 50, Max: 10}
	call := func(term int64, leader string, seq int64) error {
		_, err := f.Reserve(t.Context(), f.room, queue.Step{Generation: 7, Term: term, Leader: leader, Seq: seq}, take)
		return err
	}
	require.NoError(t, call(5, "a", 3))
	before := f.dump()
	require.Equal(t, queue.StaleError{Term: 5}, unwrapAll(call(4, "b", 9)), "an older term")
	require.Equal(t, queue.StaleError{Term: 5}, unwrapAll(call(5, "b", 9)), "the same term of another leader")
	require.Equal(t, queue.StaleError{Term: 5}, unwrapAll(call(5, "a", 2)), "an older step")
	require.Equal(t, before, f.dump(), "I12: a stale step changes nothing")
	require.NoError(t, call(6, "b", 1))
	require.Equal(t, queue.StaleError{Term: 6}, unwrapAll(call(5, "a", 4)))
}

func TestANewTermTakesOverWhatTheOldOneHeld(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 60)
	old := f.step
	old.Seq++
	taken := f.take(old)
	f.step = queue.Step{Generation: 7, Term: 2, Leader: "b"}
	require.Equal(t, members(taken), f.tick(), "the same members, to the new leader")
	var ds []queue.Decision
	for _, c := range taken.Taken {
		ds = append(ds, queue.Decision{Member: c.Member, Grant: "old"})
	}
	before := f.dump()
	_, err := f.Issue(t.Context(), f.room, old, ds)
	require.Equal(t, queue.StaleError{Term: 2}, unwrapAll(err))
	require.Equal(t, before, f.dump(), "an old term's issue changes nothing")
}

func TestIssueIsChargedOnce(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 200)
	r := f.reserve()
	f.grantAll(r)
	tat := f.rdb.HGet(t.Context(), f.key("state"), "tat").Val()
	f.ids = 0
	f.grantAll(r) // the same ids again: a lost reply
	require.Equal(t, tat, f.rdb.HGet(t.Context(), f.key("state"), "tat").Val())
	require.EqualValues(t, 50, f.snap().Lanes[0].Admitted)
	require.Equal(t, r.Taken[49].Place.Score, f.snap().Lanes[0].Watermark)
}

func TestIssueOfWhatIsNotInProcessingIsGone(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	f.step.Seq++
	f.take(f.step)
	issued, err := f.Issue(t.Context(), f.room, f.step, []queue.Decision{{Member: "bob", Grant: "g"}})
	require.NoError(t, err)
	require.Equal(t, queue.Issued{Gone: 1}, issued)
	older := f.step
	older.Seq--
	issued, err = f.Issue(t.Context(), f.room, older, []queue.Decision{{Member: "ann", Grant: "g"}})
	require.NoError(t, err)
	require.Equal(t, queue.Issued{Gone: 1}, issued, "taken by another step")
}

func TestRefusedMembersAreNotCharged(t *testing.T) {
	f := setup(t)
	f.enterMany(0, 400)
	refused, admitted := 0, 0
	for range 10 {
		r := f.reserve()
		var ds []queue.Decision
		for _, c := range r.Taken {
			d := queue.Decision{Member: c.Member}
			if c.Member >= "m00300" {
				f.ids++
				d.Grant = fmt.Sprint("g", f.ids)
			}
			ds = append(ds, d)
		}
		issued, err := f.Issue(t.Context(), f.room, f.step, ds)
		require.NoError(t, err)
		refused, admitted = refused+issued.Refused, admitted+issued.Granted
	}
	require.Equal(t, 300, refused, "300 refused at the head do not hold up the line")
	require.Equal(t, 50, admitted)
	require.Equal(t, queue.OutcomeEvicted, f.standing("m00000").Outcome)
	f.conserved()
}

// Case 4, aws-solutions/virtual-waiting-room-on-aws#265: an order frees its slot
// at once, and not when its token would have ended.
func TestCapacityIsNeverExceeded(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Capacity = 10 })
	f.enterMany(0, 30)
	require.Len(t, f.tick(), 10)
	r := f.reserve()
	require.Empty(t, r.Taken)
	require.Equal(t, 250*time.Millisecond, r.Wait)
	g := f.pickUp("m00000")
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	f.pass(time.Second)
	require.Empty(t, f.tick(), "a claimed grant holds its place")
	_, err := f.Consume(t.Context(), f.room, spent(g))
	require.NoError(t, err)
	require.EqualValues(t, 9, f.snap().Ready+f.snap().Claimed)
	require.Equal(t, []string{"m00010"}, f.tick(), "a consumed place goes to the next at the next tick")
	s := f.snap()
	require.EqualValues(t, 10, s.Ready+s.Claimed+s.Processing)
}

func TestNobodyIsLetThroughWhile(t *testing.T) {
	later := start.Add(time.Minute)
	for name, change := range map[string]func(*queue.Rules){
		"paused":          func(r *queue.Rules) { r.Paused = true },
		"before admitsAt": func(r *queue.Rules) { r.AdmitsAt = later },
		"after closesAt":  func(r *queue.Rules) { r.ClosesAt = start.Add(time.Microsecond) },
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, change)
			f.enter("ann")
			f.pass(time.Second)
			require.Empty(t, f.tick())
			require.Equal(t, queue.Waiting, f.status("ann"), "nobody loses the place")
		})
	}
	t.Run("but draining serves those in line after closesAt", func(t *testing.T) {
		f := setup(t, func(r *queue.Rules) { r.ClosesAt = later })
		f.enter("ann")
		f.life.Version, f.life.Rules.Draining = 2, true
		require.NoError(t, f.Update(t.Context(), f.life))
		f.pass(2 * time.Minute)
		require.Equal(t, []string{"ann"}, f.tick())
	})
}

func TestAGrantNobodyPicksUpCostsNobodyThePlace(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 1 })
	f.enter("ann")
	place := f.standing("ann").Place
	f.tick()
	f.enter("bob")
	f.pass(31 * time.Second)
	require.Equal(t, 1, f.reap().Away)
	f.conserved()
	st := f.standing("ann") // her next poll
	require.Equal(t, queue.Waiting, st.Status)
	require.Equal(t, place, st.Place)
	require.Zero(t, st.Rank, "ahead of all who entered later")
	require.Equal(t, []string{"ann"}, f.tick(), "READY again at the next tick")
	f.conserved()
}

func TestClockStepsCostAtMostOneBatch(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			f := setup(t)
			f.enterMany(0, 1000)
			total := len(f.tick())
			f.pass(step)
			for range 20 {
				total += len(f.tick())
				f.pass(100 * time.Millisecond)
			}
			require.LessOrEqual(t, total, 2*50+2*50, "I10: two seconds, one batch, one more for the step")
			require.GreaterOrEqual(t, total, 100, "grants go on within two intervals")
			f.conserved()
		})
	}
}

func TestStepBackBoundsEveryStoredTime(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 2 })
	f.enter("ann", "bob", "cy")
	f.tick()
	ann := f.pickUp("ann")
	require.NoError(t, f.Claim(t.Context(), ann, "c", 15*time.Second))
	f.pickUp("bob")
	f.pass(-time.Hour + 300*time.Millisecond)
	f.reap()
	bob := f.standing("bob").Grant.Expiry
	require.LessOrEqual(t, bob.Sub(f.clock), 300*time.Second)
	require.Zero(t, bob.Nanosecond(), "whole seconds: a token is signed from it")
	require.LessOrEqual(t, f.standing("ann").Grant.Expiry.Sub(f.clock), 300*time.Second, "also of a claimed grant")
	f.pass(16 * time.Second)
	require.Equal(t, queue.Ready, f.status("ann"), "her claim lapses by its own lease, not an hour later")
	f.pass(301 * time.Second)
	require.Equal(t, queue.OutcomeExpired, f.standing("bob").Outcome)
}

func TestADamagedGrantStopsAnIssueBeforeItWrites(t *testing.T) {
	f := setup(t)
	f.enter("ann", "bob")
	require.Len(t, f.reserve().Taken, 2)
	require.NoError(t, f.rdb.HSet(t.Context(), f.key("grants"), "eve", "rubbish").Err())
	before := f.dump("state")
	_, err := f.Issue(t.Context(), f.room, f.step, []queue.Decision{{Member: "ann"}, {Member: "bob", Grant: "g1"}, {Member: "eve", Grant: "g2"}})
	require.ErrorIs(t, err, queue.ErrDamaged)
	require.Equal(t, before, f.dump("state"))
}

func TestStrideSharesExactlyAndAnIdleLaneSavesNoCredit(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 10; r.Weights = []int{7, 3} })
	enter := func(lane, from, to int) {
		for i := from; i < to; i++ {
			_, err := f.Enter(t.Context(), f.room, fmt.Sprintf("%d-%03d", lane, i), lane)
			require.NoError(t, err)
		}
	}
	count := func(got []string) (first int) {
		for _, m := range got {
			if m[0] == '0' {
				first++
			}
		}
		return first
	}
	enter(1, 0, 100)
	require.Zero(t, count(f.tick()), "one lane empty: all of the other")
	enter(0, 0, 100)
	for range 5 {
		f.pass(time.Second)
		got := f.tick()
		require.Len(t, got, 10)
		require.Equal(t, 7, count(got))
	}
}
