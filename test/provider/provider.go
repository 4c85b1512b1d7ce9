// Package provider is a small OpenID provider for tests, over real HTTP on
// loopback: a discovery document, a set of keys that can be changed, and tokens
// signed with them. It signs whatever claims it is told to, also wrong ones.
package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// Audience is whom tokens are for, unless their claims say otherwise.
const Audience = "linekeeper-test"

// Key is a key that tokens are signed with.
type Key struct {
	ID     string
	method jwt.SigningMethod
	secret any
	public any // as the set shows it
}

// Provider is a running provider.
type Provider struct {
	URL string // which is its issuer

	mu     sync.Mutex
	keys   []Key // the first signs, all are in the set
	reads  int
	answer http.HandlerFunc // instead of the set; nil: the set
}

// Start runs a provider with one ES256 key "first" until the test ends.
func Start(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{keys: []Key{NewKey(t, "first", "ES256")}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": p.KeysURL()})
	})
	mux.HandleFunc("GET /keys", p.serveKeys)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// KeysURL is where the set of keys is.
func (p *Provider) KeysURL() string { return p.URL + "/keys" }

func (p *Provider) serveKeys(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.reads++
	answer, keys := p.answer, p.keys
	p.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	_, _ = w.Write(Set(keys...))
}

// Set is a JWKS of keys.
func Set(keys ...Key) []byte {
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.public, KeyID: k.ID, Algorithm: k.method.Alg(), Use: "sig"})
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err) // of keys that this package has made
	}
	return text
}

// NewKey makes a key for RS256, ES256, EdDSA or HS256.
func NewKey(t testing.TB, id, algorithm string) Key {
	t.Helper()
	k := Key{ID: id, method: jwt.GetSigningMethod(algorithm)}
	var err error
	switch algorithm {
	case "RS256":
		k.secret, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES256":
		k.secret, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, k.secret, err = ed25519.GenerateKey(rand.Reader)
	case "HS256":
		k.secret = []byte(rand.Text() + rand.Text())
	}
	require.NoError(t, err)
	k.public = k.secret
	if s, ok := k.secret.(crypto.Signer); ok {
		k.public = s.Public()
	}
	return k
}

// Use makes these the keys: the first signs, all are in the set.
func (p *Provider) Use(keys ...Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = keys
}

// Answer is what is served instead of the set; nil: the set again.
func (p *Provider) Answer(h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = h
}

// Reads is how often the set was asked for.
func (p *Provider) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// Claims are those of a good token of subject, changed by more: a nil value
// takes a claim away.
func (p *Provider) Claims(subject string, more map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{"iss": p.URL, "aud": Audience, "sub": subject, "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(c, more)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// Token is a token of subject, signed with the first key.
func (p *Provider) Token(t testing.TB, subject string, more map[string]any) string {
	t.Helper()
	p.mu.Lock()
	k := p.keys[0]
	p.mu.Unlock()
	return k.Sign(t, p.Claims(subject, more), nil)
}

// Sign signs claims under a header with alg, typ and kid, changed by more as in
// Provider.Claims.
func (k Key) Sign(t testing.TB, claims jwt.MapClaims, more map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(k.method, claims)
	token.Header["kid"] = k.ID
	maps.Copy(token.Header, more)
	maps.DeleteFunc(token.Header, func(_ string, v any) bool { return v == nil })
	text, err := token.SignedString(k.secret)
	require.NoError(t, err)
	return text
}
