package identity

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/provider"
)

// fixture is a verifier of a provider's tokens. Its clock moves when it is told.
type fixture struct {
	*Verifier
	t *testing.T
	p *provider.Provider

	mu    sync.Mutex
	clock time.Time
}

func setUp(t *testing.T, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, p: provider.Start(t), clock: time.Now()}
	source, err := From(f.p.KeysURL())
	require.NoError(t, err)
	c := Config{Source: source, Algorithms: []string{"RS256", "ES256", "EdDSA"}, Issuer: f.p.URL, Audience: provider.Audience, Claims: []string{"sub", "roles"}}
	for _, change := range change {
		change(&c)
	}
	f.Verifier = New(c, slog.New(slog.DiscardHandler))
	f.keys.now = f.now
	return f
}

func (f *fixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock
}

func (f *fixture) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = f.clock.Add(d)
}

func (f *fixture) good(token string) Claims {
	f.t.Helper()
	claims, err := f.Verify(f.t.Context(), token)
	require.NoError(f.t, err)
	return claims
}

func (f *fixture) bad(token, what string) {
	f.t.Helper()
	claims, err := f.Verify(f.t.Context(), token)
	require.True(f.t, err == ErrInvalid, "%s must be ErrInvalid itself, got %v", what, err)
	require.Nil(f.t, claims, what)
}
