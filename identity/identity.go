// Package identity believes tokens that others have issued: the user tokens of
// an application, and those that operators get from an OpenID provider. All of
// them are JWTs, signed with keys that their issuer publishes.
//
// # Promises
//
// What passes was signed by a key of the issuer's set, with an algorithm that is
// on the list and that fits the type of the key; it names the issuer and the
// audience, and is of this time. All else is ErrInvalid, whatever the reason.
//
// The keys that were read last stay in force while their source is away. Made-up
// key ids cause at most one read in ten seconds, however many come.
//
//	token -> seen before? -> claims
//	            | no
//	            v
//	         key by kid --unknown--> read the source again, if that may be -> key by kid
//
// # What it does not do
//
// It issues nothing, and can't know of a token that its issuer has taken back:
// that one is good until it ends, or until its key leaves the set. A key id is
// only looked up in the set; it never names a file or an address.
package identity

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrInvalid is the answer to every token that does not pass.
	ErrInvalid = errors.New("identity: token invalid")
	// ErrUnavailable means that no key has been read yet, so that nothing can be
	// said about any token.
	ErrUnavailable = errors.New("identity: the keys have not been read yet")
)

const (
	// Leeway is how far the clock of an issuer may be off from this machine's.
	Leeway = 30 * time.Second
	// maxLength of a token, in bytes: half of what all headers may have.
	maxLength = 8 << 10
)

// Algorithms are those that can be put on a list, all of them with one size of
// key: RS256 from 2048 bits on, ES256 with P-256, EdDSA with Ed25519, HS256 with
// a secret of 32 bytes or more.
var Algorithms = []string{"RS256", "ES256", "EdDSA", "HS256"}

// Source reads a JSON Web Key Set, anew at each call.
type Source func(ctx context.Context) ([]byte, error)

// Config says what a token must be.
type Config struct {
	Source     Source
	Algorithms []string
	Issuer     string
	Audience   string
	// Claims are the names of those that Verify returns.
	Claims []string
}

// Claims has what a token says, by the names in Config.Claims. A claim that is
// missing or null is not there; one that is neither text nor a whole number nor
// a list of those is there with no values. Nobody may write to it.
type Claims map[string][]string

// One is the claim of that name, if it has exactly one value.
func (c Claims) One(name string) (string, bool) {
	if v := c[name]; len(v) == 1 {
		return v[0], true
	}
	return "", false
}
