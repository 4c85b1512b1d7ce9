package identity

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxVerified is how many tokens are remembered for sure; twice as many at most,
// of some 300 bytes each.
const maxVerified = 16 << 10

// verified remembers tokens that have passed, by their SHA-256, so that somebody
// who polls costs a signature once. It has two halves: what is used moves to the
// young one, and when that is full the old one goes as a whole.
type verified struct {
	mu         sync.RWMutex
	young, old map[[sha256.Size]byte]passed
}

// passed is what a token said, and until when it is good.
type passed struct {
	claims Claims
	until  time.Time
}

func newVerified() *verified {
	return &verified{young: map[[sha256.Size]byte]passed{}}
}

func (v *verified) get(sum [sha256.Size]byte, now time.Time) (Claims, bool) {
	v.mu.RLock()
	p, young := v.young[sum]
	old := false
	if !young {
		p, old = v.old[sum]
	}
	v.mu.RUnlock()
	if !young && !old || !now.Before(p.until) {
		return nil, false
	}
	if old {
		v.put(sum, p)
	}
	return p.claims, true
}

func (v *verified) put(sum [sha256.Size]byte, p passed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.young) >= maxVerified {
		v.young, v.old = map[[sha256.Size]byte]passed{}, v.young
	}
	v.young[sum] = p
}
