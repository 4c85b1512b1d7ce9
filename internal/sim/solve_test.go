package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// twoLanes is a service with two kinds of people: five and twenty a second,
// who are to wait for 20 s and 120 s at most.
func twoLanes(bears int) Plan {
	p := Default()
	p.Room.Fixed = true
	p.Room.Lanes = []Lane{
		{Name: "vip", Arrivals: 5, Target: 20 * time.Second},
		{Name: "standard", Arrivals: 20, Target: 120 * time.Second},
	}
	p.People.NoShows = 0
	p.Database = Database{Connections: bears / 10, Service: 100 * time.Millisecond}
	return p
}

func TestSolveFindsABatchAndWeightsThatKeepEveryWait(t *testing.T) {
	t.Parallel()
	for shape, fixed := range map[string]bool{"steady": false, "waves": true} {
		p := twoLanes(60)
		p.Room.Fixed = fixed
		p.Shape, _ = NamedShape(shape)
		a, err := Solve(p)
		require.NoError(t, err, "%s, fixed %v", shape, fixed)
		require.Len(t, a.Weights, 2)
		other := p.with(a)
		other.Seed = 77 // it is no luck of one seed
		for _, l := range Run(other).Lanes {
			require.LessOrEqual(t, l.P95, l.Target*11/10, "%s, fixed %v: lane %s with %d, %v", shape, fixed, l.Name, a.Batch, a.Weights)
		}
	}
}

func TestWeightsFollowWhatIsWanted(t *testing.T) {
	t.Parallel()
	p := twoLanes(60)
	p.Shape, _ = NamedShape("burst")
	p.Room.Lanes[0].Target, p.Room.Lanes[1].Target = 3*time.Minute, 16*time.Minute
	a, err := Solve(p)
	require.NoError(t, err)
	require.Greater(t, float64(a.Weights[0])/float64(a.Weights[1]), 1.1, "a fifth of the people, in a fifth of the time")
	require.Less(t, a.Batch, 50)
}

func TestSolveSaysWhenNoneWillDo(t *testing.T) {
	t.Parallel()
	p := twoLanes(20)
	_, err := Solve(p)
	var none NoAnswer
	require.ErrorAs(t, err, &none)
	require.Contains(t, none.Reason, "whatever the weights")

	_, err = Solve(Default())
	require.Error(t, err)
	require.NotErrorAs(t, err, &none, "a question that was not asked is another error")
}

func TestTheLineWithoutChanceWaitsAsLongAsARun(t *testing.T) {
	t.Parallel()
	p := twoLanes(1000)
	p.Shape, _ = NamedShape("burst")
	p.Room.Batch = 45
	p.Room.Lanes[0].Weight, p.Room.Lanes[1].Weight = 3, 2
	longest := flow(p).run(45, []float64{3, 2})
	for i, l := range Run(p).Lanes {
		require.InDelta(t, longest[i].Seconds(), l.Longest.Seconds(), 5+0.05*longest[i].Seconds(), l.Name)
	}
}

func TestNoWeightsDoBetterThanTheMostUrgentFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := twoLanes(100)
		p.Shape = Shape{Length: 2 * time.Minute, Come: []Stretch{
			{Factor: rapid.Float64Range(0, 5).Draw(t, "first")},
			{From: time.Minute, Factor: rapid.Float64Range(0, 5).Draw(t, "second")},
		}}
		f := flow(p)
		f.want = []time.Duration{
			time.Duration(rapid.IntRange(1, 100).Draw(t, "vip")) * time.Second,
			time.Duration(rapid.IntRange(1, 100).Draw(t, "standard")) * time.Second,
		}
		rate := rapid.Float64Range(1, 80).Draw(t, "rate")
		weights := []float64{rapid.Float64Range(0.1, 10).Draw(t, "weight"), 1}
		if f.met(f.run(rate, weights)) && !f.met(f.urgent(rate*1.02)) {
			t.Fatalf("weights %v do at %v, and the most urgent first does not", weights, rate)
		}
	})
}
