package draw

import "math/bits"

// Scores of a draw or a lottery, and how they stand to all others.
//
//	score = First + 64 * key + slot       key: 44 bits, slot: 0 to 63
//
// All of them are below Beyond, which is a moment of July 2023 in microseconds:
// whoever comes later, and gets the time as score, stands behind. So a place does
// not depend on when the room admits, and that moment may still be moved. All are
// below 2^53: Redis keeps scores as float64.
//
// The slot only keeps scores apart. Two entrants of one key, of whom there is
// about one pair among six million entrants, get different slots; and somebody
// who leaves and enters again usually gets another slot of the same key, so that
// a late copy of the leaving does not find the new place.
const (
	keyBits  = 44
	slotBits = 6

	// Slots is how many scores belong to one key.
	Slots = 1 << slotBits
	// First is the lowest score there is.
	First = 1 << 49
	// Beyond is above all scores of draws and lotteries.
	Beyond = First + 1<<(keyBits+slotBits)
)

// Key is where a lot puts its entrant, whichever slot is free there.
type Key uint64

// First is the lowest score of the key. enter gets this number.
func (k Key) First() int64 { return First + int64(k)<<slotBits }

// Holds tells whether a score is one of the key's.
func (k Key) Holds(score int64) bool {
	return score >= k.First() && score < k.First()+Slots
}

// Drawn tells whether a score was given by a draw or a lottery, and so is not
// the time of entering.
func Drawn(score int64) bool { return score >= First && score < Beyond }

// UniformKey puts every entrant at each place with the same probability: it is
// the first 44 bits of the lot, 11 hexadecimal digits.
func UniformKey(lot uint64) Key { return Key(lot >> (64 - keyBits)) }

// MaxWeight is the greatest weight that a lane can have.
const MaxWeight = 1000

// WeightedKey puts entrants in weighted random order: at every place, each of
// those still left has the probability of their weight among the weights of all
// who are left (Efraimidis and Spirakis). With u as the lot divided by 2^64:
//
//	key = floor(2^38 * -log2(1 - u) / weight), at most 2^44 - 1
//
// That is their key (1-u)^(1/weight), largest first, on a scale of logarithms.
// It is computed in whole numbers, so that every machine finds the same. Weights
// are 1 to MaxWeight; the nearest of these stands for any other number.
func WeightedKey(lot uint64, weight int) Key {
	w := uint64(min(max(weight, 1), MaxWeight))
	return Key(min(minusLog2(lot)/(w<<(logBits-38)), 1<<keyBits-1))
}

// logBits are the bits of minusLog2 behind the point.
const logBits = 56

// minusLog2 is -log2(1 - u), where u is lot divided by 2^64, in units of
// 2^-logBits: 0 for a lot of 0, and at most 64. It never falls as the lot rises.
func minusLog2(lot uint64) uint64 {
	if lot == 0 {
		return 0
	}
	v := -lot // 1-u in units of 2^-64
	exponent := uint64(bits.LeadingZeros64(v))
	// m is in [1, 2), with 63 bits behind the point. Each squaring doubles its
	// logarithm, whose next bit is whether the square is 2 or more.
	m, log := v<<exponent, uint64(0)
	for range logBits {
		hi, lo := bits.Mul64(m, m)
		log <<= 1
		if hi>>63 == 1 {
			log, m = log|1, hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	return (exponent+1)<<logBits - log
}
