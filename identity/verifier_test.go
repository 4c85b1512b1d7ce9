package identity

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/provider"
)

func TestATokenOfEachAlgorithmOnTheListPasses(t *testing.T) {
	t.Parallel()
	for _, algorithm := range Algorithms {
		f := setUp(t, func(c *Config) { c.Algorithms = []string{algorithm} })
		f.p.Use(provider.NewKey(t, "k", algorithm))
		claims := f.good(f.p.Token(t, "ann", map[string]any{"roles": []string{"a", "b"}}))
		require.Equal(t, Claims{"sub": {"ann"}, "roles": {"a", "b"}}, claims, algorithm)

		other := setUp(t, func(c *Config) { c.Algorithms = []string{"none-of-these"} })
		other.p.Use(provider.NewKey(t, "k", algorithm))
		other.bad(other.p.Token(t, "ann", nil), algorithm+" that is not on the list")
	}
}

// S2: none of these says which of them it was.
func TestTokensThatAreNotGoodAreAllRefusedAlike(t *testing.T) {
	t.Parallel()
	f := setUp(t, func(c *Config) { c.Algorithms = Algorithms })
	key, stranger := provider.NewKey(t, "first", "ES256"), provider.NewKey(t, "first", "ES256")
	f.p.Use(key)
	f.good(key.Sign(t, f.p.Claims("ann", nil), nil))
	now := f.now()
	for what, more := range map[string]map[string]any{
		"expired":              {"exp": now.Add(-Leeway - 2*time.Second).Unix()},
		"without expiry":       {"exp": nil},
		"expiry as text":       {"exp": "4102444800"},
		"of later":             {"nbf": now.Add(Leeway + 2*time.Second).Unix()},
		"for somebody else":    {"aud": "another-app"},
		"for nobody":           {"aud": nil},
		"of another issuer":    {"iss": f.p.URL + "/other"},
		"of no issuer":         {"iss": nil},
		"of an issuer's child": {"iss": f.p.URL + "."},
	} {
		f.bad(key.Sign(t, f.p.Claims("ann", more), nil), "a token "+what)
	}
	for what, header := range map[string]map[string]any{
		"alg none":                {"alg": "none"},
		"alg None":                {"alg": "None"},
		"another alg":             {"alg": "RS256"},
		"HS256 over a public key": {"alg": "HS256"},
		"kid as a path":           {"kid": "../../etc/passwd"},
		"kid as a URL":            {"kid": f.p.KeysURL()},
		"kid as a number":         {"kid": 1},
		"an empty kid":            {"kid": ""},
		"crit":                    {"crit": []string{"exp"}},
	} {
		f.bad(key.Sign(t, f.p.Claims("ann", nil), header), what)
	}
	good := key.Sign(t, f.p.Claims("bob", nil), nil)
	header, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	for what, token := range map[string]string{
		"signed by a stranger": stranger.Sign(t, f.p.Claims("ann", nil), nil),
		"without signature":    header + "." + payload + ".",
		"two parts":            header + "." + payload,
		"four parts":           good + ".x",
		"a changed payload":    header + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"eve"}`)) + "." + signature,
		"a line end":           good + "\n",
		"padding":              good + "=",
		"nothing":              "",
		"a word":               "token",
		"too long":             key.Sign(t, f.p.Claims("ann", map[string]any{"x": strings.Repeat("a", maxLength)}), nil),
		"another spelling":     good[:len(good)-1] + respelled(good[len(good)-1]),
	} {
		f.bad(token, what)
	}
}

// respelled is another last letter for the same bytes: base64 leaves some of its
// bits unused there.
func respelled(letter byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, letter)^1])
}

// The public halves of keys are public: whoever signs HS256 with the text of one
// must not pass, also where HS256 is on the list.
func TestAPublicKeyIsNoSecret(t *testing.T) {
	t.Parallel()
	f := setUp(t, func(c *Config) { c.Algorithms = Algorithms })
	f.p.Use(provider.NewKey(t, "rsa", "RS256"))
	set := provider.Set(provider.NewKey(t, "rsa", "RS256"))
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, f.p.Claims("ann", nil))
	token.Header["kid"] = "rsa"
	text, err := token.SignedString(set)
	require.NoError(t, err)
	f.bad(text, "HS256 with a public key")
}

func TestATokenIsGoodWithinTheLeewayAndNoLonger(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	end := f.now().Truncate(time.Second).Add(time.Minute)
	token := f.p.Token(t, "ann", map[string]any{"exp": end.Unix(), "nbf": f.now().Add(Leeway / 2).Unix()})
	f.good(token)
	f.pass(end.Add(Leeway - time.Second).Sub(f.now()))
	f.good(token)
	f.pass(2 * time.Second)
	f.bad(token, "a token that was good a moment ago")
}

func TestWithoutAKidThereMustBeNoChoice(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	one, two, other := provider.NewKey(t, "one", "ES256"), provider.NewKey(t, "two", "ES256"), provider.NewKey(t, "rsa", "RS256")
	f.p.Use(one, other)
	token := one.Sign(t, f.p.Claims("ann", nil), map[string]any{"kid": nil})
	f.good(token)
	f.p.Use(one, two)
	f.pass(keysAge)
	f.keys.newer(t.Context())
	f.bad(token, "a token without kid, with two keys to choose from")
	f.bad(two.Sign(t, f.p.Claims("ann", nil), map[string]any{"kid": nil}), "nor does the other key count")
}

func TestClaimsThatAreNoTextAreNoNames(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, c := range []struct {
		sub  any
		want []string
	}{
		{"ann", []string{"ann"}}, {42, []string{"42"}}, {[]any{"a", 7}, []string{"a", "7"}},
		{1.5, []string{}}, {-1, []string{}}, {true, []string{}}, {[]any{}, []string{}},
		{[]any{"a", true}, []string{}}, {map[string]any{"a": "b"}, []string{}}, {nil, nil},
	} {
		require.Equal(t, c.want, f.good(f.p.Token(t, "", map[string]any{"sub": c.sub}))["sub"], "%v", c.sub)
	}
	users := Users{Verifier: f.Verifier, MemberClaim: "sub"}
	for _, sub := range []any{nil, true, []any{"ann", "bob"}} {
		_, _, err := users.User(t.Context(), f.p.Token(t, "", map[string]any{"sub": sub}))
		require.ErrorIs(t, err, ErrInvalid, "%v", sub)
	}
}
