//go:build faults

package verify

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/history"
)

// patrons are customers who come one after the other while servers fail, and hold
// on: they ask again until they have an answer that means something. What they
// are told is judged with the whole history.
type patrons struct {
	s    *shop
	at   []*fault.Process
	turn atomic.Int64
	stop context.CancelFunc
	gone sync.WaitGroup

	bought, refused, lost atomic.Int64
}

// fast is a room in which much happens in little time.
func fast(r *room.Settings) {
	r.BatchSize, r.IntervalMs, r.ClaimLeaseSeconds, r.PickupTTLSeconds = 5, 500, 11, 60
}

// host lets n customers at a time in, until end.
func (s *shop) host(n int, at ...*fault.Process) *patrons {
	ctx, stop := context.WithCancel(s.t.Context())
	p := &patrons{s: s, at: at, stop: stop}
	for range n {
		p.gone.Go(func() {
			for ctx.Err() == nil {
				p.visit(ctx, s.customer())
			}
		})
	}
	s.t.Cleanup(p.end)
	return p
}

// end returns when everybody knows what came of their orders.
func (p *patrons) end() {
	p.stop()
	p.gone.Wait()
}

func (p *patrons) next() *fault.Process { return p.at[int(p.turn.Add(1))%len(p.at)] }

// tries makes a request until it is answered with one of these, or ctx ends.
func (p *patrons) tries(ctx context.Context, request func(*fault.Process) heard, as ...int) (heard, bool) {
	for ctx.Err() == nil {
		a := request(p.next())
		for _, status := range as {
			if a.err == nil && a.status == status {
				return a, true
			}
		}
		p.refused.Add(1)
		pause(ctx, 100*time.Millisecond)
	}
	return heard{}, false
}

func (p *patrons) visit(ctx context.Context, c *customer) {
	if _, ok := p.tries(ctx, c.enter, http.StatusCreated, http.StatusOK); !ok {
		return
	}
	for {
		a, ok := p.tries(ctx, c.poll, http.StatusOK)
		switch {
		case !ok:
			return
		case a.position.Status == queue.NotEntered:
			p.lost.Add(1)
			return
		case c.token != "" && p.buy(c):
			return
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// buy orders until it is known what came of it, also when the others have gone.
// It is false where the grant was lost: the customer has the place back, or none.
func (p *patrons) buy(c *customer) bool {
	ctx, cancel := context.WithTimeout(p.s.t.Context(), longEnough)
	defer cancel()
	a, ok := p.tries(ctx, c.buy, http.StatusCreated, http.StatusOK, http.StatusUnauthorized)
	if !ok {
		p.s.t.Errorf("%s never learnt what came of its order", c.name)
		return true
	}
	c.token = ""
	if a.status == http.StatusUnauthorized {
		return false
	}
	p.bought.Add(1)
	return true
}

// buys waits until n more have ordered.
func (p *patrons) buys(n int64) {
	p.s.t.Helper()
	from := p.bought.Load()
	eventually(p.s.t, longEnough, "orders are placed", func() bool { return p.bought.Load() >= from+n })
}

// risk has the checker know that data may be lost until the function that it
// returns is called: replication is asynchronous.
func (s *shop) risk() (over func()) {
	tally.Faults(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.facts.Losses)
	s.facts.Losses = append(s.facts.Losses, history.Loss{Kind: history.PartialLoss, Mono: history.Now()})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.facts.Losses[i].MonoEnd = history.Now()
	}
}

// promoted waits until another server than old is the one that who names, and the
// room is ticked there.
func (s *shop) promoted(old *devstack.Proc, who func() (*devstack.Proc, error)) {
	s.t.Helper()
	began := time.Now()
	eventually(s.t, longEnough, "a replica is promoted", func() bool {
		now, err := who()
		return err == nil && now != old
	})
	moment := time.Now()
	s.untilSnapshot("the scheduler ticks the room", func(q queue.Snapshot) bool { return q.TickedAt.After(moment) })
	s.t.Logf("promoted after %v, ticked %v after that", moment.Sub(began).Round(time.Millisecond), time.Since(moment).Round(time.Millisecond))
}

// verdict ends the visits and judges all that was recorded. seen is whether the
// fault was met: by people who were refused, or by data that were lost.
func (p *patrons) verdict() (seen bool) {
	p.s.t.Helper()
	p.buys(20)
	p.end()
	p.s.judge()
	lives := len(p.s.steps.Lives())
	p.s.t.Logf("%d orders, %d requests in vain, %d places lost, %d lives", p.bought.Load(), p.refused.Load(), p.lost.Load(), lives)
	require.EqualValues(p.s.t, p.bought.Load(), p.s.orders(), "an order without an acknowledgement, or the other way round")
	return p.refused.Load() > 0 || lives > 1
}
