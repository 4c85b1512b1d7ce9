package credential

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"math"
	"strconv"
	"sync"
)

// A poll shows a ticket each time, so the one form that nearly all credentials
// have, HS256 over claims of plain text, is read and written here without the
// library: in a seventh of its time. What is read here the library reads as the
// same, and what is written here it writes with the same bytes; whatever is not
// of this form is left to it. Fuzzing holds one against the other.

// base64url is what JWTs are written in. Strict: an encoding has one spelling.
var base64url = base64.RawURLEncoding.Strict()

// signatureLength of HS256 in a JWT.
var signatureLength = base64url.EncodedLen(sha256.Size)

// scratch is what one reading or writing needs. It is used again, because making
// the MAC alone costs as much as all the rest.
type scratch struct {
	mac           hash.Hash
	text, payload [maxLength]byte
	sum, shown    [sha256.Size]byte
}

func newScratches(secret []byte) *sync.Pool {
	return &sync.Pool{New: func() any { return &scratch{mac: hmac.New(sha256.New, secret)} }}
}

// sign makes sum the MAC of text.
func (x *scratch) sign(text []byte) {
	x.mac.Reset()
	x.mac.Write(text)
	x.mac.Sum(x.sum[:0])
}

// verifyFast is verify for a credential whose header is k's, of the purpose that
// audience says. It is false where the library has to say.
func (k *key) verifyFast(s, audience string) (*claims, bool) {
	dot := len(s) - signatureLength - 1
	if k.fast == nil || len(s) > maxLength || dot <= len(k.header) || s[dot] != '.' {
		return nil, false
	}
	x := k.fast.Get().(*scratch)
	defer k.fast.Put(x)
	copy(x.text[:], s)
	if n, err := base64url.Decode(x.shown[:], x.text[dot+1:len(s)]); err != nil || n != len(x.shown) {
		return nil, false
	}
	if x.sign(x.text[:dot]); !hmac.Equal(x.sum[:], x.shown[:]) {
		return nil, false
	}
	n, err := base64url.Decode(x.payload[:], x.text[len(k.header)+1:dot])
	if err != nil {
		return nil, false
	}
	c, ok := readClaims(x.payload[:n])
	return c, ok && c.Audience == audience
}

// signFast is what the library would sign, or false where it has to.
func (k *key) signFast(c *claims) (string, bool) {
	if k.fast == nil {
		return "", false
	}
	x := k.fast.Get().(*scratch)
	defer k.fast.Put(x)
	payload, ok := c.append(x.payload[:0])
	if !ok || len(k.header)+base64url.EncodedLen(len(payload))+signatureLength+2 > maxLength {
		return "", false
	}
	text := append(append(x.text[:0], k.header...), '.')
	text = base64url.AppendEncode(text, payload)
	x.sign(text)
	return string(base64url.AppendEncode(append(text, '.'), x.sum[:])), true
}

// append writes the claims as encoding/json does, or is false where it would
// have to escape something.
func (c *claims) append(b []byte) ([]byte, bool) {
	for _, s := range []string{c.Audience, c.ID, c.Room, c.Member, c.Network} {
		for i := range len(s) {
			if !plain(s[i]) {
				return nil, false
			}
		}
	}
	text := func(name, s string) { b = append(append(append(b, name...), s...), '"') }
	number := func(name string, n int64) { b = strconv.AppendInt(append(b, name...), n, 10) }
	text(`{"aud":"`, c.Audience)
	if c.ID != "" {
		text(`,"jti":"`, c.ID)
	}
	text(`,"room":"`, c.Room)
	number(`,"sale":`, c.Sale)
	number(`,"gen":`, c.Generation)
	text(`,"sub":"`, c.Member)
	number(`,"lane":`, int64(c.Lane))
	number(`,"score":`, c.Score)
	number(`,"iat":`, c.IssuedAt)
	number(`,"exp":`, c.Expiry)
	if c.Granted {
		b = append(b, `,"granted":true`...)
	}
	if c.Work != 0 {
		number(`,"work":`, int64(c.Work))
	}
	if c.Open {
		b = append(b, `,"open":true`...)
	}
	if c.Network != "" {
		text(`,"net":"`, c.Network)
	}
	return append(b, '}'), true
}

// plain tells a character that JSON writes as it is.
func plain(c byte) bool {
	return ' ' <= c && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// readClaims reads what append writes, and nothing else.
func readClaims(payload []byte) (*claims, bool) {
	r, c := reading{rest: payload}, new(claims)
	c.Audience = r.text(`{"aud":"`)
	if r.begins(`,"jti":"`) {
		c.ID = r.filled(`,"jti":"`)
	}
	c.Room = r.text(`,"room":"`)
	c.Sale = r.number(`,"sale":`)
	c.Generation = r.number(`,"gen":`)
	c.Member = r.text(`,"sub":"`)
	c.Lane = r.small(`,"lane":`)
	c.Score = r.number(`,"score":`)
	c.IssuedAt = r.number(`,"iat":`)
	c.Expiry = r.number(`,"exp":`)
	c.Granted = r.optional(`,"granted":true`)
	if r.begins(`,"work":`) {
		c.Work = r.small(`,"work":`)
		r.bad = r.bad || c.Work == 0
	}
	c.Open = r.optional(`,"open":true`)
	if r.begins(`,"net":"`) {
		c.Network = r.filled(`,"net":"`)
	}
	r.word(`}`)
	return c, !r.bad && len(r.rest) == 0
}

// reading goes through a text from the front. After the first thing that is not
// as it has to be it is bad, and reads nothing more.
type reading struct {
	rest []byte
	bad  bool
}

func (r *reading) begins(word string) bool {
	return !r.bad && len(r.rest) >= len(word) && string(r.rest[:len(word)]) == word
}

func (r *reading) optional(word string) bool {
	found := r.begins(word)
	if found {
		r.rest = r.rest[len(word):]
	}
	return found
}

func (r *reading) word(word string) {
	if !r.optional(word) {
		r.bad = true
	}
}

// text reads a string of plain characters up to the quote that ends it.
func (r *reading) text(name string) string {
	r.word(name)
	for i := 0; i < len(r.rest) && !r.bad; i++ {
		if r.rest[i] == '"' {
			s := string(r.rest[:i])
			r.rest = r.rest[i+1:]
			return s
		}
		r.bad = !plain(r.rest[i])
	}
	r.bad = true
	return ""
}

// filled is text that is not written where it is empty.
func (r *reading) filled(name string) string {
	s := r.text(name)
	r.bad = r.bad || s == ""
	return s
}

// number reads a whole number that is not negative, in its one spelling.
func (r *reading) number(name string) int64 {
	r.word(name)
	n, digits := int64(0), 0
	for ; !r.bad && digits < len(r.rest) && '0' <= r.rest[digits] && r.rest[digits] <= '9'; digits++ {
		if n > math.MaxInt64/10-1 { // none of ours is as large
			r.bad = true
		}
		n = n*10 + int64(r.rest[digits]-'0')
	}
	if r.bad || digits == 0 || digits > 1 && r.rest[0] == '0' {
		r.bad = true
		return 0
	}
	r.rest = r.rest[digits:]
	return n
}

// small is number for what is an int on every machine.
func (r *reading) small(name string) int {
	n := r.number(name)
	r.bad = r.bad || n > math.MaxInt32
	return int(n)
}
