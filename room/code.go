package room

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"
)

// ErrCode is the answer to every access code that does not count: wrong, used up,
// revoked, or of another room.
var ErrCode = errors.New("room: access code refused")

const (
	// codeAlphabet leaves out the letters that people read or type as digits, and
	// U, without which hardly a word can be spelled. (Crockford's base 32.)
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	codeLength   = 20 // characters, of 5 bits each
	codeGroup    = 5
	codeEnding   = 4 // characters that operators are shown
	// maxTyped is how long a code may be typed, hyphens and spaces included.
	maxTyped = 64
	// MaxCodes is how many codes one call may make.
	MaxCodes   = 10_000
	maxCodeUse = 1_000_000
)

// NewCode makes an access code, such as 7K2M9-..., of 100 random bits. 80 of them
// stay unknown to who sees its ending.
func NewCode() string {
	var random [codeLength]byte
	rand.Read(random[:])
	var b strings.Builder
	for i, r := range random {
		if i > 0 && i%codeGroup == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(codeAlphabet[r%32])
	}
	return b.String()
}

// CodeHash is what is kept of a code.
type CodeHash [sha256.Size]byte

// ParseCode reads a code as people type it: in either case, with or without
// hyphens and spaces, with O for 0 and I or L for 1. ok is false for what can't
// be a code, about which nobody need be asked.
func ParseCode(typed string) (hash CodeHash, ending string, ok bool) {
	if len(typed) > maxTyped {
		return CodeHash{}, "", false
	}
	plain := strings.NewReplacer("-", "", " ", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(typed))
	for i := range len(plain) {
		if strings.IndexByte(codeAlphabet, plain[i]) < 0 {
			return CodeHash{}, "", false
		}
	}
	if len(plain) != codeLength {
		return CodeHash{}, "", false
	}
	return sha256.Sum256([]byte("linekeeper-access-code:" + plain)), plain[codeLength-codeEnding:], true
}

// NewCodes is what an operator wants codes for.
type NewCodes struct {
	Lane  string // empty: the lane of whoever shows one
	Uses  int    // members in each sale, per code
	Count int
}

// ParseNewCodes reads it; lane may be left out, and uses and count are 1 then. The
// error is ErrJSON or Problems. That the room has the lane is for others to say.
func ParseNewCodes(json []byte) (NewCodes, error) {
	doc, err := DecodeObject(json)
	if err != nil {
		return NewCodes{}, err
	}
	c := NewCodes{Uses: 1, Count: 1}
	wrong := unknown(doc, "property of codes", "lane", "uses", "count")
	for _, n := range []struct {
		name string
		at   *int
		most int
	}{{"uses", &c.Uses, maxCodeUse}, {"count", &c.Count, MaxCodes}} {
		if v, given := doc[n.name]; given {
			whole, ok := wholeNumber(v)
			if !ok || whole < 1 || whole > n.most {
				wrong = append(wrong, notWhole(1, n.most, v).under(n.name)...)
			}
			*n.at = whole
		}
	}
	if v, given := doc["lane"]; given && v != nil {
		lane, ok := v.(string)
		if !ok || !laneForm.MatchString(lane) {
			wrong = append(wrong, problem("must match %s, got %s", laneForm, got(v)).under("lane")...)
		}
		c.Lane = lane
	}
	return c, wrong.err()
}

// Fits tells what keeps codes for a lane from being made in a room with these
// settings.
func (s Settings) Fits(lane string) Problems {
	if lane == "" || slices.ContainsFunc(s.Lanes, func(l Lane) bool { return l.Name == lane }) {
		return nil
	}
	return problem("must be a lane of the room, got %s", got(lane)).under("lane")
}

// Code is an access code as operators see it.
type Code struct {
	ID        int64      `json:"id"`
	Batch     int64      `json:"batch"`  // those made by one call
	Ending    string     `json:"ending"` // its last characters
	Lane      *string    `json:"lane"`   // nil: that of whoever shows it
	Uses      int        `json:"uses"`   // members in each sale
	Used      int        `json:"used"`   // in the sale that runs
	MadeAt    time.Time  `json:"madeAt"`
	RevokedAt *time.Time `json:"revokedAt"` // nil: it has not been
}

// Revocation names the codes that are to count no more: one, or those made
// together.
type Revocation struct {
	ID    int64 `json:"id,omitempty"`
	Batch int64 `json:"batch,omitempty"`
}

// ParseRevocation reads it: an id or a batch, not both. The error is ErrJSON or
// Problems.
func ParseRevocation(json []byte) (Revocation, error) {
	doc, err := DecodeObject(json)
	if err != nil {
		return Revocation{}, err
	}
	var r Revocation
	wrong := unknown(doc, "property of a revocation", "id", "batch")
	for name, at := range map[string]*int64{"id": &r.ID, "batch": &r.Batch} {
		if v, given := doc[name]; given {
			n, ok := wholeNumber(v)
			if !ok || n < 1 {
				wrong = append(wrong, problem("must be a whole number from 1 on, got %s", got(v)).under(name)...)
			}
			*at = int64(n)
		}
	}
	if len(wrong) == 0 && (r.ID == 0) == (r.Batch == 0) {
		wrong = append(wrong, problem("must be there, or batch, and not both").under("id")...)
	}
	return r, wrong.err()
}
