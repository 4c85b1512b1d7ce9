package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// plan is the default one with a shape.
func plan(t testing.TB, shape string) Plan {
	t.Helper()
	p := Default()
	var known bool
	p.Shape, known = NamedShape(shape)
	require.True(t, known, shape)
	require.NoError(t, p.Validate())
	return p
}

// mean is the average factor of a shape's arrivals.
func mean(s Shape) float64 {
	sum, n := 0.0, 0
	for at := time.Duration(0); at < s.Length; at += time.Second {
		sum += s.arrivals(at)
		n++
	}
	return sum / float64(n)
}

func TestEveryShapeBringsAsManyAsThePlanSays(t *testing.T) {
	t.Parallel()
	for _, s := range Shapes {
		require.InDelta(t, 1, mean(s), 0.01, s.Name)
		require.NotEmpty(t, s.Help)
	}
	r := Run(Plan{
		Room:   Room{Batch: 1000, Interval: time.Second, GrantTTL: time.Minute, Fixed: true, Lanes: []Lane{{Name: "a", Weight: 1, Arrivals: 50}}},
		People: People{}, Database: Database{Connections: 100, Service: time.Millisecond}, Shape: Shapes[1], Seed: 3,
	})
	require.InDelta(t, 50*1800, r.Placed, 1500)
}

func TestOneSeedIsOneRun(t *testing.T) {
	t.Parallel()
	p := plan(t, "burst")
	p.Shape.Length = 3 * time.Minute
	a, b := Run(p), Run(p)
	require.Equal(t, a, b)
	p.Seed++
	require.NotEqual(t, a.Rows, Run(p).Rows)
}

// hasty is the controller that comes to mind first: a tenth up when orders are
// fast, a tenth down when they are slow, every round.
func hasty(s controller.State, r controller.Round, l controller.Limits) controller.State {
	slow := float64(r.Orders.Done[2]+r.Orders.Done[3]+r.Orders.Failed) / float64(max(r.Orders.Attempts(), 1))
	s.Batch *= 1.1
	if slow > 0.1 {
		s.Batch *= 0.9 / 1.1
	}
	s.Batch = min(max(1, s.Batch), float64(l.Batch))
	return s
}

// On every shape, with one seed each. What overshoot and oscillation are, and
// how they are measured, is in result.go and docs/policies.md.
func TestOnFiveShapesTheLoadNeitherOvershootsNorOscillates(t *testing.T) {
	t.Parallel()
	require.Len(t, Shapes, 5)
	for _, shape := range ShapeNames() {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			r := Run(plan(t, shape))
			require.LessOrEqual(t, r.Overshoot, 0.1, "more than the database bears, at %v", r.OvershootAt)
			require.False(t, r.Overshoots())
			require.LessOrEqual(t, r.Swings, steadySwings, "turns of the batch by more than a fifth")
			require.False(t, r.Oscillates())
			require.Greater(t, r.Use, 0.84, "nor does it leave the database idle")
		})
	}
}

func TestTheMeasuresFindWhatTheyLookFor(t *testing.T) {
	t.Parallel()
	t.Run("a batch that is twice too large", func(t *testing.T) {
		t.Parallel()
		p := plan(t, "steady")
		p.Room.Fixed, p.Shape.Length = true, 10*time.Minute
		r := Run(p)
		require.True(t, r.Overshoots(), "%v", r.Overshoot)
		require.False(t, r.Oscillates())
	})
	t.Run("a controller that does not wait for the effect", func(t *testing.T) {
		t.Parallel()
		r := runWith(plan(t, "steady"), hasty)
		require.True(t, r.Overshoots(), "%v", r.Overshoot)
		require.True(t, r.Oscillates(), "%d", r.Swings)
		require.Less(t, r.Use, 0.84)
	})
	t.Run("a load that is low", func(t *testing.T) {
		t.Parallel()
		p := plan(t, "steady")
		p.Room.Batch, p.Shape.Length = 100, 15*time.Minute
		r := Run(p)
		require.Less(t, r.Overshoot, 0.0)
		require.InDelta(t, 0.45, r.Use, 0.05)
	})
}

