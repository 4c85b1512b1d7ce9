package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// again shows the ticket of a place of this generation to a room that does not
// know its member.
func (f *fixture) again(member string, at queue.Place) error {
	f.Helper()
	_, err := f.restore(member, f.life.Generation, at)
	return err
}

// I15: a ticket is good for longer than an outcome is remembered, and a line that
// stands still has no watermark that would pass it.
func TestAPlaceThatHasEndedDoesNotComeBackWhenThatIsForgotten(t *testing.T) {
	ends := map[string]func(f *fixture){
		"left": func(f *fixture) {
			_, err := f.Leave(f.Context(), f.room, "ann", 0, queue.OutcomeLeft)
			require.NoError(f, err)
		},
		"forgotten": func(f *fixture) { // silent: AWAY, and then for too long
			for range 60 {
				f.pass(5 * time.Second)
				require.NoError(f, f.Heard(f.Context(), f.room, nil))
				f.reap()
			}
			require.EqualValues(f, 2, f.snap().Away)
			for range 200 {
				f.pass(10 * time.Second)
				require.NoError(f, f.Heard(f.Context(), f.room, nil))
				f.reap()
			}
			require.Equal(f, queue.OutcomeForgotten, f.standing("ann").Outcome)
		},
	}
	steps := map[string][3]time.Duration{ // of the clock: before the enter, before and after the end
		"no step":               {},
		"an hour back at first": {-time.Hour, 0, 0},
		"an hour back before":   {0, -time.Hour, 0},
		"an hour back after":    {0, 0, -time.Hour},
		"an hour on and back":   {0, time.Hour, -time.Hour},
	}
	for end, do := range ends {
		for step, by := range steps {
			t.Run(fmt.Sprintf("%s, %s", end, step), func(t *testing.T) {
				f := setup(t, func(r *queue.Rules) { r.Paused = true })
				f.enter("bob")
				f.pass(by[0] + time.Second)
				f.enter("ann")
				at := f.standing("ann").Place
				f.pass(by[1])
				do(f)
				f.pass(by[2])
				f.reap()
				require.ErrorIs(t, f.again("ann", at), queue.ErrGone)
				f.forgetOutcome("ann")
				require.ErrorIs(t, f.again("ann", at), queue.ErrGone)
			})
		}
	}
}

// forgetOutcome lets so much time pass that nothing is left of a member.
func (f *fixture) forgetOutcome(member string) {
	f.Helper()
	f.pass(f.life.Rules.DoneTTL + f.life.Rules.ForgetAfter)
	f.reap()
	require.Empty(f, f.standing(member).Outcome, "the outcome is still remembered: this test shows nothing")
}

// A ticket can be of a time that this Redis has not reached yet.
func TestARestoredPlaceThatHasEndedDoesNotComeBackEither(t *testing.T) {
	f := afterLoss(t, 0)
	at := place((3 * time.Hour).Microseconds())
	_, err := f.restore("ann", 7, at)
	require.NoError(t, err)
	_, err = f.Leave(t.Context(), f.room, "ann", 0, queue.OutcomeLeft)
	require.NoError(t, err)
	f.forgetOutcome("ann")
	require.ErrorIs(t, f.again("ann", at), queue.ErrGone)
}

// What is forgotten says nothing of places that were made later.
func TestALostPlaceYoungerThanAllThatIsForgottenComesBack(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Paused = true })
	f.enter("ann")
	_, err := f.Leave(t.Context(), f.room, "ann", 0, queue.OutcomeLeft)
	require.NoError(t, err)
	f.pass(f.life.Rules.DoneTTL + f.life.Rules.ForgetAfter)
	f.enter("bob")
	at := f.standing("bob").Place
	f.reap()
	require.NoError(t, f.rdb.ZRem(t.Context(), f.key("lane0"), "bob").Err())
	require.NoError(t, f.again("bob", at))
	require.Equal(t, at, f.standing("bob").Place)
}

func TestWhoComesBackBehindThoseLetThroughIsCounted(t *testing.T) {
	f := afterLoss(t, 100)
	st, err := f.restore("bob", 7, place(300))
	require.NoError(t, err)
	require.False(t, st.Passed)
	f.pass(41 * time.Second)
	require.Equal(t, []string{"bob"}, f.tick())
	for member, want := range map[string]bool{"ann": true, "cy": false} {
		at := place(200)
		if !want {
			at = place(400)
		}
		st, err = f.restore(member, 7, at)
		require.NoError(t, err)
		require.Equal(t, want, st.Passed, member)
	}
	require.EqualValues(t, 1, f.snap().Counters["passed"])
	require.EqualValues(t, 3, f.snap().Counters["restored"])
}

// A ticket of before says who somebody is, and not where they stand.
func TestPollWithAnOlderTicketTellsThePlaceOfNow(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	old := f.standing("ann").Place
	_, err := f.Leave(t.Context(), f.room, "ann", 0, queue.OutcomeLeft)
	require.NoError(t, err)
	f.pass(time.Second)
	f.enter("bob", "ann")
	now := f.standing("ann").Place
	require.NotEqual(t, old, now)
	st, err := f.Poll(t.Context(), f.room, "ann", old)
	require.NoError(t, err)
	require.Equal(t, queue.Standing{Status: queue.Waiting, Place: now, Rank: 1, InLane: 1}, st)
	f.reserve()
	st, err = f.Poll(t.Context(), f.room, "ann", old)
	require.NoError(t, err)
	require.Equal(t, queue.Standing{Status: queue.Waiting, Place: now}, st, "processing")
}
