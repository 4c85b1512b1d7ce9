package fault

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Dice makes choices that a seed decides. It is safe for concurrent use; but
// the choices of two goroutines that share one depend on who comes first, so
// each actor of a run should have its own, by Of.
type Dice struct {
	seed uint64
	mu   sync.Mutex
	rand *rand.Rand
}

// NewDice returns the dice of a seed.
func NewDice(seed uint64) *Dice {
	return &Dice{seed: seed, rand: rand.New(rand.NewPCG(seed, 0x6c696e656b656570))}
}

// Of returns the dice of one actor. They depend on whose they are and on the
// name alone, not on what has been drawn before: one actor more does not change
// the others.
func (d *Dice) Of(name string) *Dice {
	h := fnv.New64a()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, d.seed))
	_, _ = h.Write([]byte(name))
	return NewDice(h.Sum64())
}

// Chance is true with probability p.
func (d *Dice) Chance(p float64) bool { return d.Float() < p }

// Float is in [0, 1).
func (d *Dice) Float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.Float64()
}

// Below is in [0, n).
func (d *Dice) Below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.IntN(n)
}

// Between is from shortest up to longest.
func (d *Dice) Between(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(d.Float()*float64(longest-shortest))
}

// Shuffle puts n things in a random order.
func (d *Dice) Shuffle(n int, swap func(i, j int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rand.Shuffle(n, swap)
}
