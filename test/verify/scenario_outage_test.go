//go:build faults

package verify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

// awayFor is how long Redis is away in the tests of this file: nearly as long as
// somebody may be silent.
const awayFor = 90 * time.Second

// listen lets a second pass as a process lives it: it writes down whom it has
// heard, and the scheduler reaps. Each of n members polls once in thirty seconds.
func (c *counter) listen(second int, members []string) {
	c.t.Helper()
	var heard []string
	for i, m := range members {
		if i%30 == second%30 {
			heard = append(heard, m)
		}
	}
	require.NoError(c.t, c.line.Heard(c.t.Context(), shopRoom, heard))
	c.pass(time.Second)
	q, err := c.line.Snapshot(c.t.Context(), shopRoom)
	require.NoError(c.t, err)
	require.Zero(c.t, q.Away, "%d s: somebody polite is AWAY", second)
}

// The same as below, in the time of the test.
func TestNobodyPoliteIsAwayAfterAnOutageOfNinetySecondsOfTheClock(t *testing.T) {
	t.Parallel()
	c := openCounter(t, func(r *room.Settings) { r.Paused = true })
	members := make([]string, 90)
	for i := range members {
		members[i] = "m" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		_, err := c.line.Enter(t.Context(), shopRoom, members[i], 0)
		require.NoError(t, err)
	}
	second := 0
	for ; second < 150; second++ {
		c.listen(second, members)
	}
	tally.Faults(1)
	c.mu.Lock()
	c.clock = c.clock.Add(awayFor)
	c.mu.Unlock()
	for second++; second < 300; second++ { // where everybody was in their thirty seconds
		c.listen(second, members)
	}
	// And who does not come back is found out.
	for range int(c.life.Rules.AwayAfter/time.Second) + 2 {
		require.NoError(t, c.line.Heard(t.Context(), shopRoom, members[1:]))
		c.pass(time.Second)
	}
	q, err := c.line.Snapshot(t.Context(), shopRoom)
	require.NoError(t, err)
	require.EqualValues(t, 1, q.Away)
	c.judge()
}

// Redis is away for ninety seconds while people poll who are told to come back
// in thirty.
func TestNobodyPoliteIsAwayAfterRedisWasAwayForNinetySeconds(t *testing.T) {
	if !long() {
		t.Skip("takes four minutes: FAULTS=long")
	}
	t.Parallel()
	r, url := ownRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.Paused = true })
	a, b := s.start(), s.start()
	s.begun()
	waiting := s.wait(s.line(300, a, b), a, b)
	nobodyAway := func(d time.Duration) {
		t.Helper()
		for end := time.Now().Add(d); time.Now().Before(end); pause(t.Context(), 200*time.Millisecond) {
			if q, ok := s.look(); ok {
				require.Zero(t, q.Away)
			}
		}
	}
	nobodyAway(every)
	tally.Faults(1)
	r.Kill()
	pause(t.Context(), awayFor)
	back := time.Now()
	require.NoError(t, r.Start())
	s.untilSnapshot("ticks go on", func(q queue.Snapshot) bool { return q.TickedAt.After(back) })
	t.Logf("ticks go on %v after Redis is back", time.Since(back).Round(time.Millisecond))
	require.Less(t, time.Since(back), 5*time.Second+mayBeLate)
	nobodyAway(130 * time.Second)
	waiting.end()
	s.judge()
}
