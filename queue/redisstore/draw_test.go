package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// doors is when the draws of these tests end.
var doors = start.Add(time.Minute)

func drawing(r *queue.Rules) { r.Draw, r.AdmitsAt = true, doors }

// lot is the n-th key, from the front, of the sale that the tests are in.
func lot(n int64) queue.Lot { return queue.Lot{Sale: 3, First: 1<<49 + 64*n} }

func (f *fixture) enterByLot(member string, l queue.Lot) queue.Standing {
	f.Helper()
	st, err := f.EnterWith(f.Context(), f.room, member, queue.Entry{Lot: l})
	require.NoError(f, err, member)
	return st
}

func (f *fixture) draw() queue.DrawState {
	f.Helper()
	s, err := f.Snapshot(f.Context(), f.room)
	require.NoError(f, err)
	return s.Draw
}

func TestADrawnPlaceIsThatOfItsLotHoweverLateItsMemberComes(t *testing.T) {
	f := setup(t, drawing)
	f.enterByLot("third", lot(900))
	f.pass(time.Second)
	f.enterByLot("first", lot(1))
	f.enterByLot("second", lot(1)) // of the same key: the next slot
	require.Equal(t, []string{"first", "second", "third"}, f.rdb.ZRange(t.Context(), f.key("lane0"), 0, -1).Val())
	require.Equal(t, lot(1).First, f.standing("first").Place.Score)
	require.Equal(t, lot(1).First+1, f.standing("second").Place.Score)
	require.Equal(t, lot(900).First, f.enterByLot("third", lot(5)).Place.Score, "entering again changes nothing")
}

func TestADrawTakesNobodyWithoutALotOfItsSale(t *testing.T) {
	f := setup(t, drawing)
	for _, l := range []queue.Lot{{}, {Sale: 2, First: lot(1).First}} {
		_, err := f.EnterWith(t.Context(), f.room, "ann", queue.Entry{Lot: l})
		require.ErrorIs(t, err, queue.ErrGeneration)
	}
	require.Equal(t, queue.NotEntered, f.standing("ann").Status)
	for _, first := range []int64{1, lot(1).First + 1, queue.Beyond} {
		_, err := f.EnterWith(t.Context(), f.room, "ann", queue.Entry{Lot: queue.Lot{Sale: 3, First: first}})
		require.Error(t, err, "no key begins at %d", first)
	}
	f.enterByLot("ann", lot(4))
	require.Equal(t, lot(4).First, f.enterByLot("ann", queue.Lot{}).Place.Score, "who has a place is told so")
}

func TestWhoeverSeesTheEndOfADrawFirstEndsItForGood(t *testing.T) {
	for name, see := range map[string]func(f *fixture){
		"reap":    func(f *fixture) { f.reap() },
		"enter":   func(f *fixture) { f.enterByLot("late", queue.Lot{}) },
		"heard":   func(f *fixture) { require.NoError(f, f.Heard(f.Context(), f.room, nil)) },
		"reserve": func(f *fixture) { f.reserve() },
		"update": func(f *fixture) {
			f.life.Version, f.life.Rules.AdmitsAt = 2, doors.Add(time.Hour)
			require.NoError(f, f.Update(f.Context(), f.life))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, drawing)
			f.enterByLot("ann", lot(7))
			f.pass(time.Minute - time.Microsecond)
			require.Equal(t, queue.DrawOpen, f.draw())
			f.pass(time.Microsecond)
			see(f)
			f.life.Version, f.life.Rules.AdmitsAt = 3, doors.Add(time.Hour)
			require.NoError(t, f.Update(t.Context(), f.life))
			f.pass(-10 * time.Minute)
			require.Equal(t, queue.DrawClosed, f.draw(), "neither moving its end nor the clock opens it again")
			late := f.enterByLot("bob", lot(1))
			require.GreaterOrEqual(t, late.Place.Score, int64(queue.Beyond), "who comes now stands behind")
		})
	}
}

