package pace

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/queue"
)

// TestRealMembersSettleAsTheModelSays has real members poll a real process as they are
// told, and the model do the same with as many on a server that can answer as many a
// second as the real one did while it was slow.
func TestRealMembersSettleAsTheModelSays(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts a process")
	}
	members := max(*crowdSize, 200)
	s := serve(t, members)
	p := newPollers(s)
	ctx, stop := context.WithTimeout(t.Context(), *lasts)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.run(ctx, min(*conns, members)) })
	var stretch []float64
	g.Go(func() (err error) {
		stretch, err = s.stretches(ctx)
		return err
	})
	require.NoError(t, g.Wait())
	require.NotEmpty(t, p.seconds)
	require.Zero(t, p.late, "near the front all are told to come in time for a grant")
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("pace: %d members, %v, %d connections, GOMAXPROCS %d, load average %s", members, *lasts, *conns, *cores, strings.TrimSpace(string(load)))
	for from := 0; from < len(p.seconds); from += 30 {
		t.Logf("pace: real  %s", p.window(stretch, from, from+30))
	}
	if *crowdSize > 0 {
		p.compare(t, stretch)
	}
}

// compare holds what was measured after two minutes against the model.
func (p *pollers) compare(t *testing.T, stretch []float64) {
	t.Helper()
	most := p.capacity()
	require.Positive(t, most, "so many are too few to make a process slow: give it more, or fewer cores")
	c := newCrowd(len(p.server.tickets), 1, most)
	c.still = true
	c.run(*lasts)
	settled := min(120, len(p.seconds)/2)
	least, mean, highest := between(c, use, settled, len(c.stretch))
	expected := mean * float64(most)
	t.Logf("pace: model, of %d a second: polls/s %.0f (%.0f to %.0f), stretch %.2f", most, expected,
		least*float64(most), highest*float64(most), average(c.stretch[settled:]))
	answers := 0
	for _, s := range p.seconds[settled : len(p.seconds)-1] {
		answers += s.answers
	}
	measured := float64(answers) / float64(len(p.seconds)-1-settled)
	slow := p.quantile(settled, len(p.seconds), 0.9)
	t.Logf("pace: real, of %d a second: polls/s %.0f, stretch %.2f, p90 %v", most, measured, average(stretch[settled:]), slow)
	require.InEpsilon(t, expected, measured, 0.25, "polls a second, of the model and of real members")
	require.InEpsilon(t, average(c.stretch[settled:]), average(stretch[settled:]), 0.4)
	require.Less(t, slow, 10*queue.SlowPoll, "hardly anything is slow any more")
}

// capacity is how many were answered a second when answers were slow for the last time,
// as a median of some seconds: what the process has last learned.
func (p *pollers) capacity() int {
	var answers []int
	for i := len(p.seconds) - 2; i >= 0 && len(answers) < 10; i-- {
		if p.quantile(i, i+1, 0.5) > 5*queue.SlowPoll {
			answers = append(answers, p.seconds[i].answers)
		}
	}
	slices.Sort(answers)
	if len(answers) == 0 {
		return 0
	}
	return answers[len(answers)/2]
}

func average(of []float64) float64 {
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	return sum / float64(len(of))
}

// window is what was measured in a stretch of seconds, as a line.
func (p *pollers) window(stretch []float64, from, to int) string {
	to = min(to, len(p.seconds), len(stretch))
	if from >= to {
		return "nothing"
	}
	answers := 0
	for _, s := range p.seconds[from:to] {
		answers += s.answers
	}
	return fmt.Sprintf("%3d s to %3d s: polls/s %6.0f, stretch %.2f, p50 %v, p90 %v, p99 %v", from, to, float64(answers)/float64(to-from), average(stretch[from:to]),
		p.quantile(from, to, 0.5), p.quantile(from, to, 0.9), p.quantile(from, to, 0.99))
}

// quantile is how long answers took, from when they were due, in a stretch of seconds.
func (p *pollers) quantile(from, to int, q float64) time.Duration {
	var all []time.Duration
	for _, s := range p.seconds[from:min(to, len(p.seconds))] {
		all = append(all, s.took...)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))].Round(100 * time.Microsecond)
}
