package identity

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/provider"
)

func TestANewKeyIsFoundByTheFirstTokenItSigns(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	old := f.p.Token(t, "ann", nil)
	f.good(old)
	f.p.Use(provider.NewKey(t, "second", "RS256"))
	f.pass(askAgain)
	f.good(f.p.Token(t, "ann", nil))
	f.bad(old, "a token whose key has left the set, although it was seen before")
	require.Equal(t, 2, f.p.Reads())
}

func TestMadeUpKeysCauseOneReadInAWhile(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.good(f.p.Token(t, "ann", nil))
	f.pass(askAgain)
	stranger := provider.NewKey(t, "made-up", "ES256")
	flood := func() {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_, err := f.Verify(t.Context(), stranger.Sign(t, f.p.Claims("eve", nil), nil))
				require.ErrorIs(t, err, ErrInvalid)
			})
		}
		wg.Wait()
	}
	flood()
	require.Equal(t, 2, f.p.Reads(), "of 50 made-up keys at once one may ask")
	flood()
	require.Equal(t, 2, f.p.Reads(), "and for a while no other")
	f.pass(askAgain)
	flood()
	require.Equal(t, 3, f.p.Reads())
}

func TestTheLastGoodKeysStayWhileTheirSourceIsAway(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.good(f.p.Token(t, "ann", nil))
	target := provider.Start(t)
	unknown := provider.NewKey(t, "unknown", "ES256")
	target.Use(unknown)
	large := append(provider.Set(unknown), strings.Repeat(" ", maxSet)...)
	reads := f.p.Reads()
	for what, answer := range map[string]http.HandlerFunc{
		"down":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"empty":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"too large":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) },
		"elsewhere":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.KeysURL(), http.StatusFound) },
		"broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		f.p.Answer(answer)
		f.pass(askAgain)
		f.bad(target.Token(t, "eve", nil), what)
		f.good(f.p.Token(t, "bob", map[string]any{"jti": what}))
		require.Greater(t, f.p.Reads(), reads, what) // net/http asks again where a connection breaks
		reads = f.p.Reads()
	}
	require.Zero(t, target.Reads(), "no redirect is followed")
}

func TestWithoutAnyKeyNothingIsSaidAboutATokenUntilThereIsOne(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.p.Answer(http.NotFound)
	_, err := f.Verify(t.Context(), f.p.Token(t, "ann", nil))
	require.ErrorIs(t, err, ErrUnavailable)
	_, err = f.Verify(t.Context(), f.p.Token(t, "ann", nil))
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, 1, f.p.Reads(), "who asks meanwhile causes no read")
	f.p.Answer(nil)
	f.pass(askAgain)
	f.good(f.p.Token(t, "ann", nil))
}

func TestRunReadsTheKeysBeforeAnybodyAsksAndEnds(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx, stop := context.WithCancel(t.Context())
	read := make(chan struct{})
	source := f.keys.source
	f.keys.source = func(ctx context.Context) ([]byte, error) {
		defer close(read)
		return source(ctx)
	}
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	<-read
	stop()
	require.NoError(t, <-ended)
	require.NotNil(t, f.keys.set.Load())
}

func TestKeysMayBeInAFileThatChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	f := setUp(t, func(c *Config) {
		source, err := From(path)
		require.NoError(t, err)
		c.Source = source
	})
	for _, id := range []string{"a", "b"} {
		key := provider.NewKey(t, id, "EdDSA")
		require.NoError(t, os.WriteFile(path, provider.Set(key), 0o600))
		f.pass(askAgain)
		f.good(key.Sign(t, f.p.Claims("ann", nil), nil))
	}
	require.Zero(t, f.p.Reads())
}

func TestWhatATokenSaidIsForgottenInTime(t *testing.T) {
	t.Parallel()
	v := newVerified()
	for i := range 5 * maxVerified {
		v.put([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, passed{})
		require.LessOrEqual(t, len(v.young)+len(v.old), 2*maxVerified)
	}
}

func TestAddressesOfKeysThatOthersHaveASayInAreRefused(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://idp.example/keys", "http://127.0.0.1:1/k", "http://localhost/k", "http://[::1]/k", "https://idp.example/k?tenant=a"} {
		require.NoError(t, CheckURL(good), good)
	}
	for _, bad := range []string{"http://idp.example/keys", "http://127.0.0.1.example/k", "ftp://127.0.0.1/k", "https://", "https://u:p@idp.example/k", "https://idp.example/k#f", "file:///etc/passwd", "://", ""} {
		require.Error(t, CheckURL(bad), bad)
	}
}

func TestKeysOfNoUseArePassedOver(t *testing.T) {
	t.Parallel()
	good := provider.NewKey(t, "good", "ES256")
	set := strings.TrimSuffix(string(provider.Set(good)), "]}")
	for _, other := range []string{
		`{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"off the curve"}`, `{"kty":"XYZ","kid":"unknown"}`, `{"kty":"oct","k":"c2hvcnQ","kid":"short"}`,
		`7`, `{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"short"}`,
	} {
		s, err := parseKeys([]byte(set + "," + other + "]}"))
		require.NoError(t, err, other)
		require.Len(t, s.byName, 1, other)
	}
	enc := strings.Replace(string(provider.Set(good)), `"sig"`, `"enc"`, 1)
	wrong := strings.Replace(string(provider.Set(good)), `"ES256"`, `"ES512"`, 1)
	many := `{"keys":[` + strings.TrimSuffix(strings.Repeat("{},", maxKeys+1), ",") + `]}`
	for _, text := range []string{enc, wrong, many, `{}`, `[]`, `{"keys":{}}`} {
		_, err := parseKeys([]byte(text))
		require.Error(t, err, "%.60s", text)
	}
}

func TestAProviderIsFoundByItsDiscoveryDocument(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	v := New(Config{Source: Discovered(p.URL), Algorithms: []string{"ES256"}, Issuer: p.URL, Audience: provider.Audience}, slog.New(slog.DiscardHandler))
	_, err := v.Verify(t.Context(), p.Token(t, "olaf", nil))
	require.NoError(t, err)
	_, err = Discovered(p.URL + "/")(t.Context())
	require.ErrorContains(t, err, "another issuer")
}
