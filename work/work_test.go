package work_test

import (
	"context"
	"crypto/sha256"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/work"
)

func TestASolutionIsGoodForItsChallengeAndItsBitsAlone(t *testing.T) {
	t.Parallel()
	const bits = 10
	challenge, other := work.Of("a ticket"), work.Of("another ticket")
	nonce, err := work.Solve(t.Context(), challenge, bits)
	require.NoError(t, err)
	require.True(t, work.Done(challenge, nonce, bits))
	require.True(t, work.Done(challenge, nonce, 1), "what is enough for more is enough for less")
	require.False(t, work.Done(challenge, nonce, work.MaxBits), "too easy")
	require.False(t, work.Done(other, nonce, bits), "of another ticket")
	require.False(t, work.Done(challenge, nonce, 0), "of no bits there is no solution")
	require.False(t, work.Done(challenge, nonce, -1))
}

// The rule is written in docs/clients.md for whoever writes a solver, so here it
// is computed in another way than by the package.
func TestTheRuleIsTheDocumentedOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		challenge := work.Of(rapid.String().Draw(t, "ticket"))
		require.Len(t, challenge, 43)
		nonce := strconv.Itoa(rapid.IntRange(0, 1_000_000).Draw(t, "nonce"))
		sum := sha256.Sum256([]byte(challenge + nonce))
		zeros := 256 - new(big.Int).SetBytes(sum[:]).BitLen()
		for bits := 1; bits <= work.MaxBits; bits++ {
			require.Equal(t, zeros >= bits, work.Done(challenge, nonce, bits), "%d bits of %d", bits, zeros)
		}
	})
}

func TestANonceIsWrittenInOneWay(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"0", "7", "10", "999999999999"} {
		require.True(t, work.ValidNonce(s), s)
	}
	for _, s := range []string{"", "00", "07", "-1", "+1", "1e3", " 1", "1 ", "1\n", "٣", "0x1", "1000000000000", strings.Repeat("9", 4096)} {
		require.False(t, work.ValidNonce(s), "%q", s)
	}
}

func TestSolveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := work.Solve(ctx, work.Of("x"), 32)
	require.ErrorIs(t, err, context.Canceled)
}

// Whatever a client sends as a nonce is a solution or is not, and one that is
// stays one for fewer bits.
func FuzzDone(f *testing.F) {
	for _, s := range []string{"", "0", "12", "007", "-1", "1e9", "999999999999", "1\x00", "\xff"} {
		f.Add(s, 8)
	}
	challenge := work.Of("a ticket")
	f.Fuzz(func(t *testing.T, nonce string, bits int) {
		if !work.Done(challenge, nonce, bits) {
			return
		}
		n, err := strconv.ParseUint(nonce, 10, 64)
		require.NoError(t, err)
		require.Equal(t, nonce, strconv.FormatUint(n, 10), "a second spelling of one number")
		require.True(t, bits == 1 || work.Done(challenge, nonce, bits-1))
	})
}

func BenchmarkDone(b *testing.B) {
	challenge := work.Of("a ticket")
	for b.Loop() {
		work.Done(challenge, "123456", 18)
	}
}
