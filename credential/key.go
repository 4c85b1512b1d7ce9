package credential

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/netip"
	"regexp"
	"strings"
	"sync"

	"github.com/golang-jwt/jwt/v5"
)

// minSecret is the shortest HS256 key in bytes, as RFC 7518 section 3.2 has it.
const minSecret = 32

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// key signs and verifies with one secret and one algorithm, chosen when the key
// was read and never by what a credential says of itself.
type key struct {
	id     string
	method jwt.SigningMethod
	header string            // the first segment of all that this key signs
	public ed25519.PublicKey // of an Ed25519 key; nil of any other
	// The secret is held by closures: nothing that prints values by reflection,
	// a failed assertion say, can reach it.
	signed func(*jwt.Token) (string, error)
	seal   func(text string) ([]byte, error) // the signature of what is no JWT
	verify jwt.Keyfunc
	fast   *sync.Pool // of *scratch, of an HS256 key; nil of any other
	bind   func(member string, network netip.Prefix) string
}

// parseKey reads what follows the key id: base64, or ed25519:base64. Its errors
// repeat nothing of the text.
func parseKey(id, text string) (*key, error) {
	if seed, ok := strings.CutPrefix(text, "ed25519:"); ok {
		b, err := decode(seed)
		if err != nil || len(b) != ed25519.SeedSize {
			return nil, errors.New("an ed25519 seed must be 32 bytes of base64")
		}
		private := ed25519.NewKeyFromSeed(b)
		k, err := newKey(id, jwt.SigningMethodEdDSA, private, private.Public())
		if err == nil {
			k.public, k.bind = private.Public().(ed25519.PublicKey), binder(b)
		}
		return k, err
	}
	secret, err := decode(text)
	if err != nil || len(secret) < minSecret {
		return nil, errors.New("a key must be base64 of at least 32 bytes")
	}
	k, err := newKey(id, jwt.SigningMethodHS256, secret, secret)
	if err == nil {
		k.bind, k.fast = binder(secret), newScratches(secret)
	}
	return k, err
}

func newKey(id string, method jwt.SigningMethod, signing, verifying any) (*key, error) {
	k := &key{
		id:     id,
		method: method,
		signed: func(t *jwt.Token) (string, error) { return t.SignedString(signing) },
		seal:   func(text string) ([]byte, error) { return method.Sign(text, signing) },
		verify: func(*jwt.Token) (any, error) { return verifying, nil },
	}
	text, err := k.token(&claims{}).SigningString()
	if err != nil {
		return nil, err
	}
	k.header, _, _ = strings.Cut(text, ".")
	return k, nil
}

func (k *key) token(c *claims) *jwt.Token {
	t := jwt.NewWithClaims(k.method, c)
	t.Header["kid"] = k.id
	return t
}

// decode takes base64 in either alphabet, padded or not: people make keys with
// different tools.
func decode(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	return base64.RawStdEncoding.DecodeString(s)
}
