package closing_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/draw"
	"github.com/linekeeper/linekeeper/draw/closing"
	"github.com/linekeeper/linekeeper/queue"
)

// line is a room of two lanes, on paper, that gives pages of three.
type line struct {
	lanes  [2][]queue.Candidate
	reads  int
	fails  int // the read that finds another generation; 0: none
	listed int64
}

func (l *line) Entrants(_ context.Context, _ string, _ int64, lane int, after int64) ([]queue.Candidate, error) {
	if l.reads++; l.reads == l.fails {
		return nil, queue.ErrGeneration
	}
	from := slices.IndexFunc(l.lanes[lane], func(c queue.Candidate) bool { return c.Place.Score > after })
	if from < 0 {
		return nil, nil
	}
	return l.lanes[lane][from:min(from+3, len(l.lanes[lane]))], nil
}

func (l *line) Listed(_ context.Context, _ string, sale int64) error {
	l.listed = sale
	return nil
}

// shelf keeps one draw.
type shelf struct {
	rec  draw.Record
	list *draw.List
}

func (s *shelf) Draw(context.Context, string, int64) (draw.Record, error) { return s.rec, nil }
func (s *shelf) KeepList(_ context.Context, l *draw.List) error {
	s.list = l
	return nil
}

var life = queue.Life{Room: "r", Sale: 2, Generation: 9}

// weighted is a draw of two lanes that are one line, with so many in each.
func weighted(n int) (*line, *shelf) {
	p := draw.Plan{
		Draw: draw.Draw{Room: "r", Sale: 2, Seed: draw.NewSeed()}, Order: draw.Weighted,
		Lanes: []draw.Lane{{Name: "vip", Weight: 3}, {Name: "standard", Weight: 1}},
	}
	l := &line{}
	for lane := range l.lanes {
		for i := range n {
			m := fmt.Sprint("m", lane, "-", i)
			l.lanes[lane] = append(l.lanes[lane], queue.Candidate{Member: m, Place: queue.Place{Lane: lane, Score: p.First(m, lane)}})
		}
		slices.SortFunc(l.lanes[lane], func(a, b queue.Candidate) int { return cmp.Compare(a.Place.Score, b.Place.Score) })
	}
	return l, &shelf{rec: draw.Record{Plan: p}}
}

func TestTheListHasEverybodyOfEveryLane(t *testing.T) {
	t.Parallel()
	l, books := weighted(50)
	require.NoError(t, closing.Closer{Line: l, Books: books}.End(t.Context(), life))
	require.EqualValues(t, 100, books.list.Entrants)
	require.EqualValues(t, 2, l.listed)
	var text bytes.Buffer
	_, err := books.list.WriteTo(&text)
	require.NoError(t, err)
	report, err := draw.Verify(&text, draw.Expect{Member: "m1-7", Commitment: books.rec.Seed.Commitment()})
	require.NoError(t, err)
	require.True(t, report.Valid, "%+v", report.Checks)
}

func TestARoomWhoseDataWereLostOnTheWayIsNotListed(t *testing.T) {
	t.Parallel()
	for fails := 1; fails <= 8; fails++ {
		l, books := weighted(8)
		l.fails = fails
		err := closing.Closer{Line: l, Books: books}.End(t.Context(), life)
		require.ErrorIs(t, err, queue.ErrGeneration, "read %d", fails)
		require.Nil(t, books.list)
		require.Zero(t, l.listed)
	}
}

func TestAListThatIsKeptIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	l, books := weighted(8)
	books.rec.Listed = true
	require.NoError(t, closing.Closer{Line: l, Books: books}.End(t.Context(), life))
	require.Zero(t, l.reads)
	require.Nil(t, books.list)
	require.EqualValues(t, 2, l.listed, "the room may not have heard of it")
}

// Somebody at a place that the seed does not give stops the list: whatever has
// put them there, the list could not be verified.
func TestAPlaceThatTheSeedDoesNotGiveIsNotListed(t *testing.T) {
	t.Parallel()
	l, books := weighted(8)
	l.lanes[1][7].Place.Score = queue.Beyond - 1
	require.ErrorContains(t, closing.Closer{Line: l, Books: books}.End(t.Context(), life), "the seed gives")
	require.Nil(t, books.list)
	require.Zero(t, l.listed)
}

type unkept struct{ *shelf }

var errBooks = errors.New("connection refused")

func (unkept) KeepList(context.Context, *draw.List) error { return errBooks }

func TestNobodyIsLetThroughBeforeTheListIsKept(t *testing.T) {
	t.Parallel()
	l, books := weighted(8)
	require.ErrorIs(t, closing.Closer{Line: l, Books: unkept{books}}.End(t.Context(), life), errBooks)
	require.Zero(t, l.listed)
}
