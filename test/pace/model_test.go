package pace

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// crowd is a room in virtual time: members who poll as they are told, and processes
// that answer them one after the other, each poll in the same time. What is asked
// faster than that waits, and so gets slow. What people are told is the product's
// own doing; everything else here is arithmetic.
type crowd struct {
	rules     queue.Rules
	perSecond int  // that each process can answer
	deaf      bool // to what Polls says
	still     bool // nobody is let through

	members   int // of whom the first have been let through already
	through   int
	stay      func(member int) bool // nil: everybody does
	processes []*process
	due       [4096][]int32 // members, by the slot in which they poll next
	slot      int
	rand      *rand.Rand

	stretch []float64 // of all processes together, by seconds
	late    int       // answers near the front that told more than they may
}

// process answers from its queue.
type process struct {
	queue.Polls
	asking   []asker
	credit   float64
	answered int           // in this second
	worst    time.Duration // wait, in this second
	use      []float64     // share of what it can do, by seconds
	waits    []time.Duration
}

type asker struct {
	member int32
	since  int32 // slot
}

const (
	slot           = 10 * time.Millisecond
	slotsPerSecond = int(time.Second / slot)
)

func newCrowd(members, processes, perSecond int) *crowd {
	c := &crowd{
		rules:     queue.Rules{Batch: 50, Interval: time.Second, AwayAfter: 120 * time.Second, PickupTTL: 30 * time.Second},
		perSecond: perSecond, members: members, rand: rand.New(rand.NewPCG(1, 2)),
	}
	for range processes {
		c.processes = append(c.processes, &process{})
	}
	for m := range members { // all in one second
		at := c.rand.IntN(slotsPerSecond)
		c.due[at] = append(c.due[at], int32(m))
	}
	return c
}

// run lets time pass.
func (c *crowd) run(d time.Duration) {
	for end := c.slot + int(d/slot); c.slot < end; c.slot++ {
		asking := c.due[c.slot%len(c.due)]
		for _, m := range asking { // whom a balancer sends anywhere
			if int(m) >= c.through && (c.stay == nil || c.stay(int(m))) {
				p := c.processes[c.rand.IntN(len(c.processes))]
				p.asking = append(p.asking, asker{m, int32(c.slot)})
			}
		}
		c.due[c.slot%len(c.due)] = asking[:0]
		for _, p := range c.processes {
			c.serve(p)
		}
		if (c.slot+1)%slotsPerSecond == 0 {
			c.second()
		}
	}
}

// serve answers as many as a process can in a slot.
func (c *crowd) serve(p *process) {
	p.credit += float64(c.perSecond) / float64(slotsPerSecond)
	n := min(int(p.credit), len(p.asking))
	for _, w := range p.asking[:n] {
		wait := slot * time.Duration(c.slot-int(w.since))
		p.worst = max(p.worst, wait)
		p.Took(wait)
		c.tell(p, w.member)
	}
	p.answered += n
	if p.asking = p.asking[n:]; len(p.asking) == 0 {
		p.asking, p.credit = nil, min(p.credit-float64(n), 1) // idle time can't be kept
	} else {
		p.credit -= float64(n)
	}
}

// tell answers a poll, as the API does.
func (c *crowd) tell(p *process, member int32) {
	stretch, ahead := p.Stretch(), int64(member)-int64(c.through)
	if c.deaf {
		stretch = 1
	}
	next := c.rules.Spread(c.rules.PollAfter(ahead, stretch), ahead, c.rand.Float64())
	if ahead < c.rules.Horizon() && next > c.rules.PickupTTL/3 {
		c.late++
	}
	p.Answered(c.now(), c.rules.PollAfter(ahead, 1), next)
	at := (c.slot + max(1, int(next/slot))) % len(c.due)
	c.due[at] = append(c.due[at], member)
}

func (c *crowd) now() time.Time { return noon.Add(time.Duration(c.slot) * slot) }

// second ends one: 50 are let through, and everybody looks at what was.
func (c *crowd) second() {
	if !c.still {
		c.through += c.rules.Batch
	}
	sum := 0.0
	for _, p := range c.processes {
		p.use = append(p.use, float64(p.answered)/float64(c.perSecond))
		p.waits = append(p.waits, p.worst)
		p.answered, p.worst = 0, 0
		sum += p.Step(c.now())
	}
	c.stretch = append(c.stretch, sum/float64(len(c.processes)))
}

