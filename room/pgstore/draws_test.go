package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/draw"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

func drawn(s room.Settings) (room.Settings, error) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Draw, s.AdmitsAt = true, &at
	return s, nil
}

func TestASaleThatGoesByLotHasItsSeedFromTheBeginning(t *testing.T) {
	f := setUp(t)
	_, err := f.Draw(t.Context(), "sale", 1)
	require.ErrorIs(t, err, room.ErrNoDraw)
	_, err = f.Update(t.Context(), "sale", 0, drawn, room.Actor{})
	require.NoError(t, err)
	first, err := f.Draw(t.Context(), "sale", 1)
	require.NoError(t, err)
	require.Equal(t, []draw.Lane{{Name: "standard", Weight: 1}}, first.Lanes)
	require.Equal(t, draw.Uniform, first.Order)
	require.False(t, first.Listed)
	_, err = f.Begin(t.Context(), "sale", 0)
	require.NoError(t, err)
	_, err = f.Update(t.Context(), "sale", 0, batch(7), room.Actor{})
	require.NoError(t, err)
	again, err := f.Draw(t.Context(), "sale", 1)
	require.NoError(t, err)
	require.Equal(t, first, again, "no change of settings gives a sale that has begun another seed")

	_, err = f.Flush(t.Context(), "sale", room.Actor{})
	require.NoError(t, err)
	next, err := f.Draw(t.Context(), "sale", 2)
	require.NoError(t, err)
	require.NotEqual(t, first.Seed.Reveal(), next.Seed.Reveal())
	require.NoError(t, f.Delete(t.Context(), "sale", room.Actor{}))
	_, err = f.Create(t.Context(), "sale", room.Defaults(), room.Actor{})
	require.NoError(t, err)
	_, err = f.Draw(t.Context(), "sale", 3)
	require.ErrorIs(t, err, room.ErrNoDraw)
}

func TestWhatDecidesPlacesByLotIsFixedOnceTheSaleHasBegun(t *testing.T) {
	f := setUp(t)
	_, err := f.Begin(t.Context(), "sale", 0)
	require.NoError(t, err)
	var wrong room.Problems
	_, err = f.Update(t.Context(), "sale", 0, drawn, room.Actor{})
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "draw", wrong[0].Field)
	_, err = f.Update(t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) { s.Priority = "lottery"; return s, nil }, room.Actor{})
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "priority", wrong[0].Field)

	_, err = f.Flush(t.Context(), "sale", room.Actor{})
	require.NoError(t, err)
	_, err = f.Update(t.Context(), "sale", 0, drawn, room.Actor{})
	require.NoError(t, err, "the next sale has not begun")
	_, err = f.Begin(t.Context(), "sale", f.room().Generation)
	require.NoError(t, err)
	_, err = f.Update(t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) { s.Draw = false; return s, nil }, room.Actor{})
	require.ErrorAs(t, err, &wrong)
	_, err = f.Update(t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) {
		s.Lanes = []room.Lane{{Name: "standard", Weight: 9}}
		return s, nil
	}, room.Actor{})
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "lanes", wrong[0].Field)
	_, err = f.Update(t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) {
		at := s.AdmitsAt.Add(time.Hour)
		s.AdmitsAt = &at
		return s, nil
	}, room.Actor{})
	require.NoError(t, err, "its end may be moved")
}

func TestTheFirstListOfADrawStays(t *testing.T) {
	f := setUp(t)
	_, err := f.Update(t.Context(), "sale", 0, drawn, room.Actor{})
	require.NoError(t, err)
	rec, err := f.Draw(t.Context(), "sale", 1)
	require.NoError(t, err)
	var placed []draw.Placed
	for i := range 3000 {
		m := fmt.Sprint("m", i)
		placed = append(placed, draw.Placed{Member: m, Score: rec.First(m, 0)})
	}
	list := func(p []draw.Placed) *draw.List {
		l, err := rec.List(p)
		require.NoError(t, err)
		return l
	}
	whole, fewer := list(placed), list(placed[:2000])
	errs := atOnce(8, func(i int) error {
		if i%2 == 0 {
			return f.KeepList(t.Context(), whole)
		}
		return f.KeepList(t.Context(), fewer)
	})
	require.Equal(t, 8, count(errs, nil))
	kept, err := f.Draw(t.Context(), "sale", 1)
	require.NoError(t, err)
	require.True(t, kept.Listed)
	require.NoError(t, f.KeepList(t.Context(), list(nil)))
	again, err := f.Draw(t.Context(), "sale", 1)
	require.NoError(t, err)
	require.Equal(t, kept, again)
	require.Contains(t, []int64{3000, 2000}, kept.Header.Entrants)
	require.Len(t, kept.Roots, int(kept.Header.Entrants+draw.PieceLines-1)/draw.PieceLines)
	life := f.life()
	require.True(t, life.Listed, "whoever begins a generation has to know")

	entrant := rec.Entrant("m7")
	n, body, err := f.PieceOf(t.Context(), "sale", 1, entrant)
	require.NoError(t, err)
	_, ok, err := draw.Prove(kept.Header, kept.Roots, n, body, entrant)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestADrawWithoutEntrantsHasAnEmptyList(t *testing.T) {
	f := setUp(t)
	_, err := f.Update(t.Context(), "sale", 0, drawn, room.Actor{})
	require.NoError(t, err)
	rec, err := f.Draw(t.Context(), "sale", 1)
	require.NoError(t, err)
	l, err := rec.List(nil)
	require.NoError(t, err)
	require.NoError(t, f.KeepList(t.Context(), l))
	kept, err := f.Draw(t.Context(), "sale", 1)
	require.NoError(t, err)
	require.True(t, kept.Listed)
	require.Equal(t, l.Header, kept.Header)
	_, body, err := f.PieceOf(t.Context(), "sale", 1, rec.Entrant("ann"))
	require.NoError(t, err)
	require.Nil(t, body)
}

// A leader that was paused over a flush writes of the sale that is over.
func TestAnEarlierSaleChangesNoFloorsOfALaterOne(t *testing.T) {
	f := setUp(t)
	advance := func(sale, floor, last int64) {
		t.Helper()
		require.NoError(t, f.Advance(t.Context(), []queue.Progress{{Room: "sale", Sale: sale, Floors: []int64{floor}, LastScore: last}}))
	}
	advance(1, 1000, 1000)
	require.EqualValues(t, 1000, f.life().Floors[0])
	_, err := f.Flush(t.Context(), "sale", room.Actor{})
	require.NoError(t, err)
	require.Zero(t, f.life().Floors[0], "nobody of this sale has been let through")
	advance(2, 7, 7)
	advance(1, 2000, 2000)
	life := f.life()
	require.EqualValues(t, 7, life.Floors[0])
	require.EqualValues(t, 2000, life.LastScore, "which holds for all sales")
	floor, _, err := f.Restorable(t.Context(), "sale", 2, "ann", 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, floor)
}
