//go:build faults

package verify

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/history"
)

// poller is a customer who waits, and asks only every thirty seconds while far
// back: as seldom as anybody is ever told to.
type poller struct {
	*customer
	place int64 // as it was told before the loss

	mu   sync.Mutex
	back time.Time // when it was first shown the place again, by the clock of Redis
	over bool      // it has a grant, or nothing
}

// pollers are many of them, over the processes of a shop.
type pollers struct {
	s    *shop
	at   []*fault.Process
	all  []*poller
	ends context.CancelFunc
	gone sync.WaitGroup
}

// every is how often somebody far back in line polls.
const every = 30 * time.Second

// wait has these customers wait from now on, their polls spread over every.
func (s *shop) wait(all []*customer, at ...*fault.Process) *pollers {
	ctx, cancel := context.WithCancel(s.t.Context())
	p := &pollers{s: s, at: at, ends: cancel}
	for i, c := range all {
		p.all = append(p.all, &poller{customer: c, place: c.score})
		p.come(ctx, p.all[i], time.Duration(i)*every/time.Duration(len(all)))
	}
	s.t.Cleanup(p.end)
	return p
}

// end returns when nobody asks any more.
func (p *pollers) end() {
	p.ends()
	p.gone.Wait()
}

// come has one poll after a while, and go on.
func (p *pollers) come(ctx context.Context, one *poller, after time.Duration) {
	p.gone.Go(func() {
		for n := 0; ctx.Err() == nil && !one.isOver(); n++ {
			pause(ctx, after)
			if ctx.Err() == nil {
				after = one.ask(p.at[n%len(p.at)])
			}
		}
	})
}

// ask polls, and says when to poll next.
func (o *poller) ask(p *fault.Process) time.Duration {
	a := o.poll(p)
	if a.status != http.StatusOK {
		if !a.away() {
			o.s.t.Errorf("poll: %d %s %v", a.status, a.code, a.err)
		}
		return time.Second // as Retry-After says
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at := a.position
	if at.Status != queue.NotEntered && at.Score != nil && *at.Score != o.place {
		o.s.t.Errorf("the place %d is %d now", o.place, *at.Score)
	}
	t, err := o.s.ring.Ticket(o.ticket)
	lost := o.s.lostGeneration.Load()
	if err == nil && o.back.IsZero() && lost > 0 && t.Generation > lost && at.Status != queue.NotEntered {
		o.back = a.told()
	}
	o.over = at.Status != queue.Waiting
	if at.Rank != nil && *at.Rank >= 100 {
		return every
	}
	return time.Duration(at.NextPollAfterMs) * time.Millisecond
}

func (o *poller) isOver() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

// hadTurns is how many had been let through before the loss.
func (p *pollers) hadTurns() (n int) {
	for _, o := range p.all {
		o.mu.Lock()
		if o.over && o.back.IsZero() {
			n++
		}
		o.mu.Unlock()
	}
	return n
}

// restoredBy is how many had their places back at a moment.
func (p *pollers) restoredBy(moment time.Time) (n int) {
	for _, o := range p.all {
		o.mu.Lock()
		if !o.back.IsZero() && o.back.Before(moment) {
			n++
		}
		o.mu.Unlock()
	}
	return n
}

// admission is one grant of a life, in the order in which they were issued.
type admission struct {
	member string
	score  int64
	at     int64 // by the clock of Redis
	batch  int
}

// admissions are the grants of the generation that was there last.
func (s *shop) admissions() (all []admission) {
	s.t.Helper()
	lives := s.steps.Lives()
	steps := lives[len(lives)-1].Steps
	require.NotEmpty(s.t, steps)
	newest := steps[len(steps)-1].Generation
	for batch, step := range steps {
		if step.Script != "issue" || step.Generation != newest {
			continue
		}
		var some []admission
		for m, is := range step.Members {
			if is.Grant != nil {
				some = append(some, admission{m, is.Grant.Place.Score, step.Now, batch})
			}
		}
		slices.SortFunc(some, func(a, b admission) int { return int(a.score - b.score) })
		all = append(all, some...)
	}
	return all
}

// inversions are those who were let through after somebody who stood behind them.
func inversions(all []admission) map[string]bool {
	passed := map[string]bool{}
	highest, before, batch := int64(0), int64(0), -1
	for _, a := range all {
		if a.batch != batch {
			batch, before = a.batch, highest
		}
		if a.score < before {
			passed[a.member] = true
		}
		highest = max(highest, a.score)
	}
	return passed
}

// letThroughTwice are those who were let through more than once.
func letThroughTwice(all []admission) (members []string) {
	times := map[string]int{}
	for _, a := range all {
		if times[a.member]++; times[a.member] == 2 {
			members = append(members, a.member)
		}
	}
	return members
}

// forget makes Redis lose all it has, and returns when the next generation has
// begun.
func (s *shop) forget() queue.Snapshot {
	s.t.Helper()
	before, ok := s.look()
	require.True(s.t, ok)
	over := s.lose(history.TotalLoss)
	s.lostGeneration.Store(before.Generation)
	require.NoError(s.t, s.rdb.FlushAll(s.t.Context()).Err())
	q := s.untilSnapshot("a new generation begins", func(q queue.Snapshot) bool { return q.Generation > before.Generation })
	over()
	return q
}

// series names a counter of the room.
func series(name, label, value string) string {
	if label < "room" {
		return fmt.Sprintf(`linekeeper_%s{%s=%q,room=%q}`, name, label, value, shopRoom)
	}
	return fmt.Sprintf(`linekeeper_%s{room=%q,%s=%q}`, name, shopRoom, label, value)
}
