package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAnOrderIsCountedInTheFirstBandItStaysBelow(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for took, band := range map[time.Duration]int{
		0: 0, 199 * ms: 0, 200 * ms: 1, 499 * ms: 1, 500 * ms: 2, 999 * ms: 2, 1000 * ms: 3, time.Hour: 3,
	} {
		require.Equal(t, band, Band(took), "%v", took)
	}
}

// anyHealth draws what a process may have counted.
func anyHealth() *rapid.Generator[Health] {
	return rapid.Custom(func(t *rapid.T) Health {
		var h Health
		for range rapid.IntRange(0, 20).Draw(t, "attempts") {
			delay := time.Duration(rapid.Int64Range(0, 300).Draw(t, "delay")) * time.Second
			if rapid.Bool().Draw(t, "failed") {
				h.Fail(delay)
			} else {
				h.Placed(time.Duration(rapid.Int64Range(0, 2000).Draw(t, "took"))*time.Millisecond, delay)
			}
		}
		return h
	})
}

func TestCountsOfProcessesAddUpAndTotalsSubtract(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyHealth().Draw(t, "a"), anyHealth().Draw(t, "b")
		sum := a.Add(b)
		if sum != b.Add(a) || sum.Attempts() != a.Attempts()+b.Attempts() || sum.Orders()+sum.Failed != sum.Attempts() {
			t.Fatalf("%+v and %+v do not add up: %+v", a, b, sum)
		}
		if got := sum.Since(a); got != b {
			t.Fatalf("after %+v came %+v, got %+v", a, b, got)
		}
	})
}

func TestATotalThatBeganAnewIsWhatCameAfter(t *testing.T) {
	t.Parallel()
	var before, after Health
	for range 10 {
		before.Placed(0, time.Second)
	}
	after.Placed(time.Hour, 0)
	require.Equal(t, after, after.Since(before))
}
