package draw

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// draws is how many each of these tests makes. Their seeds are fixed, so a test
// passes always or never; chance alone would fail one in a million.
const draws = 100_000

// chiSquared is how far counts are from what is expected of them.
func chiSquared(counts []int, shares []float64) float64 {
	n, sum := 0, 0.0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		want := shares[i] * float64(n)
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	return sum
}

// limit is what chiSquared of so many counts exceeds once in a million times.
// (Wilson and Hilferty's approximation; 4.7534 is that quantile of the normal
// distribution.)
func limit(counts int) float64 {
	df := float64(counts - 1)
	x := 1 - 2/(9*df) + 4.7534*math.Sqrt(2/(9*df))
	return df * x * x * x
}

func evenly(n int) []float64 {
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = 1 / float64(n)
	}
	return shares
}

func lotOf(n int, member string) uint64 { return of(n).Lot(of(n).Entrant(member)) }

// ofMany are the lots of many members in one draw. Their ids are as an
// application may give them: numbers in a row.
var ofMany = sync.OnceValue(func() []uint64 {
	all := make([]uint64, draws)
	for i := range all {
		all[i] = lotOf(1, fmt.Sprintf("user-%06d", i))
	}
	return all
})

// ofThree are the lots of the same three members in many draws.
var ofThree = sync.OnceValue(func() [][]uint64 {
	all := make([][]uint64, draws)
	for n := range all {
		all[n] = []uint64{lotOf(n, "ann"), lotOf(n, "bob"), lotOf(n, "cy")}
	}
	return all
})

// spread counts keys by so many equal parts of the line, and by their lowest
// digits to that base.
func spread(keys []Key, n int) (parts, digits []int) {
	parts, digits = make([]int, n), make([]int, n)
	for _, k := range keys {
		parts[uint64(k)*uint64(n)>>keyBits]++
		digits[int(k)%n]++
	}
	return parts, digits
}

func TestPlacesAreSpreadEvenlyOverTheLine(t *testing.T) {
	t.Parallel()
	keys := make([]Key, draws)
	for i, lot := range ofMany() {
		keys[i] = UniformKey(lot)
	}
	for _, n := range []int{2, 10, 1000} {
		parts, digits := spread(keys, n)
		require.Less(t, chiSquared(parts, evenly(n)), limit(n), "%d parts", n)
		require.Less(t, chiSquared(digits, evenly(n)), limit(n), "digits to the base %d", n)
	}
	// They are not too even either, as keys that count up would be.
	parts, _ := spread(keys, 1000)
	require.Greater(t, chiSquared(parts, evenly(1000)), 999-5*math.Sqrt(2*999))
}

// order numbers the order of the keys among the n! that there are.
func order[T uint64 | Key](keys []T) int {
	number := 0
	for i, k := range keys {
		behind := 0
		for _, other := range keys[i+1:] {
			if other < k {
				behind++
			}
		}
		number = number*(len(keys)-i) + behind
	}
	return number
}

func TestEveryOrderIsEquallyLikely(t *testing.T) {
	t.Parallel()
	counts := make([]int, 6)
	for _, lots := range ofThree() {
		counts[order(lots)]++
	}
	require.Less(t, chiSquared(counts, evenly(6)), limit(6))
}

// correlation of two series, times the root of their length: normally
// distributed if they have nothing to do with each other.
func correlation(x, y []float64) float64 {
	mean := func(v []float64) (m float64) {
		for _, f := range v {
			m += f / float64(len(v))
		}
		return m
	}
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy, xx, yy = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx), yy+(y[i]-my)*(y[i]-my)
	}
	return xy / math.Sqrt(xx*yy) * math.Sqrt(float64(len(x)))
}

// series are the places of members who enter in this order, beside the number of
// their id, the time at which they entered, and the place of the one before.
func series(key func(id, at int) float64) (place, id, at, before []float64) {
	who := rand.New(rand.NewPCG(1, 2)).Perm(draws)
	last := 0.5
	for i, m := range who {
		p := key(m, i)
		place, id, at, before = append(place, p), append(id, float64(m)), append(at, float64(i)), append(before, last)
		last = p
	}
	return place, id, at, before
}

func TestAPlaceHasNothingToDoWithTheIdNorTheTimeOfEntering(t *testing.T) {
	t.Parallel()
	all := ofMany()
	place, id, at, before := series(func(id, _ int) float64 { return float64(UniformKey(all[id])) / (1 << keyBits) })
	for name, other := range map[string][]float64{"id": id, "time": at, "the one before": before} {
		require.Less(t, math.Abs(correlation(place, other)), 4.9, name)
	}
	// Half of those next to each other by id, or in time, are in either order.
	up := 0
	for i := 1; i < draws; i++ {
		if all[i] > all[i-1] {
			up++
		}
	}
	require.InDelta(t, draws/2, up, 4.9*math.Sqrt(draws/12.0))
}

