//go:build faults

package verify

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The last line is read by programs, so its form is a promise.
func TestTallyIsToldInOneLine(t *testing.T) {
	t.Parallel()
	var sum Tally
	sum.History(100, 7, 0)
	sum.History(50, 3, 0)
	sum.Faults(12)
	sum.Mutant("clock as score")
	sum.Mutant("no fence")
	sum.Caught("no fence", "I12 a stale step changes nothing")
	require.Equal(t, "verify: histories=2 ops=150 unknown=10 faults=12 violations=0 mutants=1/2", sum.String())
	require.Equal(t, "mutants that no check has caught: clock as score", sum.Wrong(false))
	sum.Caught("clock as score", "I7 a score rises")
	require.Empty(t, sum.Wrong(false))
	require.Equal(t, "2 mutants have been tried, not 14", sum.Wrong(true))
	for i := range minMutants {
		sum.Caught(fmt.Sprint("mutant ", i), "a check")
	}
	require.Empty(t, sum.Wrong(true))
	sum.History(1, 0, 1)
	require.Equal(t, "1 violations", sum.Wrong(true))
	require.Contains(t, sum.String(), "violations=1")
}

func TestRunThatHasCheckedNothingIsNotVerified(t *testing.T) {
	t.Parallel()
	var sum Tally
	require.Equal(t, "no history has been checked", sum.Wrong(true))
}
