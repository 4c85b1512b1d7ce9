//go:build faults

package rate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// filled is how a line was let through for a time.
type filled struct {
	part float64 // of what the rate allows in that time, the first batch among it
	rate float64 // a second: the slope of the line through all grants after the first two batches
}

// slope is that of the straight line that fits best through the times of grants,
// in grants a second: an edge that falls between two ticks says little in it.
func slope(times []int64) float64 {
	n := float64(len(times))
	var sumT, sumI float64
	for i, at := range times {
		sumT, sumI = sumT+float64(at-times[0])/1e6, sumI+float64(i)
	}
	var cov, square float64
	for i, at := range times {
		t := float64(at-times[0])/1e6 - sumT/n
		cov, square = cov+t*(float64(i)-sumI/n), square+t*t
	}
	return cov / square
}

// fill lets schedulers work on one line for d.
func fill(t *testing.T, schedulers, batch int, interval, d time.Duration) filled {
	h := newHouse(t)
	defer h.close() // another measurement has rooms of its own
	due := int(float64(batch) * d.Seconds() / interval.Seconds())
	name := fmt.Sprintf("a%x", rand.Uint32())
	h.open(name, due+4*batch, func(s *room.Settings) { s.BatchSize, s.IntervalMs = batch, int(interval.Milliseconds()) })
	for i := range schedulers {
		h.run(fmt.Sprint("s", i), func(c *scheduler.Config) { c.Lock, c.TTL = nil, 0 }) // all of them tick
	}
	harness.Eventually(t, 15*time.Second, "the first are let through", func() bool { return len(h.grants(name)) > 0 })
	time.Sleep(d)
	times := h.grants(name)
	h.within(times, batch, interval)
	n, _ := slices.BinarySearch(times, times[0]+d.Microseconds())
	return filled{float64(n) / float64(due), slope(times[min(2*batch, n-1):n])}
}

func TestThreeSchedulersFillAThousandASecondAndKeepIt(t *testing.T) {
	d := lasting(6*time.Second, time.Minute)
	try(t, "three schedulers, 1,000 a second", func() measured {
		f := fill(t, 3, 1000, time.Second, d)
		figure("three schedulers, 1,000 a second for %v: %.2f %% of %.0f, %.1f a second, no window over the rate",
			d, 100*f.part, 1000*d.Seconds(), f.rate)
		return measured{f.part >= 0.995, f.part >= 0.3}
	})
}

func TestTwentyThousandASecondAreFilled(t *testing.T) {
	d := lasting(3*time.Second, 20*time.Second)
	try(t, "20,000 a second", func() measured {
		f := fill(t, 1, 2000, 100*time.Millisecond, d)
		figure("20,000 a second for %v: %.2f %% of %.0f, %.0f a second, no window over the rate", d, 100*f.part, 20_000*d.Seconds(), f.rate)
		return measured{math.Abs(f.rate/20_000-1) <= 0.005, f.part >= 0.1}
	})
}
