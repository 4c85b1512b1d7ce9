// Package credential makes and checks the two things that a member shows: the
// queue ticket, which is a place signed, and the entry token, which is a grant
// signed. Both are JWTs, so that other services can check them as well.
//
// # Promises
//
// Whatever passes was made by a holder of a key in the ring, for the purpose
// that it is shown for: the two audiences differ, so a ticket never passes as
// an entry token. Nothing but the very bytes that were signed passes: no other
// spelling, no other header, no further claim. One grant gives the same token
// on every process that has its key, also while keys are being rotated. All
// that is refused is refused with ErrInvalid, whatever the reason.
//
// # Keys
//
//	LINEKEEPER_KEYS = new:base64,old:base64
//	                  |          +-- still verifies: nobody is logged out
//	                  +-- signs all tickets, and the grants picked up from now on
//
// A new key goes to the end of the list on every process first, to the front
// next, and the old one leaves when TicketTTL has passed.
//
// # What it does not do
//
// It judges no time: issue and expiry are signed, but a caller compares them
// with Redis time, because application clocks may be wrong. It knows nothing
// of grants that are spent or revoked; only a claim can tell.
package credential

import "errors"

// ErrInvalid is the answer to every credential that does not pass: malformed,
// forged, of an unknown key, too long or meant for something else. It says no
// more than that on purpose, so that a forger learns nothing from it.
var ErrInvalid = errors.New("credential: invalid")

const (
	// maxLength of a credential in bytes. The largest one of ours, with a room,
	// a member and a key id of full length, stays below it.
	maxLength = 2048
	// maxExact is the largest integer up to which a Lua number is exact.
	maxExact = 1 << 53
	// maxSecond is the end of the year 9999: the last that RFC 3339 can write.
	maxSecond = 253402300799
	// maxWork is the most bits of work that a ticket can ask for.
	maxWork = 32
)

// The audiences keep tickets and entry tokens apart.
const (
	ticketAudience = "linekeeper-ticket"
	tokenAudience  = "linekeeper-token"
)
