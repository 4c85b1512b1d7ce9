package redisstore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

func weights(n ...int) func(*queue.Rules) { return func(r *queue.Rules) { r.Weights = n } }

func (f *fixture) enterLane(lane int, members ...string) {
	f.Helper()
	for _, m := range members {
		st, err := f.Enter(f.Context(), f.room, m, lane)
		require.NoError(f, err, "enter %s", m)
		require.Equal(f, lane, st.Place.Lane, m)
	}
}

// enterCrowd is n members named 0-00000 and so on, the lane in front.
func (f *fixture) enterCrowd(lane, n int) {
	f.Helper()
	for i := range n {
		f.enterLane(lane, fmt.Sprintf("%d-%05d", lane, i))
	}
}

// change puts other rules in force.
func (f *fixture) change(c func(*queue.Rules)) {
	f.Helper()
	f.life.Version++
	c(&f.life.Rules)
	require.NoError(f, f.Update(f.Context(), f.life))
}

// perLane counts names as of enterCrowd.
func perLane(members []string) (n [queue.MaxLanes]int) {
	for _, m := range members {
		n[m[0]-'0']++
	}
	return n
}

// Shown by: 10 VIP and 100 ordinary, ratio 7:3, batch 10.
func TestTenVIPAndAHundredOrdinaryShareSevenToThreeInEveryRound(t *testing.T) {
	f := setup(t, weights(3, 7), func(r *queue.Rules) { r.Batch = 10 })
	f.enterCrowd(0, 100)
	f.enterCrowd(1, 10)
	vip := 10 // who is there at each round: those let through are replaced
	for round := range 6 {
		n := perLane(f.tick())
		require.Equal(t, [4]int{3, 7}, n, "round %d", round)
		for range n[1] {
			f.enterLane(1, fmt.Sprintf("1-x%04d", vip))
			vip++
		}
		f.pass(time.Second)
	}
}

func TestOneLaneEmptyGivesTenToTheOther(t *testing.T) {
	f := setup(t, weights(3, 7), func(r *queue.Rules) { r.Batch = 10 })
	f.enterCrowd(0, 100)
	for range 3 {
		require.Equal(t, [4]int{10}, perLane(f.tick()))
		f.pass(time.Second)
	}
	f.enterCrowd(1, 20)
	require.Equal(t, [4]int{3, 7}, perLane(f.tick()), "being empty has earned no credit")
}

func TestWeightsChangedCountInTheNextRound(t *testing.T) {
	f := setup(t, weights(3, 7), func(r *queue.Rules) { r.Batch = 10 })
	f.enterCrowd(0, 200)
	f.enterCrowd(1, 200)
	for _, w := range [][]int{{3, 7}, {5, 5}, {9, 1}, {1, 9}, {2, 8}} {
		f.change(weights(w...))
		require.Equal(t, [4]int{w[0], w[1]}, perLane(f.tick()), "weights %v", w)
		f.pass(time.Second)
	}
}

// A lane that has just had a turn that was worth much owes no more of it than
// before when turns become worth little.
func TestAHeavierWeightDoesNotPayForATurnOfALighterOne(t *testing.T) {
	f := setup(t, weights(1, 1000), func(r *queue.Rules) { r.Batch = 1 })
	f.enterCrowd(0, 50)
	f.enterCrowd(1, 50)
	require.Equal(t, [4]int{1, 0}, perLane(f.tick()), "of equal passes the first lane's turn is first")
	f.change(func(r *queue.Rules) { r.Weights, r.Batch = []int{1000, 1000}, 20 })
	f.pass(time.Second)
	n := perLane(f.tick())
	require.InDelta(t, n[0], n[1], 1, "%v", n)
}

// lane is a lane of the model: who stands in it, and how far it has been served.
type lane struct {
	line    []string
	weight  int
	stride  int // what a turn moves pass on by
	pass    int
	silent  map[string]bool
	granted int
}

// shareWeights are drawn for the lanes of the model.
var shareWeights = []int{1, 2, 3, 4, 5, 6, 7, 10}

// shares is stride scheduling over lists, in whole numbers.
type shares []*lane

// first is who comes next in a lane, and where in it.
func (l *lane) first() int {
	return slices.IndexFunc(l.line, func(m string) bool { return !l.silent[m] })
}

