package fault_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/fault"
)

func TestASeriesIsFoundByItsWholeName(t *testing.T) {
	t.Parallel()
	text := fault.Metrics("up 1\n# TYPE up_since gauge\nup_since 1.5e+09\nasked_total{of=\"b\"} 7\nlast 2")
	for series, want := range map[string]float64{"up": 1, "up_since": 1.5e9, `asked_total{of="b"}`: 7, "last": 2} {
		got, err := text.Value(series)
		require.NoError(t, err, series)
		require.Equal(t, want, got, series)
	}
	for _, series := range []string{"asked_total", "since", `asked_total{of="c"}`, "# TYPE"} {
		_, err := text.Value(series)
		require.Error(t, err, series)
	}
}