// rowsBetween are the rounds of a stretch of time.
func rowsBetween(r Result, from, to time.Duration) []Row {
	var rows []Row
	for _, row := range r.Rows {
		if row.At > from && row.At <= to {
			rows = append(rows, row)
		}
	}
	return rows
}

func TestWhileTheDatabaseIsAwayOneIsLetThroughPerInterval(t *testing.T) {
	t.Parallel()
	r := Run(plan(t, "outage"))
	before := rowsBetween(r, 11*time.Minute, 12*time.Minute)
	for _, row := range rowsBetween(r, 12*time.Minute+25*time.Second, 15*time.Minute) {
		require.LessOrEqual(t, row.Granted, int64(5), "at %v", row.At)
	}
	after := rowsBetween(r, 35*time.Minute, 45*time.Minute)
	var low float64 = 1e9
	for _, row := range after {
		low = min(low, row.Batch)
	}
	require.Greater(t, low, 0.8*before[0].Batch, "and it comes back by itself")
}

func TestCapacityIsFullInSpiteOfNoShowsAndNeverExceeded(t *testing.T) {
	t.Parallel()
	for _, fixed := range []bool{true, false} {
		p := plan(t, "steady")
		p.Room.Batch, p.Room.Capacity, p.Room.Fixed, p.Room.Lanes[0].Arrivals = 50, 10, fixed, 5
		p.People.NoShows = 0.3
		r := Run(p)
		var inside, rounds float64
		for _, row := range r.Rows {
			require.LessOrEqual(t, row.Inside, int64(10))
			if row.At > time.Minute {
				inside += float64(row.Inside)
				rounds++
			}
		}
		require.GreaterOrEqual(t, inside/rounds, 9.5, "fixed %v", fixed)
		require.Greater(t, r.Placed, int64(80), "a place is held for under two minutes on average")
		require.InDelta(t, 0.3, float64(r.Unused)/float64(r.Unused+r.Placed), 0.1)
	}
}

func TestLanesShareExactlyAndAnIdleLaneSavesNoCredit(t *testing.T) {
	t.Parallel()
	l := newLine(Room{Lanes: []Lane{{Name: "vip", Weight: 7}, {Name: "standard", Weight: 3}}})
	take := func(n int) (taken [2]int) {
		for range n {
			lane := l.next()
			if lane == nobody {
				break
			}
			w := &l.lanes[lane]
			w.pop()
			w.pass += w.stride
			taken[lane]++
		}
		l.level()
		return taken
	}
	come := func(lane, n int) { l.lanes[lane].since = append(l.lanes[lane].since, make([]time.Duration, n)...) }
	come(0, 70)
	come(1, 230)
	for range 10 {
		require.Equal(t, [2]int{7, 3}, take(10))
	}
	require.Equal(t, [2]int{0, 100}, take(100), "one lane empty: all of the other")
	come(0, 70)
	got := take(10)
	require.InDelta(t, 7, got[0], 1, "and no credit for having been away")
}

func TestTheRateIsExactOverAnyHour(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		batch    int
		interval time.Duration
	}{{50, time.Second}, {7, 100 * time.Millisecond}, {1, 3 * time.Second}, {333, 60 * time.Second}} {
		t.Run(fmt.Sprintf("%d in %v", c.batch, c.interval), func(t *testing.T) {
			t.Parallel()
			p := plan(t, "steady")
			p.Room.Batch, p.Room.Interval, p.Room.Fixed = c.batch, c.interval, true
			r := Run(p)
			var granted int64
			for _, row := range r.Rows {
				granted += row.Granted
			}
			want := float64(c.batch) * p.Shape.Length.Seconds() / c.interval.Seconds()
			require.InDelta(t, want, granted, float64(c.batch)+want/100)
			require.LessOrEqual(t, float64(granted), want+float64(c.batch))
		})
	}
}

func TestWhatCanNotBeRunIsToldAllAtOnce(t *testing.T) {
	t.Parallel()
	err := Plan{Room: Room{Lanes: []Lane{{Name: "a"}, {Name: "a"}}}, People: People{NoShows: 1}}.Validate()
	for _, part := range []string{"batch", "interval", "token", "called a", "weight of lane a", "no-shows", "connections", "up to 1m", "run must take"} {
		require.ErrorContains(t, err, part)
	}
}
