package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFewMarksAllStay(t *testing.T) {
	t.Parallel()
	require.Empty(t, ChooseMarks(nil))
	all := marks(MostMarks, func(i int) int64 { return int64(i * i) })
	require.Equal(t, all, ChooseMarks(all))
}

func TestOfAStraightLineItsEndsAreEnough(t *testing.T) {
	t.Parallel()
	all := marks(500, func(i int) int64 { return int64(7 * i) })
	require.Equal(t, []Mark{all[0], all[499]}, ChooseMarks(all))
}

func TestMarksStandWhereTheLineBends(t *testing.T) {
	t.Parallel()
	bends := []int{0, 100, 101, 300, 310, 499}
	all := marks(500, func(i int) int64 { // a pause after the 100th, and a burst from the 300th on
		switch {
		case i <= 100:
			return int64(100 * i)
		case i <= 300:
			return int64(1_000_000 + 100*i)
		case i <= 310:
			return int64(1_000_000 + 100*300 + i - 300)
		}
		return int64(1_000_000 + 100*300 + 10 + 100*(i-310))
	})
	want := []Mark{}
	for _, i := range bends {
		want = append(want, all[i])
	}
	got := ChooseMarks(all)
	require.Subset(t, got, want)
	require.Less(t, len(got), len(want)+5, "and hardly anywhere else")
}

func TestNoMoreMarksAreChosenThanMayBeTold(t *testing.T) {
	t.Parallel()
	all := marks(500, func(i int) int64 { return int64(i * i * i) })
	got := ChooseMarks(all)
	require.Len(t, got, MostMarks)
	require.Equal(t, all[0], got[0])
	require.Equal(t, all[499], got[MostMarks-1])
	for i, m := range got[1:] {
		require.Greater(t, m.Rank, got[i].Rank)
	}
}

func TestMarksOfOneScoreAreNoDivisionByZero(t *testing.T) {
	t.Parallel()
	require.Len(t, ChooseMarks(marks(500, func(int) int64 { return 7 })), MostMarks)
}

func marks(n int, score func(i int) int64) []Mark {
	out := make([]Mark, n)
	for i := range out {
		out[i] = Mark{int64(i), score(i)}
	}
	return out
}
