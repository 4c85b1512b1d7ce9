// Package draw gives places by lot, so that anybody can check them afterwards.
//
// Those who enter a room before it admits get a place that depends on a secret
// seed and on who they are, and on nothing else: not on when they entered, nor
// on who else did. The place is final when it is given. The hash of the seed, the
// commitment, is published when the room opens, and the seed itself once the
// draw is over, together with the list of entrants.
//
//	room opens             people enter                admitsAt
//	    |                       |                         |
//	 commitment = SHA-256(seed) |                  seed, entrants, root
//	                            v
//	  member --HMAC--> entrant --HMAC--> lot --> key --> score (a place in the line)
//	           seed              seed     64 bits  44      50 bits of room for all
//
// # Promises
//
// Whoever has the seed can compute the key of every entrant, and whoever is a
// member can compute which entrant they are. A place that was not given by the
// seed, an entrant who was added, dropped, moved or counted twice, a list that is
// not the one of the published root, and a seed that is not the one of the
// commitment are each found by Verify. A member who leaves and enters again gets
// the same key: there is no second try.
//
// # What it does not do
//
// It does not show that the operator entered nobody of their own, nor that the
// seed was told to nobody, nor that it was the first that was made: whoever knows
// the seed can choose an id with a good place. docs/draw.md says who is trusted
// with what. The package keeps nothing and talks to nobody; it uses the standard
// library only.
package draw

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
)

// What is hashed begins with these, so that no hash of one kind is one of
// another. They are the version of the rules: other rules get other words.
const (
	entrantDomain = "linekeeper-draw-v1-entrant"
	placeDomain   = "linekeeper-draw-v1-place"
)

// Draw is the draw of one room in one sale.
type Draw struct {
	Room string
	Sale int64
	Seed Seed
}

// Entrant is the name of a member in the published list: it says who somebody is
// only to those who know the member's id, and nothing before the seed is known.
func (d Draw) Entrant(member string) Hash { return d.hasher().entrant(member) }

// Lot is what the seed gives an entrant: 64 bits that nobody who does not know
// the seed can tell from random ones. Smaller is further in front.
func (d Draw) Lot(entrant Hash) uint64 { return d.hasher().lot(entrant) }

// Key is the key of an entrant of a lane with that weight. The weight counts
// only where the order is Weighted.
func (d Draw) Key(entrant Hash, order Order, weight int) Key {
	return d.hasher().key(entrant, order, weight)
}

// hasher computes hashes of one draw, one after the other, and hashes the seed
// once.
type hasher struct {
	Draw
	mac  hash.Hash
	text []byte
}

func (d Draw) hasher() *hasher {
	// The seed is taken as it is written, so that people can repeat all this with
	// the tools of any shell.
	return &hasher{Draw: d, mac: hmac.New(sha256.New, []byte(d.Seed.text)), text: make([]byte, 0, 256)}
}

// hash divides the parts by line feeds. A room's name has none and the sale is a
// number, so no two triples have the same text, whatever a member is called.
func (h *hasher) hash(domain string, of []byte) (sum Hash) {
	h.text = append(append(h.text[:0], domain...), '\n')
	h.text = append(append(h.text, h.Room...), '\n')
	h.text = append(strconv.AppendInt(h.text, h.Sale, 10), '\n')
	h.text = append(h.text, of...)
	h.mac.Reset()
	h.mac.Write(h.text)
	h.mac.Sum(sum[:0])
	return sum
}

func (h *hasher) entrant(member string) Hash { return h.hash(entrantDomain, []byte(member)) }

func (h *hasher) lot(entrant Hash) uint64 {
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], entrant[:])
	sum := h.hash(placeDomain, text[:])
	return binary.BigEndian.Uint64(sum[:])
}

func (h *hasher) key(entrant Hash, order Order, weight int) Key {
	if order == Weighted {
		return WeightedKey(h.lot(entrant), weight)
	}
	return UniformKey(h.lot(entrant))
}
