package credential

import (
	"crypto/rand"
	"encoding/base64"

	"github.com/google/uuid"
)

// maxMember is the longest id of a member, in bytes.
const maxMember = 128

// maxRoom is the longest name of a room, in bytes.
const maxRoom = 64

// validRoom takes what package room does: 1 to 64 lower-case letters, digits,
// hyphens and underscores, of which the first is a letter or a digit.
func validRoom(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', i > 0 && (c == '-' || c == '_'):
		default:
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxRoom
}

// NewMember returns an id for somebody who has none of their own: 128 random
// bits in 22 characters of base64url.
func NewMember() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// ValidMember tells whether s can be the id of a member: 1 to 128 bytes of
// printable ASCII without spaces. So an id can't forge a line of a log, a
// header or a field of a Redis reply, and has one spelling only.
func ValidMember(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxMember
}

// NewGrantID returns an id for a grant in the text form of a UUID. All 128 bits
// are random: a version 4 UUID would give six of them away.
func NewGrantID() string {
	var id uuid.UUID
	rand.Read(id[:])
	return id.String()
}

// validGrantID takes the one spelling that NewGrantID and Postgres use, not the
// others that uuid.Parse knows: a grant is looked up by this text.
func validGrantID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}
