package e2e

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// metric reads one series of a process; 0 where it is not there.
func (w *world) metric(p *process, series string) string {
	w.t.Helper()
	for line := range strings.Lines(string(w.operateAt(p, "GET", "/metrics", nil).is(200).body)) {
		if value, ok := strings.CutPrefix(line, "linekeeper_"+series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (w *world) stateAt(p *process, name string) queue.RoomState {
	got := w.ask("GET", p.public+"/v1/rooms/"+name, nil, "")
	if got.status != 200 {
		return ""
	}
	return decoded[spec.RoomStatus](got).RoomState
}

// TestARoomThatFailsOpenSellsOnceWhileRedisIsKilled has two rooms on two processes:
// one that stays closed, and one in which people pass and order until Redis is back.
func TestARoomThatFailsOpenSellsOnceWhileRedisIsKilled(t *testing.T) {
	t.Parallel()
	r := harness.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
	w := onRedis(t, r)
	a, b := w.pair()
	w.open(settings{"fail": "open", "failOpenAfterSeconds": 3, "batchSize": 1000, "capacity": 4})
	w.openRoom("strict", nil)
	var inside []*shopper
	for range 4 {
		s := w.shopper()
		s.admitted(a)
		inside = append(inside, s)
	}
	line := w.line(8, a, b) // for whom there is no room
	scores := map[*shopper]int64{}
	for _, s := range line {
		scores[s] = *s.poll(a).is(200).position().Score
	}

	r.Kill()
	killed := time.Now()
	w.shopper().enter(a).is(503, "unavailable")
	harness.Eventually(t, patience, "the room fails open everywhere", func() bool {
		return w.stateAt(a, room) == queue.FailedOpen && w.stateAt(b, room) == queue.FailedOpen
	})
	require.Greater(t, time.Since(killed), 2500*time.Millisecond, "not before its time")
	require.Equal(t, "1", w.metric(a, `failed_open{room="sale"}`))
	w.untilHealth(redIn, 200, a, b)
	(&shopper{w: w, t: t, room: "strict"}).enter(a).is(503, "unavailable")

	orders := 0
	for i, s := range slices.Concat(w.newcomers(6), line) {
		p := s.enter([]*process{a, b}[i%2]).is(200).position()
		require.Equal(t, queue.Ready, p.Status)
		require.Equal(t, queue.FailedOpen, p.RoomState)
	}
	for i, s := range slices.Concat(w.passedBy(a, 6), line[:4], inside) {
		var created atomic.Int64
		together(4, func(hand int) {
			switch got := s.order([]*process{a, b}[(i+hand)%2], "demo", 1); got.status {
			case 201:
				created.Add(1)
			case 200, 409:
			default:
				t.Errorf("order: %d %v %s", got.status, got.err, got.body)
			}
		})
		require.EqualValues(t, 1, created.Load(), "one token, one order")
		orders++
	}
	require.Equal(t, orders, w.placed())

	require.NoError(t, r.Start())
	harness.Eventually(t, patience, "the line decides again", func() bool {
		return w.metric(a, `failed_open{room="sale"}`) == "0" && w.metric(b, `failed_open{room="sale"}`) == "0"
	})
	for _, s := range line[4:] { // tokens of that time are good until they end
		s.order(b, "demo", 1).is(201)
		orders++
	}
	for _, s := range slices.Concat(line, inside) { // and none twice
		harness.Eventually(t, patience, "the breaker closes, the order is there", func() bool {
			got := s.order(a, "demo", 1)
			require.NotEqual(t, 201, got.status)
			return got.status == 200
		})
	}
	for _, s := range line {
		harness.Eventually(t, patience, "the place is the same", func() bool {
			got := s.poll(a)
			return got.status == 200 && got.position().Score != nil && *got.position().Score == scores[s]
		})
	}
	require.Equal(t, orders, w.placed())
	harness.Eventually(t, patience, "every event has ended", func() bool {
		return sql[int](w, "SELECT count(*) FROM outbox WHERE status <> 'done'") == 0
	})
	require.Equal(t, orders, sql[int](w, "SELECT count(*) FROM outbox"))
	w.conserved(w.snapshot())
	for _, p := range []*process{a, b} {
		require.Len(t, p.logged("redis is out of reach, the room fails open: everybody passes"), 1)
		require.Len(t, p.logged("the room has closed again: the line decides who passes"), 1)
	}
}

// newcomers have not entered yet.
func (w *world) newcomers(n int) []*shopper {
	all := make([]*shopper, n)
	for i := range all {
		all[i] = w.shopper()
	}
	return all
}

// passedBy are people whom a process has let pass.
func (w *world) passedBy(p *process, n int) []*shopper {
	w.t.Helper()
	all := w.newcomers(n)
	for _, s := range all {
		s.enter(p).is(200)
	}
	return all
}
