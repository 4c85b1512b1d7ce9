package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// named is a process behind a proxy that says who asks.
func (w *world) named() *process {
	return w.start("LINEKEEPER_IDENTITY=header", "LINEKEEPER_TRUSTED_PROXIES=127.0.0.0/8", "LINEKEEPER_LOG_TRANSITIONS=true")
}

// sight is a member as the operators' API shows them.
type sight struct {
	State            string `json:"state"`
	Blocked, Evicted bool
}

func memberPath(id string, more ...string) string {
	return roomPath(append([]string{"members", url.PathEscape(id)}, more...)...)
}

func (w *world) seen(id string) sight {
	w.t.Helper()
	return decoded[sight](w.operate("GET", memberPath(id), nil).is(200))
}

func TestWhoIsKeptOutLosesTheTurnOnEveryProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.named(), w.named()
	w.open(nil)
	mal, eve, ann := w.member("mal"), w.member("eve"), w.member("ann")
	for _, s := range []*shopper{mal, eve, ann} {
		s.admitted(a)
	}
	require.Equal(t, "READY", w.seen("mal").State)
	w.operateAt(a, "PUT", memberPath("mal", "block"), confirmed).is(200)
	w.operateAt(a, "DELETE", memberPath("eve"), confirmed).is(200)
	for _, s := range []*shopper{mal, eve} {
		s.order(b, "demo", 1).is(401, "entry-token-invalid")
		p := s.poll(b).is(200).position()
		require.Equal(t, []any{queue.NotEntered, queue.OutcomeEvicted}, []any{p.Status, *p.LastOutcome})
		harness.Eventually(t, time.Second+slack, "the other process refuses too", func() bool {
			got := s.enter(b)
			return got.status == http.StatusForbidden && got.code() == "member-blocked"
		})
	}
	ann.order(b, "demo", 1).is(201)
	require.Equal(t, 1, w.placed())

	w.operate("POST", roomPath("flush"), confirmed).is(200)
	harness.Eventually(t, patience, "the evicted may enter the next sale", func() bool { return eve.enter(a).status == http.StatusCreated })
	harness.Eventually(t, time.Second+slack, "the blocked may not", func() bool { return mal.enter(a).code() == "member-blocked" })
	w.operate("DELETE", memberPath("mal", "block"), nil).is(200)
	harness.Eventually(t, time.Second+slack, "whoever is let in is let in everywhere", func() bool {
		got := mal.enter(b) // 200, where a process that did not know had given a place meanwhile
		return got.status == http.StatusCreated || got.status == http.StatusOK && got.position().Status != queue.NotEntered
	})
	for _, p := range []*process{a, b} {
		require.NotContains(t, p.said(), `"mal"`)
		require.NotContains(t, p.said(), "members/mal")
	}
}

// An order and a block come at once. Whichever is first, the answers are true: an
// order that was acknowledged is there, and none is placed after the block.
func TestAnOrderAndABlockAtOnceAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.named(), w.named()
	w.open(nil)
	const n = 24
	all := make([]*shopper, n)
	for i := range all {
		all[i] = w.member(fmt.Sprint("member-", i))
		all[i].enter(a).is(201)
	}
	for _, s := range all {
		s.until(a, queue.Ready)
	}
	var mu sync.Mutex
	placed := 0
	var done sync.WaitGroup
	for _, s := range all {
		done.Go(func() {
			if got := s.order(a, "demo", 1); got.status == http.StatusCreated {
				mu.Lock()
				defer mu.Unlock()
				placed++
			} else if got.status != http.StatusUnauthorized {
				t.Errorf("%s: the order answers %d %s", s.member, got.status, got.body)
			}
		})
		done.Go(func() {
			if got := w.operateAt(b, "PUT", memberPath(s.member, "block"), confirmed); got.status != http.StatusOK {
				t.Errorf("%s: the block answers %d %s", s.member, got.status, got.body)
			}
		})
	}
	done.Wait()
	require.Equal(t, placed, w.placed())
	for _, s := range all {
		harness.Eventually(t, patience, "the running order has ended", func() bool { return w.seen(s.member).State != "CLAIMED" })
		got := s.order(b, "demo", 1)
		require.Contains(t, []int{http.StatusOK, http.StatusUnauthorized}, got.status, "%s", got.body)
		require.Contains(t, []string{"NOT_ENTERED", "CONSUMED"}, w.seen(s.member).State)
	}
	require.Equal(t, placed, w.placed(), "nobody orders after the block")
	w.conserved(w.snapshot())
}

// Members, blocks and settings are on the listener of operators alone.
func TestNothingOfTheOperatorsIsOnThePublicPort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start()
	w.open(nil)
	for _, path := range []string{"/admin", "/admin/", "/admin/v1", roomPath(), roomPath("members", "ann"), "//admin/v1/rooms", "/ADMIN/v1/rooms",
		"/v1/../admin/v1/rooms", "/%61dmin/v1/rooms", "/metrics", "/debug/pprof/", "/debug/vars"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
			req, err := http.NewRequestWithContext(t.Context(), method, p.public+path, nil)
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+w.adminToken)
			resp, err := http.DefaultClient.Do(req) // not held against openapi.yaml, which knows these paths
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusNotFound, resp.StatusCode, "%s %s", method, path)
		}
	}
	w.operate("GET", roomPath(), nil).is(200)
}