func TestNobodyIsTakenBeforeTheDrawIsListed(t *testing.T) {
	f := setup(t, drawing)
	f.enterByLot("ann", lot(7))
	require.Equal(t, queue.DrawOpen, f.reserve().Draw)
	f.pass(10 * time.Minute)
	r := f.reserve()
	require.Empty(t, r.Taken)
	require.Equal(t, queue.DrawClosed, r.Draw, "it is time to make the list")
	require.ErrorIs(t, f.Listed(t.Context(), f.room, 2), queue.ErrGeneration, "the list of another sale")
	require.Empty(t, f.reserve().Taken)
	require.NoError(t, f.Listed(t.Context(), f.room, 3))
	require.NoError(t, f.Listed(t.Context(), f.room, 3), "saying it again changes nothing")
	require.Equal(t, queue.DrawListed, f.draw())
	r = f.reserve()
	require.Len(t, r.Taken, 1)
	require.Equal(t, queue.DrawNone, r.Draw)
}

// Lost places come back while the room settles, and belong into the list.
func TestTheListWaitsForARoomToSettle(t *testing.T) {
	f := setup(t, drawing)
	f.pass(time.Minute - 20*time.Second)
	f.life.Generation, f.step.Generation = 8, 8 // which follows a loss, and settles for 40 s
	require.NoError(t, f.Create(t.Context(), f.life))
	f.pass(30 * time.Second)
	require.Equal(t, queue.DrawOpen, f.reserve().Draw, "not yet")
	f.pass(10 * time.Second)
	require.Equal(t, queue.DrawClosed, f.reserve().Draw)
}

func TestEntrantsAreThoseWithADrawnPlaceWhenTheDrawIsOver(t *testing.T) {
	f := setup(t, drawing)
	const n = 4500
	for i := range n {
		f.enterByLot(fmt.Sprint("m", i), lot(int64(i)))
	}
	left := f.standing("m17").Place
	_, err := f.Leave(t.Context(), f.room, "m17", left.Score, queue.OutcomeLeft)
	require.NoError(t, err)
	_, err = f.Entrants(t.Context(), f.room, 7, 0, 0)
	require.ErrorIs(t, err, queue.ErrGeneration, "it is not over")
	f.pass(time.Minute)
	f.enterByLot("late", lot(1))
	_, err = f.Entrants(t.Context(), f.room, 6, 0, 0)
	require.ErrorIs(t, err, queue.ErrGeneration, "what another life of the room had")
	seen := map[string]bool{}
	for after := int64(0); ; {
		page, err := f.Entrants(t.Context(), f.room, 7, 0, after)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			require.False(t, seen[c.Member])
			require.Greater(t, c.Place.Score, after)
			seen[c.Member], after = true, c.Place.Score
		}
	}
	require.Len(t, seen, n-1)
	require.False(t, seen["m17"] || seen["late"])
}

func TestNobodyGoesAwayBeforeTheDrawIsListed(t *testing.T) {
	f := setup(t, drawing)
	f.enterByLot("ann", lot(7))
	f.reap()
	f.keepHearing(10 * time.Minute)
	require.Zero(t, f.reap().Away, "who was in line takes part")
	require.NoError(t, f.Listed(t.Context(), f.room, 3))
	require.Equal(t, 1, f.reap().Away)
}

func TestADrawnPlaceThatWasLostComesBackUnlessItMayHaveEnded(t *testing.T) {
	f := setup(t, drawing)
	issued := f.clock
	place := f.enterByLot("ann", lot(7)).Place
	f.enterByLot("bob", lot(8))
	lose := func(m string) { require.NoError(t, f.rdb.ZRem(t.Context(), f.key("lane0"), m).Err()) }
	lost := queue.Lost{Generation: 7, Member: "ann", Ticket: 7, Place: place, Issued: issued}
	lose("ann")
	st, err := f.Restore(t.Context(), f.room, lost)
	require.NoError(t, err)
	require.Equal(t, place, st.Place)

	lose("ann")
	f.enterByLot("cy", lot(7)) // of the same key, where nobody stands
	st, err = f.Restore(t.Context(), f.room, lost)
	require.NoError(t, err)
	require.Equal(t, place.Score+1, st.Place.Score, "two never share a place")

	lose("ann")
	require.NoError(t, f.rdb.HSet(t.Context(), f.key("state"), "tidied", issued.UnixMicro()).Err())
	_, err = f.Restore(t.Context(), f.room, lost)
	require.ErrorIs(t, err, queue.ErrGone, "outcomes as old as the ticket are forgotten")
	lost.Issued = issued.Add(time.Second)
	_, err = f.Restore(t.Context(), f.room, lost)
	require.NoError(t, err, "the place was there after them")
}

