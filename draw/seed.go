package draw

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Seed decides a draw: 256 random bits, written as 64 lower-case hexadecimal
// digits. Until the draw is over it is a secret worth every place in the line,
// so it never shows: however it is printed, marshalled or logged.
type Seed struct{ text string }

// NewSeed makes a seed that nobody can foresee.
func NewSeed() Seed {
	var b [32]byte
	rand.Read(b[:])
	return Seed{hex.EncodeToString(b[:])}
}

// ParseSeed reads a seed. It takes the one spelling that Reveal gives: the text
// itself is what is hashed.
func ParseSeed(text string) (Seed, error) {
	if _, err := ParseHash(text); err != nil {
		return Seed{}, errors.New("a seed has 64 lower-case hexadecimal digits")
	}
	return Seed{text}, nil
}

// Reveal gives the seed itself, to where it is kept and, when the draw is over,
// to everybody.
func (s Seed) Reveal() string { return s.text }

// Commitment is what is published before anybody enters: the SHA-256 of the
// seed's text. Nobody can find another seed with the same one.
func (s Seed) Commitment() Hash { return sha256.Sum256([]byte(s.text)) }

const redacted = "REDACTED"

// String hides the seed.
func (Seed) String() string { return redacted }

// Format hides the seed from every verb.
func (Seed) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the seed from JSON and the like. Documents of a draw that is
// over hold its text.
func (Seed) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the seed from slog.
func (Seed) LogValue() slog.Value { return slog.StringValue(redacted) }

// Hash is a SHA-256 or an HMAC-SHA256: a commitment, an entrant, a node of the
// tree. As text it is 64 lower-case hexadecimal digits, in this spelling only.
type Hash [sha256.Size]byte

// ParseHash reads a hash.
func ParseHash(text string) (h Hash, err error) {
	if !h.read([]byte(text)) {
		return Hash{}, errors.New("want 64 lower-case hexadecimal digits")
	}
	return h, nil
}

// read takes the one spelling; hex.Decode would take capitals as well.
func (h *Hash) read(text []byte) bool {
	if len(text) != hex.EncodedLen(len(h)) {
		return false
	}
	for _, c := range text {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(h[:], text)
	return err == nil
}

// String is the hash as it is published.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText is String.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is ParseHash.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}