// firsts counts which of the lanes has the member in front, in so many draws of
// one member each.
func firsts(weights []int, lot func(n, who int) uint64) []int {
	counts := make([]int, len(weights))
	for n := range draws {
		best, at := Key(math.MaxUint64), 0
		for i, w := range weights {
			if k := WeightedKey(lot(n, i), w); k < best {
				best, at = k, i
			}
		}
		counts[at]++
	}
	return counts
}

// randomLot costs a hundredth of a lot of a seed.
func randomLot() func(n, who int) uint64 {
	r := rand.NewPCG(3, 4)
	return func(int, int) uint64 { return r.Uint64() }
}

func sharesOf(weights []int) []float64 {
	shares, sum := make([]float64, len(weights)), 0
	for _, w := range weights {
		sum += w
	}
	for i, w := range weights {
		shares[i] = float64(w) / float64(sum)
	}
	return shares
}

func TestInALotteryTheFirstIsChosenByWeight(t *testing.T) {
	t.Parallel()
	weights := []int{1, 2, 3}
	drawn := firsts(weights, func(n, who int) uint64 { return ofThree()[n][who] })
	require.Less(t, chiSquared(drawn, sharesOf(weights)), limit(len(weights)))
	for _, weights := range [][]int{{1, 1, 1, 1}, {1, 2, 3, 4}, {1, 10, 100, 1000}, {7, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1000}} {
		require.Less(t, chiSquared(firsts(weights, randomLot()), sharesOf(weights)), limit(len(weights)), "%v", weights)
	}
}

// At each place the weights of those who are left decide: with weights a, b, c
// the order a, b, c has the probability a/(a+b+c) * b/(b+c).
func TestInALotteryEveryPlaceIsChosenByWeightAmongThoseLeft(t *testing.T) {
	t.Parallel()
	weights := []int{1, 2, 5}
	shares := make([]float64, 6)
	for _, p := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		var rank [3]Key
		for place, who := range p {
			rank[who] = Key(place)
		}
		a, b := float64(weights[p[0]]), float64(weights[p[1]])
		shares[order(rank[:])] = a / 8 * b / (8 - a)
	}
	counts, lot := make([]int, 6), randomLot()
	for n := range draws {
		keys := make([]Key, 3)
		for i, w := range weights {
			keys[i] = WeightedKey(lot(n, i), w)
		}
		counts[order(keys)]++
	}
	require.Less(t, chiSquared(counts, shares), limit(6), "%v", counts)
}

// In one line of many, every stretch is shared by what is left of the weights.
func TestInALotteryOfManyTheFrontIsSharedByWeight(t *testing.T) {
	t.Parallel()
	type entrant struct {
		key  Key
		lane int
	}
	all := make([]entrant, draws)
	for i, lot := range ofMany() {
		lane := i % 2
		all[i] = entrant{WeightedKey(lot, []int{3, 1}[lane]), lane}
	}
	slices.SortFunc(all, func(a, b entrant) int { return int(a.key) - int(b.key) })
	counts := make([]int, 2)
	for _, e := range all[:1000] { // a hundredth: hardly anybody is missing yet
		counts[e.lane]++
	}
	require.Less(t, chiSquared(counts, []float64{0.75, 0.25}), limit(2), "%v", counts)
	require.Equal(t, 0, ties(all, func(e entrant) Key { return e.key }))
}

func ties[T any](sorted []T, key func(T) Key) (n int) {
	for i := 1; i < len(sorted); i++ {
		if key(sorted[i]) == key(sorted[i-1]) {
			n++
		}
	}
	return n
}

// The tests above would see what they look for.
func TestABiasIsSeen(t *testing.T) {
	t.Parallel()
	keys, low := make([]Key, draws), make([]Key, draws)
	for i, lot := range ofMany() {
		keys[i] = UniformKey(lot)
		if i%50 == 0 {
			keys[i] /= 2 // one in fifty stands in the front half
		}
		low[i] = UniformKey(lot) &^ 1
	}
	parts, _ := spread(keys, 2)
	require.Greater(t, chiSquared(parts, evenly(2)), limit(2), "a better place for one in fifty")
	_, digits := spread(low, 1000)
	require.Greater(t, chiSquared(digits, evenly(1000)), limit(1000), "a digit that is always even")

	all := ofMany()
	place, id, at, before := series(func(id, at int) float64 {
		return float64(all[id])/(1<<64) + float64(id+at)/draws/20
	})
	require.Greater(t, correlation(place, id), 4.9, "a better place for small numbers")
	require.Greater(t, correlation(place, at), 4.9, "a better place for the early")
	require.Less(t, correlation(place, before), 4.9, "which is not this")

	require.Greater(t, chiSquared(firsts([]int{1, 2, 3, 4}, randomLot()), sharesOf([]int{10, 20, 30, 42})), limit(4), "two in a hundred too many")
}
