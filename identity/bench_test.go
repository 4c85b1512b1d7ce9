package identity

import (
	"log/slog"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/provider"
)

func benchmark(b *testing.B, algorithm string, again bool) {
	p := provider.Start(b)
	p.Use(provider.NewKey(b, "k", algorithm))
	source, err := From(p.KeysURL())
	require.NoError(b, err)
	v := New(Config{Source: source, Algorithms: Algorithms, Issuer: p.URL, Audience: provider.Audience, Claims: []string{"sub"}}, slog.New(slog.DiscardHandler))
	tokens := make([]string, 1000)
	for i := range tokens {
		tokens[i] = p.Token(b, strconv.Itoa(i), nil)
		if again {
			_, err := v.Verify(b.Context(), tokens[i])
			require.NoError(b, err)
		}
	}
	if !again {
		_, err := v.Verify(b.Context(), tokens[0])
		require.NoError(b, err)
	}
	set := v.keys.set.Load()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if again {
			_, err = v.Verify(b.Context(), tokens[i%len(tokens)])
		} else {
			_, err = v.parse(tokens[i%len(tokens)], set)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// What a poll costs of which the token has been seen before.
func BenchmarkTokenAgain(b *testing.B) { benchmark(b, "RS256", true) }

func BenchmarkTokenFirstRS256(b *testing.B) { benchmark(b, "RS256", false) }
func BenchmarkTokenFirstES256(b *testing.B) { benchmark(b, "ES256", false) }