// take is who is let through of n.
func (s shares) take(n int) (out []string) {
	for len(out) < n {
		var turn *lane
		for _, l := range s {
			if l.first() >= 0 && (turn == nil || l.pass < turn.pass) {
				turn = l
			}
		}
		if turn == nil {
			break
		}
		// Only those who are passed on the way to somebody leave the line.
		out = append(out, turn.line[turn.first()])
		turn.line = turn.line[turn.first()+1:]
		turn.pass += turn.stride
		turn.granted++
	}
	lowest := math.MaxInt
	for _, l := range s {
		if l.first() >= 0 {
			lowest = min(lowest, l.pass)
		}
	}
	for _, l := range s {
		if l.pass = max(0, l.pass-lowest); lowest == math.MaxInt {
			l.pass = 0
		}
	}
	return out
}

// reweigh takes over the weights: strides in the smallest unit that fits them all.
// As large a part of a turn as a lane was ahead before it is ahead now.
func (s shares) reweigh() {
	unit := 1
	for _, l := range s {
		for n := unit; unit%l.weight != 0; unit += n {
		}
	}
	for _, l := range s {
		before := l.stride
		if l.stride = unit / l.weight; before > 0 {
			l.pass = l.pass * l.stride / before
		}
	}
}

// TestLanesShareAsTheModelSays has random crowds come to random lanes, go silent,
// and be let through in batches, while weights change: who is let through is what
// the model says, member by member; over any stretch in which two lanes have
// somebody waiting, their shares differ by less than a turn of each; and of any
// 1/w batches a lane with somebody waiting has its share.
func TestLanesShareAsTheModelSays(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			runShares(t, rand.New(rand.NewPCG(seed, 3)))
		})
	}
}

func runShares(t *testing.T, rnd *rand.Rand) {
	pick := func(from []int) int { return from[rnd.IntN(len(from))] }
	s := make(shares, 2+rnd.IntN(3))
	var w []int
	for i := range s {
		s[i] = &lane{weight: pick(shareWeights), silent: map[string]bool{}}
		w = append(w, s[i].weight)
	}
	s.reweigh()
	batch := pick([]int{1, 3, 10, 40})
	f := setup(t, weights(w...), func(r *queue.Rules) { r.Batch, r.AwayAfter = batch, 90*time.Second })
	names, stretch := 0, newStretch(s)
	for range 120 {
		for i, l := range s {
			if rnd.IntN(3) == 0 { // lanes empty and fill
				for range rnd.IntN(2 * batch) {
					m := fmt.Sprintf("%d-%05d", i, names)
					names++
					f.enterLane(i, m)
					l.line = append(l.line, m)
				}
			}
		}
		if rnd.IntN(12) == 0 {
			i := rnd.IntN(len(s))
			s[i].weight = pick(shareWeights)
			s.reweigh()
			f.change(func(r *queue.Rules) { r.Weights = slices.Clone(r.Weights); r.Weights[i] = s[i].weight })
			stretch = newStretch(s)
		}
		if rnd.IntN(8) == 0 {
			f.someGoSilent(rnd, s)
		}
		f.pass(time.Second)
		require.NoError(t, f.Heard(t.Context(), f.room, nil))
		ready := stretch.begin(s)
		got := f.grantRound()
		require.Equal(t, s.take(len(got)), got)
		require.Equal(t, min(batch, ready), len(got), "nobody's turn is lost")
		stretch.judge(t, s)
	}
}

// grantRound is one full batch, without reaping: who goes away does so in their turn.
func (f *fixture) grantRound() (out []string) {
	for {
		r := f.reserve()
		out = append(out, f.grantAll(r)...)
		if !r.More {
			return out
		}
	}
}

// someGoSilent makes members of random places unheard for longer than the room waits.
func (f *fixture) someGoSilent(rnd *rand.Rand, s shares) {
	for _, l := range s {
		for _, m := range l.line {
			if rnd.IntN(3) == 0 {
				l.silent[m] = true
				require.NoError(f, f.rdb.ZAdd(f.Context(), f.key("seen"), scored(f.clock.Add(-10*time.Minute), m)).Err())
			}
		}
	}
	// The room has heard all along, so their silence counts.
	require.NoError(f, f.rdb.HSet(f.Context(), f.key("state"), "listen_since", unixMicro(start.Add(-time.Hour))).Err())
}

