package credential_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/credential"
)

func TestOneGrantGivesOneTokenDuringRotation(t *testing.T) {
	t.Parallel()
	before, during, after := ring(t, entryA(), entryE(), entryB()), ring(t, entryB(), entryA(), entryE()), ring(t, entryE(), entryB(), entryA())
	rapid.Check(t, func(t *rapid.T) {
		g := anyGrant(t)
		s := signGrant(t, before, g)
		require.Equal(t, s, signGrant(t, during, g), "the grant's key signs, not the first")
		require.Equal(t, s, signGrant(t, after, g))
		got, err := after.Grant(s)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(g, got))
	})
}

func TestTicketsOfAnOldKeyVerifyAndAreRenewed(t *testing.T) {
	t.Parallel()
	old, both, late := ring(t, entryA()), ring(t, entryB(), entryA()), ring(t, entryB())
	s := signTicket(t, old, ticket())
	x, err := both.Ticket(s)
	require.NoError(t, err)
	require.Equal(t, "a", x.KeyID)
	require.False(t, x.Renew(issued, old), "a fresh ticket of the first key stays")
	require.True(t, x.Renew(issued, both), "a ticket of another key is renewed at once")

	renewed, err := both.Ticket(signTicket(t, both, x))
	require.NoError(t, err)
	require.Equal(t, "b", renewed.KeyID, "the first key signs, whatever signed before")
	require.False(t, renewed.Renew(issued, both))
	refused(t, late, s, "a ticket of a key that has left the ring")
}

func TestRingKnowsItsKeys(t *testing.T) {
	t.Parallel()
	r := ring(t, entryB(), entryE())
	require.Equal(t, "b", r.SigningKeyID())
	require.True(t, r.Has("b") && r.Has("e"))
	require.False(t, r.Has("a") || r.Has(""))
}

func TestReplacedKeysAreThoseOfEveryCopy(t *testing.T) {
	t.Parallel()
	r := ring(t, entryA())
	copied := *r
	old := signTicket(t, r, ticket())
	require.NoError(t, r.Replace(entryA()+","+entryB()))
	require.Equal(t, "a", copied.SigningKeyID())
	require.True(t, copied.Has("b"))
	require.Error(t, r.Replace("nonsense"))
	require.True(t, r.Has("b"), "after an error all is as it was")

	require.NoError(t, r.Replace(entryB()+","+entryA()))
	_, err := copied.Ticket(old)
	require.NoError(t, err, "what the old key signed is good")
	require.NoError(t, copied.Replace(entryB()))
	refused(t, r, old, "a ticket of a key that has left the ring")
}

func TestOthersVerifyEntryTokensByThePublicKeysAlone(t *testing.T) {
	t.Parallel()
	var set struct{ Keys []map[string]string }
	require.NoError(t, json.Unmarshal(ring(t, entryA(), entryB()).JWKS(), &set))
	require.NotNil(t, set.Keys)
	require.Empty(t, set.Keys, "a secret is no public key")

	r := ring(t, entryE(), entryA())
	require.NoError(t, json.Unmarshal(r.JWKS(), &set))
	require.Len(t, set.Keys, 1)
	x, err := base64.RawURLEncoding.DecodeString(set.Keys[0]["x"])
	require.NoError(t, err)
	delete(set.Keys[0], "x")
	require.Equal(t, map[string]string{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "e"}, set.Keys[0])

	g := grant()
	g.KeyID = "e"
	text := signGrant(t, r, g)
	verify := func(text string) error {
		_, err := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithoutClaimsValidation()).Parse(text,
			func(tk *jwt.Token) (any, error) { return ed25519.PublicKey(x), nil })
		return err
	}
	require.NoError(t, verify(text))
	require.Error(t, verify(text[:len(text)-4]+"AAAA"))
	require.Error(t, verify(signTicket(t, ring(t, entryA()), ticket())))
	require.NotContains(t, string(r.JWKS()), b64(seedE)[:20])
}

func TestZeroRingSignsAndVerifiesNothing(t *testing.T) {
	t.Parallel()
	r := new(credential.Ring)
	require.Empty(t, r.SigningKeyID())
	_, err := r.SignTicket(ticket())
	require.Error(t, err)
	_, err = r.SignGrant(grant())
	require.Error(t, err)
	refused(t, r, signGrant(t, ring(t, entryA()), grant()), "a token")
	require.Error(t, (&credential.Ring{}).Replace(credential.GenerateKey()))
}

func TestKeysAreReadInEitherBase64(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{0xfb, 0xff}, 17) // both alphabets differ here, and there is padding
	want := signGrant(t, ring(t, "a:"+base64.StdEncoding.EncodeToString(secret)), grant())
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		require.Equal(t, want, signGrant(t, ring(t, " a:"+enc.EncodeToString(secret)+"\n"), grant()))
	}
}