// between is the part of a series from one second to another, the least, the mean
// and the most of it, over all processes.
func between[T float64 | time.Duration](c *crowd, of func(*process) []T, from, to int) (least, mean, most T) {
	sum, n := T(0), T(0)
	for i, p := range c.processes {
		for s, v := range of(p)[from:to] {
			if i+s == 0 {
				least = v
			}
			least, most, sum, n = min(least, v), max(most, v), sum+v, n+1
		}
	}
	return least, sum / n, most
}

func use(p *process) []float64          { return p.use }
func waits(p *process) []time.Duration  { return p.waits }
func seconds(d time.Duration) (n int)   { return int(d / time.Second) }
func oneOf(n int) func(member int) bool { return func(m int) bool { return m%n == 0 } }

// TestAMillionWhoComeAtOnceSettleAtALoadThatCanBeBorne: they would ask 200,000 times
// a second, of a tier that can answer 60,000.
func TestAMillionWhoComeAtOnceSettleAtALoadThatCanBeBorne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some seconds")
	}
	c := newCrowd(1_000_000, 3, 20_000)
	c.run(4 * time.Minute)
	settled, end := seconds(2*time.Minute), seconds(4*time.Minute)
	least, mean, most := between(c, use, settled, end)
	t.Logf("use after two minutes: %.3f, from %.3f to %.3f", mean, least, most)
	require.Less(t, most, 0.9, "of what can be borne, in any second")
	require.Greater(t, least, 0.7, "and nobody is told to wait for nothing")
	_, _, wait := between(c, waits, settled, end)
	require.Less(t, wait, 2*queue.SlowPoll, "nothing is slow")
	low, high := slices.Min(c.stretch[settled:]), slices.Max(c.stretch[settled:])
	t.Logf("stretch: from %.2f to %.2f", low, high)
	require.Less(t, high/low, 1.15, "and nothing swings")
	require.Zero(t, c.late, "near the front all are told to come in time for a grant")

	c.stay = oneOf(20)
	c.run(time.Minute)
	for _, p := range c.processes {
		require.EqualValues(t, 1, p.Stretch(), "a minute after most of them have gone")
	}
}

// Without the stretch the same crowd would never be answered in time: if this fails,
// the test above shows nothing.
func TestAMillionWhoAreNotToldToWaitLongerAreTooMany(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some seconds")
	}
	c := newCrowd(1_000_000, 3, 20_000)
	c.deaf = true
	c.run(time.Minute)
	least, _, _ := between(c, use, 30, 60)
	require.Greater(t, least, 0.99)
	quickest, _, _ := between(c, waits, 30, 60)
	require.Greater(t, quickest, 5*time.Second)
}

// TestTheStretchNeverSwings is about a long time, in which the pace tries now and then
// whether more can be borne by now, and about a tier that loses a process.
func TestTheStretchNeverSwings(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some seconds")
	}
	c := newCrowd(50_000, 3, 1000)
	c.rules.Batch = 1 // the crowd stays
	c.run(30 * time.Minute)
	from, to := seconds(2*time.Minute), seconds(30*time.Minute)
	least, mean, most := between(c, use, from, to)
	_, meanWait, wait := between(c, waits, from, to)
	low, high := slices.Min(c.stretch[from:]), slices.Max(c.stretch[from:])
	t.Logf("use %.3f, from %.3f to %.3f; worst wait of a second %v, mean %v; stretch from %.2f to %.2f", mean, least, most, wait, meanWait, low, high)
	require.Less(t, mean, 0.9)
	require.Greater(t, mean, 0.75)
	require.Less(t, wait, time.Second, "also when it finds out anew what is too much")
	require.Less(t, meanWait, 2*queue.SlowPoll)
	require.Less(t, high/low, 1.6)

	lost := c.processes[2]
	c.processes = c.processes[:2]
	for _, w := range lost.asking { // whoever asked it asks another
		c.due[(c.slot+1)%len(c.due)] = append(c.due[(c.slot+1)%len(c.due)], w.member)
	}
	c.run(5 * time.Minute)
	_, mean, _ = between(c, use, to+120, to+300)
	_, meanWait, wait = between(c, waits, to+120, to+300)
	t.Logf("with a process less: use %.3f; worst wait of a second %v, mean %v", mean, wait, meanWait)
	require.Less(t, mean, 0.95)
	require.Less(t, wait, time.Second)
	require.Less(t, meanWait, 4*queue.SlowPoll)
}