// stretch is a time in which some lanes have somebody waiting throughout.
type stretch struct {
	from    []int // granted, per lane, as it began; -1: idle since
	all     int
	longest []int // the stretch's grants at which a lane was last granted one
}

func newStretch(s shares) *stretch {
	st := &stretch{from: make([]int, len(s)), longest: make([]int, len(s))}
	for i, l := range s {
		st.from[i] = l.granted
		st.all += l.granted
	}
	return st
}

// begin starts the count of a lane anew that has come back, and says how many
// could be let through.
func (st *stretch) begin(s shares) (ready int) {
	fresh := false
	for _, l := range s {
		for _, m := range l.line {
			if !l.silent[m] {
				ready++
			}
		}
	}
	for i, l := range s {
		fresh = fresh || st.from[i] < 0 && l.first() >= 0
	}
	if fresh {
		*st = *newStretch(s)
	}
	return ready
}

// judge compares the shares of the stretch so far.
func (st *stretch) judge(t *testing.T, s shares) {
	all, total := -st.all, 0
	for i, l := range s {
		all += l.granted
		if l.first() < 0 {
			st.from[i] = -1 // whoever is idle at the end of a round is in no comparison
		}
		total += l.weight
	}
	for i, a := range s {
		if st.from[i] < 0 {
			continue
		}
		share := float64(a.granted-st.from[i]) / float64(a.weight)
		for j, b := range s[:i] {
			if st.from[j] < 0 {
				continue
			}
			other := float64(b.granted-st.from[j]) / float64(b.weight)
			require.LessOrEqual(t, math.Abs(share-other), 1/float64(a.weight)+1/float64(b.weight)+1e-9,
				"lanes %d and %d, of weights %d and %d", j, i, b.weight, a.weight)
		}
		// The bound of starvation: in k grants at least k w / W, but for one turn.
		require.GreaterOrEqual(t, float64(a.granted-st.from[i]), math.Floor(float64(all*a.weight)/float64(total))-float64(len(s)),
			"lane %d of weight %d has had too little of %d", i, a.weight, all)
	}
}

// A lane whose front has vanished is looked through before its turn goes to
// another: the lanes behind it gain nothing by it.
func TestALaneFullOfVanishedKeepsItsTurn(t *testing.T) {
	f := setup(t, weights(1, 1), func(r *queue.Rules) { r.Batch, r.Interval = 20, time.Second })
	f.enterCrowd(0, 100)
	f.enterCrowd(1, 1400)
	for i := range 1300 {
		vanished := scored(f.clock.Add(-10*time.Minute), fmt.Sprintf("1-%05d", i))
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key("seen"), vanished).Err())
	}
	require.NoError(t, f.rdb.HSet(t.Context(), f.key("state"), "listen_since", unixMicro(start.Add(-time.Hour)),
		"heard_at", unixMicro(f.clock), "time", unixMicro(f.clock)).Err())
	calls, got := 0, []string(nil)
	for more := true; more; calls++ {
		r := f.reserve()
		require.LessOrEqual(t, len(r.Taken), 500)
		got, more = append(got, f.grantAll(r)...), r.More
	}
	require.Equal(t, [4]int{10, 10}, perLane(got))
	require.Greater(t, calls, 1, "one call looks at a bounded number")
	f.conserved()
}

func TestWhoEntersAgainStaysInTheLaneThatIsStored(t *testing.T) {
	f := setup(t, weights(1, 1))
	f.enterLane(1, "ann")
	st, err := f.Enter(t.Context(), f.room, "ann", 0)
	require.NoError(t, err)
	require.Equal(t, 1, st.Place.Lane)
	require.False(t, st.New)
}

func TestALaneAddedServesWithThoseThatAreThere(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 10 })
	f.enterCrowd(0, 50)
	require.Len(t, f.tick(), 10)
	f.change(weights(1, 4))
	f.enterCrowd(1, 50)
	f.pass(time.Second)
	require.Equal(t, [4]int{2, 8}, perLane(f.tick()))
}