func TestParseRingTellsAllErrorsAtOnceAndNoSecret(t *testing.T) {
	t.Parallel()
	short := b64([]byte("canary-short"))
	_, err := credential.ParseRing(strings.Join([]string{
		entryA(), "a:" + b64(secretB), b64(secretA), "b:" + short, "c:ed25519:" + short,
		"c:" + b64(secretB) + "!", "d:rsa:" + b64(secretA), "a b:" + b64(secretA), "a:" + short, "",
		"s:ed25519:" + b64(append([]byte{0}, seedE...)),
	}, ","))
	require.EqualError(t, err, strings.Join([]string{
		"key 2: has the id of key 1",
		"key 3: want kid:base64, with kid like ^[A-Za-z0-9_-]{1,32}$",
		"key 4: a key must be base64 of at least 32 bytes",
		"key 5: an ed25519 seed must be 32 bytes of base64",
		"key 6: has the id of key 5",
		"key 6: a key must be base64 of at least 32 bytes",
		"key 7: a key must be base64 of at least 32 bytes",
		"key 8: want kid:base64, with kid like ^[A-Za-z0-9_-]{1,32}$",
		"key 9: has the id of key 1",
		"key 9: a key must be base64 of at least 32 bytes",
		"key 10: want kid:base64, with kid like ^[A-Za-z0-9_-]{1,32}$",
		"key 11: an ed25519 seed must be 32 bytes of base64",
	}, "\n"))
}

func TestKeyLengthsAreHeldExactly(t *testing.T) {
	t.Parallel()
	for bytes, ok := range map[int]bool{0: false, 31: false, 32: true, 33: true, 100: true} {
		_, err := credential.ParseRing("a:" + b64(make([]byte, bytes)))
		require.Equal(t, ok, err == nil, "HS256 key of %d bytes: %v", bytes, err)
		_, err = credential.ParseRing("a:ed25519:" + b64(make([]byte, bytes)))
		require.Equal(t, bytes == 32, err == nil, "Ed25519 seed of %d bytes: %v", bytes, err)
	}
	for kid, ok := range map[string]bool{"": false, "A-z_9": true, strings.Repeat("k", 32): true, strings.Repeat("k", 33): false, "a/b": false, "a\n": false} {
		_, err := credential.ParseRing(kid + ":" + b64(secretA))
		require.Equal(t, ok, err == nil, "kid %q: %v", kid, err)
	}
}

func TestGeneratedKeysMakeARing(t *testing.T) {
	t.Parallel()
	one, other := credential.GenerateKey(), credential.GenerateKey()
	kid, secret, _ := strings.Cut(one, ":")
	require.Regexp(t, `^[a-z2-7]{8}$`, kid)
	b, err := base64.StdEncoding.DecodeString(secret)
	require.NoError(t, err)
	require.Len(t, b, 32)
	r := ring(t, one, other)
	require.Equal(t, kid, r.SigningKeyID())
	_, err = r.Ticket(signTicket(t, r, ticket()))
	require.NoError(t, err)
}

// holder has secrets where printers do not call their methods.
type holder struct {
	ring  credential.Ring
	keys  *credential.Ring
	token credential.Token
}

func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	token, err := r.SignGrant(grant())
	require.NoError(t, err)
	var b bytes.Buffer
	for _, v := range []any{r, *r, token, &token, holder{*r, r, token}, &holder{*r, r, token}, []any{r, token}, map[string]any{"r": *r, "t": token}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&b, verb+"\n", v)
		}
		for _, h := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
			slog.New(h).Info("canary", "value", v, slog.Group("in", "value", v))
		}
		j, err := json.Marshal(v)
		require.NoError(t, err)
		b.Write(j)
	}
	out := b.String()
	signature := token.Reveal()[strings.LastIndexByte(token.Reveal(), '.')+1:] // a header is no secret
	for _, secret := range [][]byte{secretA, secretB, seedE, []byte(signature)} {
		for form, text := range spellings(secret) {
			require.False(t, strings.Contains(out, text), "a secret was printed as %s", form)
		}
	}
}

// spellings of a secret that a printer could use; any long piece gives it away.
func spellings(secret []byte) map[string]string {
	part := secret[:24]
	return map[string]string{
		"text":      string(part),
		"base64":    b64(part),
		"hex":       fmt.Sprintf("%x", part),
		"upper hex": fmt.Sprintf("%X", part),
		"bytes":     strings.Trim(fmt.Sprint(part), "[]"),
		"Go bytes":  strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", part), "[]byte{"), "}"),
	}
}

func TestPrintedRingsAndTokensSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	r := first(t, "b")
	token, err := r.SignTicket(ticket())
	require.NoError(t, err)
	require.Equal(t, "keys b,e,a", fmt.Sprint(r))
	require.Equal(t, "keys b,e,a", fmt.Sprintf("%#v", *r))
	require.Equal(t, "[redacted] [redacted]", fmt.Sprintf("%v %#v", token, token))
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "ring", r, "token", token)
	require.Contains(t, b.String(), `"ring":["b","e","a"],"token":"[redacted]"`)
	j, err := json.Marshal([]any{r, token})
	require.NoError(t, err)
	require.JSONEq(t, `[["b","e","a"],"[redacted]"]`, string(j))
	require.Empty(t, credential.Token{}.Reveal())
}
