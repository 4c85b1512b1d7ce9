//go:build faults

package verify

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

// crush is people who all want to enter, over and over, whatever they are told.
type crush struct {
	refused, other atomic.Int64 // answers 503, and those that must not be
	leave          func()       // ends it
}

// press lets n of them in on these processes, until they are told to leave.
func (s *shop) press(n int, all []*fault.Process) *crush {
	c, stop := &crush{}, make(chan struct{})
	var people sync.WaitGroup
	for i := range n {
		people.Go(func() {
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond): // their pace
				}
				switch a := s.send(all[n%len(all)], http.MethodPost, entriesPath, nil, ""); a.status {
				case http.StatusCreated:
				case http.StatusServiceUnavailable:
					c.refused.Add(1)
				default:
					c.other.Add(1)
				}
			}
		})
	}
	c.leave = sync.OnceFunc(func() {
		close(stop)
		people.Wait()
	})
	s.t.Cleanup(c.leave)
	return c
}

// Case 34, redis/go-redis#3289: Redis is away while people ask all the time, so
// that every connection of every pool has failed over and over. When it is back,
// every process works within five seconds, and none was started again.
//
// The client is in the state that this is about as soon as it has failed to dial
// as often as its pool is large, which these people bring about within a second:
// a quick run is shorter for that reason.
func TestCase34PoolsWorkAgainSoonAfterALongOutage(t *testing.T) {
	t.Parallel()
	r, url := ownRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.Paused = true })
	all := []*fault.Process{s.start(), s.start()}
	s.begun()
	line := s.line(10, all...)
	away := 12 * time.Second
	if long() {
		away = 60 * time.Second
	}

	crowd := s.press(30, all) // more than a pool has connections
	s.untilSnapshot("the crowd is there", func(q queue.Snapshot) bool { return q.Waiting() > 100 })
	tally.Faults(1)
	r.Kill()
	pause(t.Context(), away)
	require.Greater(t, crowd.refused.Load(), int64(100), "the pools have not failed often: this test shows nothing")
	back := time.Now()
	require.NoError(t, r.Start())
	for _, p := range all {
		eventually(t, 5*time.Second+mayBeLate, "the process works again", func() bool {
			return s.send(p, http.MethodPost, entriesPath, nil, "").status == http.StatusCreated
		})
	}
	eventually(t, 5*time.Second+mayBeLate, "the scheduler ticks again", func() bool {
		q, ok := s.look()
		return ok && q.TickedAt.After(back)
	})
	t.Logf("works again %v after Redis is back", time.Since(back).Round(time.Millisecond))
	before := crowd.refused.Load()
	pause(t.Context(), time.Second)
	require.Less(t, crowd.refused.Load()-before, int64(30), "requests go on failing")
	crowd.leave()
	require.Zero(t, crowd.other.Load(), "an outage is a 503 and nothing else")
	for rank, c := range line {
		require.EqualValues(t, rank, *c.poll(all[rank%2]).is(http.StatusOK).position.Rank)
	}
	for _, p := range all {
		require.False(t, p.Ended())
	}
}
