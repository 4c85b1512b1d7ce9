package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// Case 30, redis/go-redis#2339 and redis/jedis#3187: the script was executed and
// its reply was lost, for every script there is, over and over. Nobody is lost
// and nobody is there twice.
func TestCase30LostRepliesOfScriptsLoseNobodyAndDoubleNobody(t *testing.T) {
	t.Parallel()
	const n = 80
	w := newWorld(t)
	direct := w.redis
	proxy := newLossy(t, harness.Redis(t).Options().Addr)
	w.redis = "redis://" + proxy.addr
	w.outages = true
	a, b := w.start(proxied...), w.start(proxied...)
	w.redis = direct
	clear := w.start("LINEKEEPER_ROLES=api") // sees what there is
	w.open(settings{"batchSize": 10, "intervalMs": 200, "claimLeaseSeconds": 11, "processingTimeoutSeconds": 1})

	scores, orders, kept := make([]int64, n), make([]string, n), make([]bool, n)
	together(n, func(i int) {
		s := w.member(fmt.Sprint("member-", i))
		both := turns(a, b)
		scores[i] = *persist(s.enter, both).position().Score
		again := persist(s.enter, both).position()
		if again.Score != nil && *again.Score != scores[i] {
			t.Errorf("member %d was at %d and is at %d", i, scores[i], *again.Score)
		}
		for s.token == "" {
			persist(s.poll, both)
		}
		orders[i] = persist(func(p *process) answer {
			got := s.order(p, "demo", 1)
			kept[i] = kept[i] || got.status == http.StatusConflict
			return got
		}, both).order().ID
	})
	require.False(t, t.Failed())

	distinct, keptOut := map[string]bool{}, 0
	for i := range n {
		if kept[i] {
			keptOut++
		}
		distinct[fmt.Sprint("score ", scores[i])], distinct[orders[i]] = true, true
	}
	require.Len(t, distinct, 2*n, "two members share a score or an order")
	require.Equal(t, n, w.placed())
	// It may happen where a claim and its release were both lost, twice each.
	require.Less(t, keptOut, n/8, "claims whose reply was lost have kept their own orders out")
	var s snapshot
	harness.Eventually(t, patience, "every grant is consumed", func() bool {
		s = w.snapshotAt(clear)
		return s.Counters["consumed"] == n
	})
	require.EqualValues(t, n, s.Counters["entered"], "somebody was entered twice")
	require.EqualValues(t, 0, s.inside(), "somebody is left over")
	require.EqualValues(t, n, s.admitted(), "somebody was admitted twice")
	w.conserved(s)
	proxy.hasDropped(t)
}

// persist makes a request until it succeeds; all else must be a 503 that says
// so, or an order that is still being placed.
func persist(request func(*process) answer, at func() *process) answer {
	deadline := time.Now().Add(2 * patience)
	for {
		got := request(at())
		done := got.status == http.StatusOK || got.status == http.StatusCreated
		if done || time.Now().After(deadline) || !unavailable(got) {
			if !done {
				got.t.Errorf("%d %v %s", got.status, got.err, got.body)
			}
			return got
		}
		time.Sleep(20 * time.Millisecond) // the client's own pace
	}
}

// hasDropped makes sure that the test has shown something.
func (p *lossy) hasDropped(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	often := 0
	for _, n := range p.dropped {
		if n >= 2 {
			often++
		}
	}
	// enter, standing, pickup, reserve, issue, claim, consume, and snapshot
	require.GreaterOrEqual(t, often, 8, "calls %v, dropped %v", p.calls, p.dropped)
}
