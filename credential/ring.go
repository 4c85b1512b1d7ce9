package credential

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/golang-jwt/jwt/v5"
)

// Ring is an ordered set of keys: the first signs, all verify. It may be used by
// many goroutines, and Replace changes its keys under them; a copy is the same
// ring. Printing, logging or marshalling one shows the ids of its keys and
// nothing else. The zero Ring has no keys.
type Ring struct {
	set     *atomic.Pointer[keySet]
	tickets purpose
	tokens  purpose
}

// purpose is what a credential is for, and the library's parser of those that are.
type purpose struct {
	audience string
	parser   *jwt.Parser
}

// keySet is what a Ring holds at one moment.
type keySet struct {
	keys     []*key
	byID     map[string]*key
	byHeader map[string]*key // by the first segment of what the key signs
}

func (r Ring) now() *keySet {
	if r.set == nil {
		return &keySet{}
	}
	return r.set.Load()
}

// ParseRing reads kid:base64[,kid:base64], where kid is 1 to 32 letters, digits,
// hyphens or underscores and the rest an HS256 key of at least 32 bytes.
// kid:ed25519:base64 is the seed of an Ed25519 key, which signs with EdDSA.
// The error tells all that is wrong at once, by the positions of the keys, and
// shows nothing of the text: it could be a secret in the wrong place.
func ParseRing(s string) (*Ring, error) {
	r := &Ring{set: new(atomic.Pointer[keySet]), tickets: newPurpose(ticketAudience), tokens: newPurpose(tokenAudience)}
	if err := r.Replace(s); err != nil {
		return nil, err
	}
	return r, nil
}

// Replace gives the ring of ParseRing other keys, read as ParseRing reads them.
// After an error it has those it had.
func (r *Ring) Replace(s string) error {
	set, err := parseKeys(s)
	switch {
	case err != nil:
		return err
	case r.set == nil:
		return errors.New("this process uses no keys")
	}
	r.set.Store(set)
	return nil
}

func parseKeys(s string) (*keySet, error) {
	set := &keySet{byID: map[string]*key{}, byHeader: map[string]*key{}}
	var errs []error
	seen := map[string]int{} // position by key id
	for i, entry := range strings.Split(s, ",") {
		id, text, ok := strings.Cut(strings.TrimSpace(entry), ":")
		if !ok || !keyID.MatchString(id) {
			errs = append(errs, fmt.Errorf("key %d: want kid:base64, with kid like %v", i+1, keyID))
			continue
		}
		if first, ok := seen[id]; ok {
			errs = append(errs, fmt.Errorf("key %d: has the id of key %d", i+1, first))
		} else {
			seen[id] = i + 1
		}
		k, err := parseKey(id, text)
		if err != nil {
			errs = append(errs, fmt.Errorf("key %d: %w", i+1, err))
			continue
		}
		set.keys = append(set.keys, k)
		set.byID[k.id], set.byHeader[k.header] = k, k
	}
	return set, errors.Join(errs...)
}

// newPurpose has the library's parser with all that it offers to be strict: one
// audience, base64 with one spelling, and the algorithms on a list. The list is
// a second lock: verify lets no header of another algorithm come this far.
func newPurpose(audience string) purpose {
	return purpose{audience, jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg(), jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithAudience(audience),
		jwt.WithStrictDecoding(),
	)}
}

// GenerateKey returns one fresh entry for ParseRing: a random id of 8 characters
// and an HS256 key of 256 random bits. The id tells nothing of when it was made.
func GenerateKey() string { return generate("") }

// GenerateEd25519Key is GenerateKey with an Ed25519 key: what it signs, others
// can verify by JWKS and can't make.
func GenerateEd25519Key() string { return generate("ed25519:") }

func generate(kind string) string {
	var secret [minSecret]byte // an Ed25519 seed is as long
	rand.Read(secret[:])
	id := strings.ToLower(rand.Text()[:8])
	return id + ":" + kind + base64.StdEncoding.EncodeToString(secret[:])
}

// SigningKeyID is the id of the key that signs: the first.
func (r *Ring) SigningKeyID() string {
	keys := r.now().keys
	if len(keys) == 0 {
		return ""
	}
	return keys[0].id
}

// Has tells whether the ring can verify what the key kid has signed.
func (r *Ring) Has(kid string) bool {
	_, ok := r.now().byID[kid]
	return ok
}

// sign signs with the key kid. The same claims give the same bytes, also with
// EdDSA, which takes no randomness.
func (r *Ring) sign(kid string, c *claims) (Token, error) {
	k, ok := r.now().byID[kid]
	if !ok {
		return Token{}, fmt.Errorf("no key %q in the ring", kid)
	}
	if s, ok := k.signFast(c); ok {
		return newToken(s), nil
	}
	s, err := k.signed(k.token(c))
	if err != nil {
		return Token{}, err
	}
	return newToken(s), nil
}

// verify returns the claims of s and the id of the key that signed them. What
// the claims say is for the caller to check.
//
// The header must be, byte for byte, one that a key of the ring writes. So the
// header picks no algorithm, can name no key by URL or path, and carries no
// field that we don't know; nothing of it is decoded before that.
func (r *Ring) verify(s string, p purpose) (*claims, string, error) {
	if len(s) > maxLength || strings.ContainsAny(s, "\r\n") {
		return nil, "", ErrInvalid // base64 skips line ends, so they would pass
	}
	header, rest, _ := strings.Cut(s, ".")
	k, ok := r.now().byHeader[header]
	if !ok {
		return nil, "", ErrInvalid
	}
	if c, ok := k.verifyFast(s, p.audience); ok {
		return c, k.id, nil
	}
	c := new(claims)
	if _, err := p.parser.ParseWithClaims(s, c, k.verify); err != nil {
		return nil, "", ErrInvalid
	}
	payload, _, _ := strings.Cut(rest, ".")
	if !c.encodesTo(payload) {
		return nil, "", ErrInvalid
	}
	return c, k.id, nil
}

func (r Ring) ids() []string {
	keys := r.now().keys
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.id
	}
	return ids
}

// String lists the key ids, the one that signs first.
func (r Ring) String() string { return "keys " + strings.Join(r.ids(), ",") }

// GoString is String: %#v shows no secret either.
func (r Ring) GoString() string { return r.String() }

// LogValue is the list of key ids.
func (r Ring) LogValue() slog.Value { return slog.AnyValue(r.ids()) }

// MarshalJSON gives the list of key ids.
func (r Ring) MarshalJSON() ([]byte, error) { return json.Marshal(r.ids()) }
