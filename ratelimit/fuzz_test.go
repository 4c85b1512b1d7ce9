package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLimit holds that a limit that is read lies in its bounds, and is read again
// as the same from what it is written as.
func FuzzLimit(f *testing.F) {
	for _, seed := range []string{"sliding:60/1m", "token:3/1s", "leaky:1/10ms", "fixed:10000/24h", "fixed:00001/1h0m0.5s", "token:1/1e9ns", "sliding:60/", "token:1/+1s", "token:1/∞", "leaky:99999999999/1s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		require.True(t, l.N >= 1 && l.N <= MaxN && l.Per >= MinPer && l.Per <= MaxPer, "%q is %+v", text, l)
		again, err := Parse(l.String())
		require.NoError(t, err, "%q is written as %q", text, l)
		require.Equal(t, l, again)
	})
}
