package redisstore

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// let is how many were let through at a time.
type let struct {
	at time.Time
	n  int
}

// TestSmallRatesAreSmooth ticks as the script says, at intervals from 100 ms to a
// second and with batches that can't be halved. In no window more than the rate
// and one batch go on; in the long run no fewer than the rate; and nobody waits
// for longer than half a batch takes.
func TestSmallRatesAreSmooth(t *testing.T) {
	t.Parallel()
	rdb, rooms := harness.Redis(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		batch := rapid.SampledFrom([]int{1, 2, 3, 7, 20}).Draw(rt, "batch")
		interval := time.Duration(rapid.IntRange(100, 1000).Draw(rt, "interval")) * time.Millisecond
		// An adaptive room works with less, and with more again.
		effective := []int{rapid.IntRange(1, batch).Draw(rt, "first"), rapid.IntRange(1, batch).Draw(rt, "then")}
		late := time.Duration(rapid.IntRange(0, 20).Draw(rt, "late")) * time.Millisecond

		f := on(t, rdb, func(r *queue.Rules) { r.Batch, r.Interval = batch, interval })
		rooms++
		f.room = fmt.Sprintf("smooth-%d-%s", rooms, strings.ToLower(f.room))
		f.life.Room = f.room
		require.NoError(t, f.Create(t.Context(), f.life))
		f.enterMany(0, 30*batch)
		for _, eff := range effective {
			lets := f.letThrough(eff, 12*interval, late)
			f.keepsRate(lets, batch, interval)
			f.isSmooth(lets, eff, interval, late)
		}
	})
}

// letThrough ticks for d, each time when the script says and a little later.
func (f *fixture) letThrough(eff int, d, late time.Duration) (lets []let) {
	f.Helper()
	for end := f.clock.Add(d); f.clock.Before(end); {
		f.step.Seq++
		r, err := f.Reserve(f.Context(), f.room, f.step, queue.Take{Keep: f.step.Seq, Effective: eff, Max: 500})
		require.NoError(f, err)
		if len(r.Taken) > 0 {
			f.grantAll(r)
			lets = append(lets, let{f.clock, len(r.Taken)})
			continue
		}
		f.pass(r.Wait + late)
	}
	return lets
}

// keepsRate holds I10, by the operator's batch.
func (f *fixture) keepsRate(lets []let, batch int, interval time.Duration) {
	f.Helper()
	level, last := 0.0, time.Time{}
	for i, l := range lets {
		if i > 0 {
			level = max(0, level-float64(batch)*float64(l.at.Sub(last))/float64(interval))
		}
		level, last = level+float64(l.n), l.at
		require.LessOrEqual(f, level, float64(batch)+1e-3, "more than the rate and a batch")
	}
}

// isSmooth holds that the rate in force is used, in steps of half a batch. A first
// tick may have a full bucket before it, and one of a larger batch.
func (f *fixture) isSmooth(lets []let, eff int, interval, late time.Duration) {
	f.Helper()
	half := time.Duration(math.Ceil(float64((eff+1)/2) * float64(interval) / float64(eff)))
	n := 0
	for i, l := range lets {
		n += l.n
		if i > 0 {
			require.LessOrEqual(f, l.at.Sub(lets[i-1].at), half+2*late+time.Millisecond, "a gap longer than half a batch of %d", eff)
		}
	}
	require.GreaterOrEqual(f, float64(n), 12*float64(eff)*f.share(half, late)-float64(eff+1)/2-1, "fewer than the rate of %d", eff)
}

// share is how much of the rate a room gets whose ticks all come late by so much.
// What is not used in time is not lost, up to a batch.
func (f *fixture) share(half, late time.Duration) float64 {
	if late < half {
		return 1
	}
	return float64(half) / float64(half+late)
}
