package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// release is what an operator does by hand.
func (f *fixture) release(n int64) {
	f.Helper()
	f.life.Released += n
	f.life.Version++
	require.NoError(f, f.Update(f.Context(), f.life))
}

func TestReleaseLetsThatManyGoBeyondTheRate(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 10 })
	f.enterMany(0, 100)
	require.Len(t, f.tick(), 10)
	require.Empty(t, f.tick())
	f.release(25)
	got := f.tick()
	require.Len(t, got, 25)
	require.Equal(t, "m00010", got[0], "the first in line")
	require.Empty(t, f.tick(), "25 and no more")
	require.EqualValues(t, 25, f.snap().Counters["released"])
	f.pass(time.Second)
	require.Len(t, f.tick(), 10, "the rate goes on as if nothing had been")
	f.conserved()
}

func TestReleaseIsPushedOnceHoweverOftenItIsProjected(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 10 })
	f.enterMany(0, 100)
	f.tick()
	f.release(5)
	for range 3 {
		require.NoError(t, f.Update(t.Context(), f.life))
	}
	require.Len(t, f.tick(), 5)
	f.life.Version++ // another setting is changed
	require.NoError(t, f.Update(t.Context(), f.life))
	require.Empty(t, f.tick())
}

func TestReleaseWorksInAPausedRoomAndEndsThere(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Paused = true })
	f.enterMany(0, 30)
	require.Empty(t, f.tick())
	f.release(7)
	require.Len(t, f.tick(), 7)
	f.pass(time.Second)
	require.Empty(t, f.tick())
	require.Zero(t, f.snap().ToRelease)
}

func TestReleaseNeverGoesBeyondTheCapacity(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch, r.Capacity = 10, 12 })
	f.enterMany(0, 100)
	require.Len(t, f.tick(), 10)
	f.release(20)
	require.Len(t, f.tick(), 2)
	require.EqualValues(t, 18, f.snap().ToRelease, "the rest go as places come free")
	g := f.pickUp("m00000")
	_, err := f.Consume(t.Context(), f.room, []queue.Spent{{Member: "m00000", Grant: g.ID, Order: "o"}})
	require.NoError(t, err)
	require.Len(t, f.tick(), 1)
}

func TestAReleaseIsForThoseInLineNow(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 1 })
	f.enterMany(0, 5)
	f.release(100)
	require.Len(t, f.tick(), 5)
	f.tick()
	require.Zero(t, f.snap().ToRelease, "the line is empty: the rest lapses")
	f.enterMany(5, 20)
	f.pass(time.Second)
	require.Len(t, f.tick(), 1)
}

func TestANewGenerationBeginsWithNobodyReleased(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch, r.Settle = 1, 0 })
	f.release(50)
	f.life.Generation, f.step.Generation = 8, 8
	require.NoError(t, f.Create(t.Context(), f.life))
	f.enterMany(0, 20)
	require.Len(t, f.tick(), 1)
}

func TestAReleasedTickThatRepeatsIsChargedOnce(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 1 })
	f.enterMany(0, 40)
	f.tick()
	f.release(10)
	r := f.reserve()
	require.Len(t, r.Taken, 10)
	var ds []queue.Decision
	for i, c := range r.Taken {
		ds = append(ds, queue.Decision{Member: c.Member, Grant: fmt.Sprint("h", i)})
	}
	ds[0].Grant = "" // barred: nobody has gone for that one
	for range 3 {
		_, err := f.Issue(t.Context(), f.room, f.step, ds)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, f.snap().ToRelease)
	require.EqualValues(t, 9, f.snap().Counters["released"])
	require.Len(t, f.tick(), 1)
	f.conserved()
}
