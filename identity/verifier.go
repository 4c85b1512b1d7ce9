package identity

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Verifier verifies the tokens of one issuer. It may be used by many goroutines.
type Verifier struct {
	keys   *cached
	parser *jwt.Parser
	names  []string
}

// New returns a verifier, which has no keys until Run has read them or a token
// has asked for them.
func New(c Config, log *slog.Logger) *Verifier {
	v := &Verifier{keys: newCached(c.Source, log), names: c.Claims}
	v.parser = jwt.NewParser(
		jwt.WithValidMethods(c.Algorithms), jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(Leeway), jwt.WithStrictDecoding(), jwt.WithJSONNumber(),
		jwt.WithTimeFunc(func() time.Time { return v.keys.now() }),
	)
	return v
}

// Run keeps the keys fresh until ctx ends.
func (v *Verifier) Run(ctx context.Context) error { return v.keys.run(ctx) }

// Ready tells whether keys have been read. Before that no token can be judged.
func (v *Verifier) Ready() bool { return v.keys.set.Load() != nil }

// errKey is a token whose key is not in the set.
var errKey = errors.New("no such key")

// Verify returns what a token says, ErrInvalid, or ErrUnavailable.
func (v *Verifier) Verify(ctx context.Context, token string) (Claims, error) {
	// base64 skips line ends, so one token would have many spellings.
	if token == "" || len(token) > maxLength || strings.ContainsAny(token, "\r\n") {
		return nil, ErrInvalid
	}
	set := v.keys.set.Load()
	if set == nil {
		if set = v.keys.newer(ctx); set == nil {
			return nil, ErrUnavailable
		}
	}
	sum := sha256.Sum256([]byte(token))
	if claims, ok := set.verified.get(sum, v.keys.now()); ok {
		return claims, nil
	}
	p, err := v.parse(token, set)
	if errors.Is(err, errKey) {
		if newer := v.keys.newer(ctx); newer != set {
			set = newer
			p, err = v.parse(token, set)
		}
	}
	if err != nil {
		return nil, ErrInvalid
	}
	set.verified.put(sum, p)
	return p.claims, nil
}

// parse judges a token by the keys of a set.
func (v *Verifier) parse(token string, set *keySet) (passed, error) {
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, given := t.Header["crit"]; given {
			return nil, ErrInvalid // it asks for something that we don't know
		}
		kid, text := t.Header["kid"].(string)
		if _, given := t.Header["kid"]; given && (!text || kid == "") {
			return nil, ErrInvalid
		}
		if key, ok := set.find(kid, t.Method.Alg()); ok {
			return key, nil
		}
		return nil, errKey
	})
	if err != nil {
		return passed{}, err
	}
	expiry, err := claims.GetExpirationTime()
	if err != nil || expiry == nil {
		return passed{}, ErrInvalid
	}
	p := passed{claims: make(Claims, len(v.names)), until: expiry.Add(Leeway)}
	for _, name := range v.names {
		if claim := claims[name]; claim != nil {
			p.claims[name] = texts(claim)
		}
	}
	return p, nil
}

// whole is a number that has one spelling.
var whole = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})$`)

// texts are the values of a claim: ids are texts or, with some issuers, numbers,
// and roles are lists. One value that is anything else makes the list empty.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case json.Number:
		if whole.MatchString(v.String()) {
			return []string{v.String()}
		}
	case []any:
		all := []string{}
		for _, item := range v {
			one := texts(item)
			if len(one) != 1 {
				return []string{}
			}
			all = append(all, one...)
		}
		return all
	}
	return []string{}
}
