//go:build faults

package verify

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

// throng is customers who come to an address one after the other, and through
// whatever is behind it. Nothing of what they ask may fail.
type throng struct {
	s        *shop
	base     string
	requests atomic.Int64
	hungUp   atomic.Int64 // requests that nginx could not give to anybody, and that were repeated

	mu    sync.Mutex
	wrong []string
	ids   map[string]bool // of the orders they were told of
}

// come has n customers at a time there until ctx ends, and returns when each has
// had the answer to the last request.
func (h *throng) come(ctx context.Context, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				h.visit(ctx, h.s.customer())
			}
		})
	}
	all.Wait()
}

// visit is one customer's way: in, a few polls, and an order.
func (h *throng) visit(ctx context.Context, c *customer) {
	if !h.fine(h.ask(func() heard { return c.enterAt(h.base) }), http.StatusCreated, http.StatusOK) {
		return
	}
	for c.token == "" && ctx.Err() == nil {
		h.fine(c.pollAt(h.base, ""), http.StatusOK)
		h.fine(h.s.sendTo(h.base, http.MethodGet, "/v1/rooms/"+shopRoom, nil, ""), http.StatusOK)
	}
	if c.token == "" {
		return
	}
	if a := h.ask(func() heard { return c.buyAt(h.base) }); h.fine(a, http.StatusCreated, http.StatusOK) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ids[a.order.ID] = true
	}
}

// ask repeats what nginx itself has answered. A connection that stands in the
// queue of a listener when that is closed is reset by the kernel, and nginx, which
// repeats nothing that it has sent, says so to the customer, who repeats it.
func (h *throng) ask(call func() heard) heard {
	for {
		a := call()
		if a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), ofNginx) {
			return a
		}
		h.hungUp.Add(1)
	}
}

// ofNginx stands in the problems of deploy/nginx.conf and in no other.
const ofNginx = "replica"

// fine counts a request, and keeps it if it is not answered as it must be.
func (h *throng) fine(a heard, as ...int) bool {
	h.requests.Add(1)
	for _, status := range as {
		if a.err == nil && a.status == status {
			return true
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Sprintf("%d %s %v %s", a.status, a.code, a.err, a.body))
	return false
}

// H2: three processes are replaced one after the other while requests come
// through nginx, which knows nothing of it.
func TestRollingRestartBehindNginxLosesNoRequest(t *testing.T) {
	t.Parallel()
	wanted, delay := int64(10_000), "4s" // above keepalive_timeout of deploy/nginx.conf
	if long() {
		wanted, delay = 100_000, "5s" // the default delay
	}
	_, url := ownRedis(t)
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.BatchSize, r.IntervalMs, r.PickupTTLSeconds = 50, 200, 120 })
	ports := harness.FreePorts(t, 3)
	startOn := func(port string) *fault.Process {
		return s.start("LINEKEEPER_LISTEN=127.0.0.1:"+port, "LINEKEEPER_SHUTDOWN_DELAY="+delay)
	}
	serving := make([]*fault.Process, len(ports))
	for i, port := range ports {
		serving[i] = startOn(port)
	}
	s.begun()
	base, complaints := nginx(t, ports)
	h := &throng{s: s, base: base, ids: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	crowd.Go(func() { h.come(ctx, 32) })
	defer crowd.Wait()
	defer stop()

	began, rounds := time.Now(), 0
	for ; rounds == 0 || h.requests.Load() < wanted; rounds++ {
		for i, port := range ports {
			before := h.requests.Load()
			eventually(t, longEnough, "requests come", func() bool { return h.requests.Load() > before+100 })
			s.ends(serving[i])
			serving[i] = startOn(port)
			s.begunAt(serving[i])
			tally.Faults(1)
		}
	}
	stop()
	crowd.Wait()
	t.Logf("%d requests in %v, %d orders, %d restarts: %d not as they must be", h.requests.Load(), time.Since(began).Round(time.Second),
		len(h.ids), rounds*len(ports), len(h.wrong))
	t.Logf("%d connections were reset before anybody had taken them", h.hungUp.Load())
	require.LessOrEqual(t, h.hungUp.Load(), h.requests.Load()/1000, "the window is as short as can be")
	require.Empty(t, h.wrong[:min(len(h.wrong), 10)], "nginx has said: %.3000s", failuresOf(complaints()))
	require.Equal(t, len(h.ids), s.orders(), "an order without an answer, or the other way round")
	s.judge()
}

// failuresOf are the lines about requests that nginx could not pass on at once.
func failuresOf(log string) string {
	var lines []string
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "[info]") && !strings.Contains(line, "[notice]") && !strings.Contains(line, "Connection refused") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// ends has a process end as a rolling restart does. Its clients are others' to
// close: nginx keeps connections.
func (s *shop) ends(p *fault.Process) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), longEnough)
	defer cancel()
	require.NoError(s.t, p.Terminate(ctx))
	require.Zero(s.t, p.ExitCode(), p.Tail())
}
