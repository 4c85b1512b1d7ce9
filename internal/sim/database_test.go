package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLatencyIsErlangsFormula(t *testing.T) {
	t.Parallel()
	second := func(d Database, rate float64) float64 {
		took, ok := d.Latency(rate, 1)
		require.True(t, ok)
		return took.Seconds()
	}
	one := Database{Connections: 1, Service: 100 * time.Millisecond}
	require.InDelta(t, 0.1/(1-0.8), second(one, 8), 1e-6, "M/M/1")
	two := Database{Connections: 2, Service: time.Second}
	require.InDelta(t, 4.0/3, second(two, 1), 1e-6, "M/M/2 at one half: a third of all wait")
	_, ok := two.Latency(2, 1)
	require.False(t, ok)
	_, ok = two.Latency(1, 0)
	require.False(t, ok)
}

func TestWhatADatabaseBearsTakesHalfASecond(t *testing.T) {
	t.Parallel()
	d := Database{Connections: 20, Service: 100 * time.Millisecond}
	for _, speed := range []float64{1, 0.5, 0.25} {
		took, ok := d.Latency(d.Bears(speed), speed)
		require.True(t, ok)
		require.InDelta(t, 0.5, took.Seconds(), 0.001)
	}
	require.Zero(t, d.Bears(0))
	require.InDelta(t, 20, d.Bears(0.1), 0.01, "one that is always slower is taken at what it can do")
}

func TestASimulatedDatabaseTakesAsLongAsTheFormulaSays(t *testing.T) {
	t.Parallel()
	p := plan(t, "steady")
	p.Database = Database{Connections: 4, Service: 100 * time.Millisecond}
	p.Room.Fixed, p.Room.Lanes[0].Arrivals, p.People.NoShows = true, 60, 0
	for _, batch := range []int{20, 32} {
		p.Room.Batch = batch
		r := Run(p)
		var took time.Duration
		for _, row := range r.Rows[12:] {
			took += row.Took
		}
		var placed int64
		for _, row := range r.Rows[12:] {
			placed += row.Orders.Orders()
		}
		want, _ := p.Database.Latency(float64(batch), 1)
		require.InDelta(t, want.Seconds(), took.Seconds()/float64(placed), 0.08*want.Seconds(), "%d a second", batch)
	}
}