func TestAGenerationAfterTheListKnowsThatTheDrawIsOver(t *testing.T) {
	f := setup(t, drawing)
	f.life.Generation, f.life.Listed = 8, true
	require.NoError(t, f.Create(t.Context(), f.life))
	require.Equal(t, queue.DrawListed, f.draw(), "although its end has not come by this clock")
	require.GreaterOrEqual(t, f.enterByLot("late", lot(1)).Place.Score, int64(queue.Beyond))
}

func TestALotteryGoesOnAndGivesOneChanceEach(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Lottery, r.Batch = true, 1 })
	f.enterByLot("bob", lot(50))
	f.enterByLot("ann", lot(900))
	f.pass(time.Second)
	require.Equal(t, []string{"bob"}, f.tick())
	f.enterByLot("cy", lot(3))
	require.EqualValues(t, 0, f.standing("cy").Rank, "the last to come may be the first")
	f.pickUp("bob")
	f.pass(301 * time.Second)
	require.Equal(t, queue.OutcomeExpired, f.standing("bob").Outcome)
	again := f.enterByLot("bob", lot(50))
	require.GreaterOrEqual(t, again.Place.Score, int64(queue.Beyond), "who has been let through goes behind")
	_, err := f.Restore(t.Context(), f.room, queue.Lost{Generation: 7, Member: "dan", Ticket: 7, Place: queue.Place{Score: lot(9).First}, Issued: f.clock})
	require.ErrorIs(t, err, queue.ErrGone, "entering again gives the same place")
}

func TestALotteryGivesOneChanceWhateverBecameOfTheGrant(t *testing.T) {
	for _, how := range []queue.Outcome{queue.OutcomeLeft, queue.OutcomeEvicted} {
		t.Run(string(how), func(t *testing.T) {
			f := setup(t, func(r *queue.Rules) { r.Lottery = true })
			f.enterByLot("ann", lot(1))
			f.pass(time.Second)
			require.Equal(t, []string{"ann"}, f.tick())
			f.leave("ann", 0, how)
			for range 3 { // also who then leaves that place and comes again
				require.GreaterOrEqual(t, f.enterByLot("ann", lot(1)).Place.Score, int64(queue.Beyond), "who has been let through goes behind")
				f.leave("ann", 0, queue.OutcomeLeft)
			}
		})
	}
}

func TestALateCopyOfALeaveFindsNoLaterPlaceByLot(t *testing.T) {
	from := map[string]func(f *fixture){
		"a lane":     func(*fixture) {},
		"processing": func(f *fixture) { f.reserve() },
		"away": func(f *fixture) {
			f.reap()
			f.keepHearing(10 * time.Minute)
			f.reap()
			require.EqualValues(f, 1, f.snap().Away)
		},
	}
	for where, bring := range from {
		t.Run(where, func(t *testing.T) {
			f := setup(t, func(r *queue.Rules) { r.Lottery = true })
			left := f.enterByLot("ann", lot(1)).Place
			f.pass(time.Second)
			bring(f)
			f.leave("ann", left.Score, queue.OutcomeLeft)
			next := f.enterByLot("ann", lot(1)).Place
			require.Equal(t, left.Score+1, next.Score, "the next slot of the same key")
			gone, err := f.Leave(t.Context(), f.room, "ann", left.Score, queue.OutcomeLeft)
			require.NoError(t, err)
			require.False(t, gone)
			require.Equal(t, queue.Waiting, f.status("ann"))
		})
	}
}

// leave ends a stay that is there.
func (f *fixture) leave(member string, score int64, outcome queue.Outcome) {
	f.Helper()
	gone, err := f.Leave(f.Context(), f.room, member, score, outcome)
	require.NoError(f, err)
	require.True(f, gone, member)
}
