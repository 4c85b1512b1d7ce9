// Package work is a puzzle that costs time to solve and none to check: a text
// whose SHA-256, behind a challenge, begins with so many zero bits.
//
// It promises that there is no quicker way than to try: a solution of n bits
// costs 2^n hashes on average, and each is good for one challenge alone. A
// challenge is the hash of a signed ticket, so that nobody can try before the
// ticket is signed.
//
//	ticket --Of--> challenge --Solve--> nonce --Done--> true
//
// It is no proof of being human, and costs a machine with many cores less time
// than a phone. It keeps nothing, and knows nothing of tickets and rooms.
package work

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"strconv"
)

const (
	// MaxBits is the most that may be asked: 16 million hashes, which take a phone
	// half a minute.
	MaxBits = 24
	// maxDigits of a nonce, beyond all that anybody has to try. With the 43
	// characters of a challenge they are hashed in one block.
	maxDigits = 12
	// checkEvery is how many hashes Solve makes before it looks at its context.
	checkEvery = 1 << 12
)

// Of is the challenge of a ticket: 43 characters.
func Of(ticket string) string {
	sum := sha256.Sum256([]byte(ticket))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Done tells whether nonce, a whole number in decimal digits, solves the challenge
// with so many bits. Nothing solves one of no bits.
func Done(challenge, nonce string, zeros int) bool {
	return zeros > 0 && ValidNonce(nonce) && leading(sha256.Sum256([]byte(challenge+nonce))) >= zeros
}

// ValidNonce tells whether s can be a nonce: 1 to 12 digits, without zeros in
// front, so that a number is written in one way only.
func ValidNonce(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxDigits && (s[0] != '0' || s == "0")
}

// Solve returns the lowest nonce that solves the challenge, or the context's error.
// It takes one core for 2^bits hashes on average, ten million of which are about
// a second.
func Solve(ctx context.Context, challenge string, zeros int) (nonce string, err error) {
	text := []byte(challenge)
	for n := int64(0); ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		try := strconv.AppendInt(text, n, 10)
		if leading(sha256.Sum256(try)) >= zeros {
			return string(try[len(text):]), nil
		}
	}
}

// leading is how many zero bits a sum begins with, up to 32.
func leading(sum [sha256.Size]byte) int {
	return bits.LeadingZeros32(binary.BigEndian.Uint32(sum[:]))
}
