package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
)

// Role is what a token's owner may do. Each role may do all that the ones
// below it may.
type Role int

// The roles, lowest first. The zero Role may do nothing.
const (
	Viewer   Role = 1 + iota // read
	Operator                 // change settings, pause, resume, drain, products, requeue
	Admin                    // create, flush and delete rooms
)

var roleNames = map[Role]string{Viewer: "viewer", Operator: "operator", Admin: "admin"}

// String is the role's name in ParseTokens and in the audit list, empty for a
// number that is no role.
func (r Role) String() string { return roleNames[r] }

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	for role, known := range roleNames {
		if name == known {
			return role, nil
		}
	}
	return 0, errors.New("the role must be viewer, operator or admin")
}

// Tokens are the bearer tokens that the API accepts, by their SHA-256. The
// tokens themselves are nowhere in the process.
type Tokens struct{ entries []entry }

// entry is one token's owner. The zero entry has no role and may do nothing.
type entry struct {
	name string
	role Role
	hash [sha256.Size]byte
}

// LogValue keeps the hashes out of logs.
func (t *Tokens) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("%d tokens", len(t.entries)))
}

// tokenName is for the audit list and logs: it can't forge a line.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// ParseTokens reads name:role:sha256hex, separated by commas. The error has
// everything wrong with the list, and never shows a third part: people paste
// the token itself there by mistake. An empty list is no error; nothing is
// accepted then.
func ParseTokens(s string) (*Tokens, error) {
	t := &Tokens{}
	if strings.TrimSpace(s) == "" {
		return t, nil
	}
	var wrong []error
	for i, text := range strings.Split(s, ",") {
		e, err := parseEntry(strings.TrimSpace(text))
		if err == nil {
			err = t.add(e)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("admin token %d: %w", i+1, err))
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return t, nil
}

// parseEntry tells all that is wrong with one entry.
func parseEntry(text string) (entry, error) {
	// Splitting at every colon: a fourth part is a mistake, never part of a hash.
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return entry{}, errors.New("must be name:role:sha256hex")
	}
	e := entry{name: parts[0]}
	var wrong []error
	if !tokenName.MatchString(e.name) {
		wrong = append(wrong, fmt.Errorf("the name must match %s", tokenName))
	}
	var err error
	if e.role, err = ParseRole(parts[1]); err != nil {
		wrong = append(wrong, err)
	}
	hash, err := hex.DecodeString(parts[2])
	switch nothing := sha256.Sum256(nil); {
	case err != nil || len(hash) != sha256.Size:
		wrong = append(wrong, errors.New("the third part must be the token's SHA-256 as 64 hexadecimal digits"))
	case subtle.ConstantTimeCompare(hash, nothing[:]) == 1:
		wrong = append(wrong, errors.New("the third part is the SHA-256 of nothing: the token was empty where it was made"))
	}
	// A hash of the wrong length has been complained about and goes nowhere.
	copy(e.hash[:], hash)
	return e, errors.Join(wrong...)
}

// add refuses what would make the audit list ambiguous.
func (t *Tokens) add(e entry) error {
	for _, other := range t.entries {
		if other.name == e.name {
			return fmt.Errorf("the name %s is there twice", e.name)
		}
		if subtle.ConstantTimeCompare(other.hash[:], e.hash[:]) == 1 {
			return fmt.Errorf("the token of %s is that of %s too", e.name, other.name)
		}
	}
	t.entries = append(t.entries, e)
	return nil
}

// find compares with every entry, so that the time taken tells nothing about
// which one it was, nor how much of it was right.
func (t *Tokens) find(token string) (entry, bool) {
	var found entry
	if t == nil || token == "" {
		return found, false
	}
	hash := sha256.Sum256([]byte(token))
	for _, e := range t.entries {
		if subtle.ConstantTimeCompare(hash[:], e.hash[:]) == 1 {
			found = e
		}
	}
	return found, found.role != 0
}

// NewToken makes a token of 256 random bits, and its entry for ParseTokens.
// The token can't be had from the entry: show it once.
func NewToken(name string, role Role) (token, line string, err error) {
	if !tokenName.MatchString(name) {
		return "", "", fmt.Errorf("new token: the name must match %s", tokenName)
	}
	if roleNames[role] == "" {
		return "", "", fmt.Errorf("new token: no role %d", role)
	}
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", "", fmt.Errorf("new token: %w", err)
	}
	token = base64.RawURLEncoding.EncodeToString(random)
	return token, fmt.Sprintf("%s:%s:%x", name, role, sha256.Sum256([]byte(token))), nil
}
