package sim

import (
	"slices"
	"time"
)

// Shape is how arrivals and the database change over a run. Factors are of what
// the plan says: of the arrivals of each lane, of the database's speed.
type Shape struct {
	Name   string
	Help   string
	Length time.Duration
	Come   []Stretch // arrivals; 1 on average
	Speed  []Stretch // of the database; none: 1 all the time
}

// Stretch is a factor from one moment to the next stretch, or to the end. With
// Ramp it goes there in a straight line instead, from what was before.
type Stretch struct {
	From   time.Duration
	Factor float64
	Ramp   time.Duration
}

// Shapes are those that have a name.
var Shapes = []Shape{
	{
		Name: "steady", Length: 30 * time.Minute,
		Help: "as many come all the time",
		Come: []Stretch{{Factor: 1}},
	},
	{
		Name: "burst", Length: 30 * time.Minute,
		Help: "seven of ten come in the first half minute",
		Come: []Stretch{{Factor: 42}, {From: 30 * time.Second, Factor: 0.305}},
	},
	{
		Name: "waves", Length: 30 * time.Minute,
		Help: "two waves of six minutes, with next to nobody for ten between",
		Come: []Stretch{
			{Factor: 2.2}, {From: 6 * time.Minute, Factor: 0.1}, {From: 16 * time.Minute, Factor: 2.2}, {From: 22 * time.Minute, Factor: 0.325},
		},
	},
	{
		Name: "slow", Length: 45 * time.Minute,
		Help: "after twelve minutes the database takes twice as long, for a quarter of an hour",
		Come: []Stretch{{Factor: 1}},
		Speed: []Stretch{
			{Factor: 1}, {From: 12 * time.Minute, Factor: 0.5, Ramp: 2 * time.Minute}, {From: 27 * time.Minute, Factor: 1, Ramp: 2 * time.Minute},
		},
	},
	{
		Name: "outage", Length: 45 * time.Minute,
		Help: "after twelve minutes the database is away for three, and slow for two more",
		Come: []Stretch{{Factor: 1}},
		Speed: []Stretch{
			{Factor: 1}, {From: 12 * time.Minute, Factor: 0}, {From: 15 * time.Minute, Factor: 0.5}, {From: 17 * time.Minute, Factor: 1},
		},
	},
}

// ShapeNames are their names.
func ShapeNames() []string {
	names := make([]string, len(Shapes))
	for i, s := range Shapes {
		names[i] = s.Name
	}
	return names
}

// NamedShape is the shape of that name.
func NamedShape(name string) (Shape, bool) {
	i := slices.IndexFunc(Shapes, func(s Shape) bool { return s.Name == name })
	if i < 0 {
		return Shape{}, false
	}
	return Shapes[i], true
}

func (s Shape) arrivals(at time.Duration) float64 { return factor(s.Come, at) }

func (s Shape) speed(at time.Duration) float64 {
	if len(s.Speed) == 0 {
		return 1
	}
	return factor(s.Speed, at)
}

func factor(stretches []Stretch, at time.Duration) float64 {
	before, f := 0.0, 0.0
	for _, s := range stretches {
		if s.From > at {
			break
		}
		before, f = f, s.Factor
		if in := at - s.From; in < s.Ramp {
			f = before + (s.Factor-before)*in.Seconds()/s.Ramp.Seconds()
		}
	}
	return f
}

// turns are the moments at which orders that wait may go on: the database is up
// again.
func (s Shape) turns() []time.Duration {
	var at []time.Duration
	for _, stretch := range s.Speed {
		at = append(at, stretch.From+time.Microsecond)
	}
	return at
}
