package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// pollWith polls and shows the entry token as well, as a client does that still
// holds one.
func (s *shopper) pollWith(p *process, token string) answer {
	h := s.headers()
	h.Set("X-Entry-Token", token)
	return s.keep(s.w.ask("GET", s.entries(p)+"/me", h, ""))
}

// Redis forgets everything while fifty people poll.
func TestTotalLossOfRedisIsRestoredFromTicketsInTheOldOrder(t *testing.T) {
	t.Parallel()
	r := harness.RedisServer(t)
	w := onRedis(t, r)
	a, b := w.pair()
	w.open(settings{"batchSize": 1, "intervalMs": 60_000, "settleSeconds": 10})

	bought := w.shopper()
	bought.admitted(a)
	made := bought.order(a, "demo", 1).is(201).order()
	bought.until(a, queue.Consumed)
	w.patch(a, settings{"batchSize": 2, "intervalMs": 100})
	holder, careless := w.shopper(), w.shopper()
	held := holder.admitted(a)
	careless.admitted(b)
	w.patch(a, settings{"batchSize": 1, "intervalMs": 60_000, "paused": true})
	before := w.untilSnapshot("the line stands still", func(s snapshot) bool { return s.RoomState == "PAUSED" })
	line := w.line(50, a, b)
	scores := make([]int64, len(line))
	for i, s := range line {
		scores[i] = *s.poll(a).is(200).position().Score
	}

	direct := redis.NewClient(&redis.Options{Addr: r.Addr})
	t.Cleanup(func() { _ = direct.Close() })
	require.NoError(t, direct.FlushAll(t.Context()).Err())
	w.patch(a, settings{"paused": false}) // not before: a tick in between would let one through
	lost := holder.token
	restoring := w.pollUntilRestored(line, a, b, before.Generation)
	require.Positive(t, restoring, "nobody was told that the room is RESTORING")

	// Who still holds a token shows it, and gets the place back instead; who shows
	// the ticket alone has been let through already, for all that is known.
	back := holder.pollWith(b, lost).is(200).position()
	require.Equal(t, *held.Score, *back.Score)
	require.Contains(t, []queue.Status{queue.Waiting, queue.Ready}, back.Status)
	require.Equal(t, queue.NotEntered, careless.poll(a).is(200).position().Status)
	spent := bought.pollWith(a, bought.token).is(200).position()
	require.Equal(t, queue.Consumed, spent.Status)
	require.Equal(t, made.ID, *spent.OrderID)

	ready := holder.until(a, queue.Ready)
	require.NotEqual(t, lost, *ready.EntryToken)
	ghost := &shopper{w: w, t: t, room: room, token: lost}
	ghost.order(b, "demo", 1).is(401, "entry-token-invalid")
	holder.order(b, "demo", 1).is(201)
	ghost.order(a, "demo", 1).is(401, "entry-token-invalid")

	for i, s := range line {
		p := s.poll(b).is(200).position()
		require.Equal(t, queue.Waiting, p.Status)
		require.Equal(t, scores[i], *p.Score, "a place was lost")
	}
	require.Equal(t, orderOfScores(scores), ranks(t, line, a), "the old order is not kept")
	s := w.snapshot()
	require.EqualValues(t, 51, s.Counters["restored"], "somebody was restored twice or not at all")
	require.EqualValues(t, 50, s.Sizes["waiting"])
	w.conserved(s)
	require.Equal(t, 2, w.placed())
}

// pollUntilRestored has everybody poll, all at once, until a later generation
// knows them all. It returns how many answers said RESTORING.
func (w *world) pollUntilRestored(line []*shopper, a, b *process, generation int64) int64 {
	w.t.Helper()
	var restoring atomic.Int64
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i, s := range line {
		wg.Go(func() {
			for n := i; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				time.Sleep(100 * time.Millisecond) // the shoppers' pace, not a wait for anything
				got := s.poll([]*process{a, b}[n%2])
				if got.status == http.StatusOK && got.position().RoomState == queue.Restoring {
					restoring.Add(1)
				} else if got.status != http.StatusOK && !unavailable(got) {
					w.t.Errorf("poll: %d %v %s", got.status, got.err, got.body)
				}
			}
		})
	}
	defer wg.Wait()
	defer close(done)
	var last snapshot
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%d answers have said RESTORING; at last the room was %+v", restoring.Load(), last)
		}
	}()
	harness.Eventually(w.t, patience, "everybody is back", func() bool {
		got := w.operate("GET", roomPath("snapshot"), nil)
		if got.status != http.StatusOK {
			return false
		}
		s := decoded[snapshot](got)
		last = s
		// A process shows the state of the room as it was a quarter of a second ago.
		return s.Generation > generation && s.Counters["restored"] >= int64(len(line)) && restoring.Load() > 0
	})
	return restoring.Load()
}

// orderOfScores lists how many of the scores are smaller, for each.
func orderOfScores(scores []int64) []int64 {
	out := make([]int64, len(scores))
	for i := range scores {
		for j := range scores {
			if scores[j] < scores[i] {
				out[i]++
			}
		}
	}
	return out
}

func ranks(t *testing.T, line []*shopper, p *process) []int64 {
	t.Helper()
	out := make([]int64, len(line))
	for i, s := range line {
		at := s.poll(p).is(200).position()
		require.NotNil(t, at.Rank, fmt.Sprint(spec.Position(at)))
		out[i] = *at.Rank
	}
	return out
}
