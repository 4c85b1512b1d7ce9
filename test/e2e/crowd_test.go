package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// crowd is shoppers who keep coming while something is done to the deployment:
// each enters, polls until there is a token, orders, and makes room for another.
// It remembers all that was acknowledged to them.
type crowd struct {
	w *world
	// at says where the next request goes.
	at func() *process
	// mayFail tells whether a request that failed like this is simply made again;
	// nil: none may.
	mayFail func(answer) bool
	// ordering lets them order; otherwise they wait at the shop's door.
	ordering bool

	stopping chan struct{}
	gone     sync.WaitGroup

	mu      sync.Mutex
	entered []*shopper
	scores  map[*shopper]int64
	orders  map[*shopper]string
	failed  int
	wrong   []string
}

// come lets n shoppers at a time in, until stop.
func (c *crowd) come(n int) *crowd {
	c.stopping, c.scores, c.orders = make(chan struct{}), map[*shopper]int64{}, map[*shopper]string{}
	c.w.t.Cleanup(c.stop)
	for range n {
		c.gone.Go(func() {
			for !c.stopped() {
				c.shop()
			}
		})
	}
	return c
}

func (c *crowd) stopped() bool {
	select {
	case <-c.stopping:
		return true
	default:
		return false
	}
}

// stop returns when everybody has got an answer to the last request.
func (c *crowd) stop() {
	if !c.stopped() {
		close(c.stopping)
	}
	c.gone.Wait()
}

// shop is one shopper's way through.
func (c *crowd) shop() {
	s := c.w.shopper()
	got := c.insist(s.enter, c.stopped)
	if got.status != http.StatusCreated {
		return
	}
	c.mu.Lock()
	c.entered = append(c.entered, s)
	c.scores[s] = *got.position().Score
	c.mu.Unlock()
	for s.token == "" {
		if c.insist(s.poll, c.stopped).status != http.StatusOK {
			return
		}
	}
	if !c.ordering {
		return
	}
	// Asked again even when the others have stopped: whether there is an order
	// must be known in the end.
	deadline := time.Now().Add(patience)
	got = c.insist(func(p *process) answer { return s.order(p, "demo", 1) }, func() bool { return time.Now().After(deadline) })
	if got.status != 0 {
		c.mu.Lock()
		c.orders[s] = got.order().ID
		c.mu.Unlock()
	}
}

// insist makes a request until it succeeds, and returns no answer if that does
// not happen before it is time to give up.
func (c *crowd) insist(request func(*process) answer, giveUp func() bool) answer {
	for !giveUp() {
		got := request(c.at())
		time.Sleep(10 * time.Millisecond) // the crowd's pace, not a wait for anything
		if got.status == http.StatusOK || got.status == http.StatusCreated {
			return got
		}
		c.mu.Lock()
		c.failed++
		if c.mayFail == nil || !c.mayFail(got) {
			c.wrong = append(c.wrong, fmt.Sprintf("%d %v %s", got.status, got.err, got.body))
		}
		c.mu.Unlock()
	}
	return answer{}
}

// ordered is how many orders have been acknowledged.
func (c *crowd) ordered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.orders)
}

func (c *crowd) failures() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// goesOn waits until n more have ordered, or, in a crowd that does not, entered.
func (c *crowd) goesOn(n int) {
	c.w.t.Helper()
	done := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ordering {
			return len(c.orders)
		}
		return len(c.entered)
	}
	before := done()
	harness.Eventually(c.w.t, patience, "the crowd goes on", func() bool { return done() >= before+n })
}

// goesOnWithoutFailure waits until n have ordered with no failure in between.
func (c *crowd) goesOnWithoutFailure(n int) {
	c.w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		failed := c.failures()
		c.goesOn(n)
		if c.failures() == failed {
			return
		}
		require.True(c.w.t, time.Now().Before(deadline), "failures go on")
	}
}

// verify stops the crowd and looks for all that was acknowledged to it.
func (c *crowd) verify(p *process) {
	t := c.w.t
	t.Helper()
	c.stop()
	require.Empty(t, c.wrong, "answers that must not be")
	for _, s := range c.entered {
		at := s.poll(p).is(200).position()
		if id, ordered := c.orders[s]; ordered {
			require.Equal(t, id, s.orderByID(p, id).is(200).order().ID)
			require.Equal(t, id, *s.until(p, queue.Consumed).OrderID)
			continue
		}
		require.NotEqual(t, queue.NotEntered, at.Status, "a place that was acknowledged is lost")
		require.Equal(t, c.scores[s], *at.Score, "a place that was acknowledged is another one now")
	}
}

// unavailable is how a request may fail while a part is away.
func unavailable(a answer) bool {
	if a.status == http.StatusConflict { // an attempt of before the outage still holds the token
		return a.code() == "order-in-progress" && a.header.Get("Retry-After") != ""
	}
	known := a.code() == "unavailable" || a.code() == "order-outcome-unknown"
	return a.status == http.StatusServiceUnavailable && known && a.header.Get("Retry-After") != ""
}

// turns hands out the processes one after the other.
func turns(all ...*process) func() *process {
	var mu sync.Mutex
	n := 0
	return func() *process {
		mu.Lock()
		defer mu.Unlock()
		n++
		return all[n%len(all)]
	}
}

// health is the status of /readyz.
func (w *world) health(p *process) int { return w.ask("GET", p.public+"/readyz", nil, "").status }

// untilHealth waits until each process is as ready as status says.
func (w *world) untilHealth(within time.Duration, status int, all ...*process) {
	w.t.Helper()
	harness.Eventually(w.t, within, fmt.Sprint("readyz answers ", status), func() bool {
		for _, p := range all {
			if w.health(p) != status {
				return false
			}
		}
		return true
	})
}
