package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cameBy is how many of the arrivals are due before a time.
func cameBy(a Arrivals, t time.Duration) (n int) {
	for i := range a.People {
		if a.At(i) < t {
			n++
		}
	}
	return n
}

func TestArrivalsComeAsTheShapeSays(t *testing.T) {
	t.Parallel()
	const people, over = 1000, 10 * time.Second
	for _, c := range []struct {
		shape string
		by    map[time.Duration]int // who has come, of 1,000
	}{
		{Constant, map[time.Duration]int{time.Second: 100, 5 * time.Second: 500, over: 1000}},
		{Ramp, map[time.Duration]int{time.Second: 10, 5 * time.Second: 250, 9 * time.Second: 810, over: 1000}},
		{Burst, map[time.Duration]int{500 * time.Millisecond: 250, time.Second: 500, 5500 * time.Millisecond: 750, over: 1000}},
	} {
		a := Arrivals{Shape: c.shape, People: people, Over: over}
		for at, want := range c.by {
			require.InDelta(t, want, cameBy(a, at), 1, "%s: come after %v", c.shape, at)
		}
		require.Zero(t, a.At(0), c.shape)
		for i := range people - 1 {
			require.LessOrEqual(t, a.At(i), a.At(i+1), "%s: arrival %d is before the one before", c.shape, i+1)
		}
		require.Less(t, a.At(people-1), over, c.shape)
	}
	at := Arrivals{Shape: Burst, People: 3}
	require.Zero(t, at.At(2), "over no time all come at once")
}

func TestThinkTimesAreReadDrawnAndShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Think{
		"2s":     {Least: 2 * time.Second, Most: 2 * time.Second},
		"0s":     {},
		"1s-5s":  {Least: time.Second, Most: 5 * time.Second},
		"exp:2s": {Mean: 2 * time.Second},
	} {
		var got Think
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, got.String())
		var sum, least, most time.Duration = 0, time.Hour, 0
		rng := rand.New(rand.NewPCG(1, 2))
		const n = 20_000
		for range n {
			d := got.draw(rng)
			sum, least, most = sum+d, min(least, d), max(most, d)
		}
		mean := (want.Least + want.Most) / 2
		if want.Mean > 0 {
			mean, want.Most = want.Mean, longestThink*want.Mean
			require.Greater(t, most, 5*mean, "an exponential time has a tail")
		}
		require.InDelta(t, mean.Seconds(), (sum / n).Seconds(), 0.05, text)
		require.GreaterOrEqual(t, least, want.Least, text)
		require.LessOrEqual(t, most, want.Most, text)
	}
	for _, text := range []string{"", "soon", "-1s", "5s-1s", "exp:", "exp:0s", "exp:-2s", "2h", "1s-2h", "1s-"} {
		require.Error(t, new(Think).UnmarshalText([]byte(text)), text)
	}
}

func TestTheSameSeedMakesTheSamePeople(t *testing.T) {
	t.Parallel()
	p := Plan{Seed: 7, Arrivals: Arrivals{People: 2000}, People: People{Order: 0.9, Twice: 0.2, Vanish: 0.1, Leave: 0.3, Think: Think{Mean: time.Second}}}
	fates, twice, other := map[fate]int{}, 0, 0
	for n := range p.Arrivals.People {
		who, again := newPerson(p, n), newPerson(p, n)
		require.Equal(t, who.fate, again.fate)
		require.Equal(t, who.think, again.think)
		fates[who.fate]++
		if who.twice {
			twice++
		}
		if q := (Plan{Seed: 8, Arrivals: p.Arrivals, People: p.People}); newPerson(q, n).think != who.think {
			other++
		}
	}
	require.InDelta(t, 200, fates[vanisher], 60)
	require.InDelta(t, 600, fates[leaver], 80)
	require.InDelta(t, 120, fates[idler], 50, "a tenth of the rest")
	require.InDelta(t, 400, twice, 70)
	require.Greater(t, other, 1900, "another seed makes others")
}

func TestPeopleHaveAddressesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for n := range 131072 {
		seen[Address(n)] = true
	}
	require.Len(t, seen, 131072)
	require.True(t, seen["198.18.0.0"] && seen["198.19.255.255"])
}

func TestTheAgendaGivesOutWhatIsDueInItsOrder(t *testing.T) {
	t.Parallel()
	a := newAgenda(time.Now().Add(-time.Hour)) // all of it is due
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 5000
	for range n {
		a.add(entry{due: time.Duration(rng.IntN(1000)) * time.Second})
	}
	last := time.Duration(-1)
	for range n {
		e, wait, ok := a.next()
		require.True(t, ok)
		require.LessOrEqual(t, wait, time.Duration(0))
		require.GreaterOrEqual(t, e.due, last)
		last = e.due
	}
	_, _, ok := a.next()
	require.False(t, ok, "nothing is given out twice")

	later := newAgenda(time.Now())
	later.add(entry{due: time.Hour})
	_, wait, ok := later.next()
	require.True(t, ok)
	require.Greater(t, wait, 59*time.Minute, "what is not due stays")
	require.Len(t, later.heap, 1)
}
