package identity

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzUserToken sends any text, and signs any payload under any header with the
// key of the issuer: nothing may pass but what names issuer and audience under
// the one header that fits the key.
func FuzzUserToken(f *testing.F) {
	secret := ed25519.NewKeyFromSeed([]byte("canary-E-0123456789-0123456789-0"))
	x := base64.RawURLEncoding.EncodeToString(secret.Public().(ed25519.PublicKey))
	set := []byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"e","x":"` + x + `"}]}`)
	v := New(Config{
		Source: func(context.Context) ([]byte, error) { return set, nil }, Algorithms: Algorithms,
		Issuer: "i", Audience: "a", Claims: []string{"sub"},
	}, slog.New(slog.DiscardHandler))
	f.Add(`{"alg":"EdDSA","kid":"e"}`, `{"iss":"i","aud":"a","exp":4102444800,"sub":"ann"}`)
	f.Add(`{"alg":"none","kid":"../../e"}`, `{"iss":"i","aud":["a","b"],"exp":1e300,"sub":["ann"]}`)
	f.Add(`{"alg":"EdDSA","kid":"e","crit":["b64"],"b64":false}`, `{"iss":"i","aud":"a","exp":null}`)
	f.Add("", "..")
	f.Fuzz(func(t *testing.T, header, payload string) {
		_, err := v.Verify(t.Context(), payload)
		require.ErrorIs(t, err, ErrInvalid, "a text without a signature")
		text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
		token := text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(secret, []byte(text)))
		if _, err := v.Verify(t.Context(), token); err != nil {
			require.True(t, err == ErrInvalid)
			return
		}
		var h, p map[string]any
		require.NoError(t, json.Unmarshal([]byte(header), &h))
		d := json.NewDecoder(strings.NewReader(payload))
		d.UseNumber()
		require.NoError(t, d.Decode(&p))
		require.Equal(t, "EdDSA", h["alg"])
		require.Contains(t, []any{"e", nil}, h["kid"])
		require.NotContains(t, h, "crit")
		require.Equal(t, "i", p["iss"])
		require.Contains(t, p, "exp")
	})
}
