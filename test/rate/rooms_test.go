//go:build faults

package rate

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// lateness gathers how late ticks begin, as the scheduler itself says.
type lateness struct {
	mu     sync.Mutex
	ticked map[string]bool
	late   []time.Duration
	failed int
}

func (l *lateness) note(k scheduler.Tick) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticked[k.Room] = true
	l.late = append(l.late, k.Late)
	if k.Err != nil {
		l.failed++
	}
}

// over empties what was gathered.
func (l *lateness) over() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := l.late
	l.late = nil
	slices.Sort(late)
	return late
}

// many makes n rooms by one statement, and begins them by one scheduler's first
// ticks.
func (h *house) many(n int, s room.Settings) *lateness {
	h.Helper()
	_, err := h.db.Exec(h.Context(), `INSERT INTO rooms (name, settings) SELECT 'r' || i, $2 FROM generate_series(1, $1) AS i`, n, s)
	require.NoError(h, err)
	l := &lateness{ticked: map[string]bool{}}
	h.run("only", func(c *scheduler.Config) { c.Observer.Ticked = l.note })
	harness.Eventually(h, 60*time.Second, "all rooms have begun", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.ticked) == n
	})
	return l
}

// A thousand rooms, each with somebody to let through in every second, and each
// with a batch that follows its orders.
func TestAThousandRoomsTickInTime(t *testing.T) {
	const rooms = 1000
	d := lasting(4*time.Second, 20*time.Second)
	h := newHouse(t)
	s := room.Defaults()
	s.BatchSize, s.PickupTTLSeconds, s.Adaptive, s.SettleSeconds = 2, 600, true, 0
	l := h.many(rooms, s)
	for i := 1; i <= rooms; i++ {
		h.crowd(fmt.Sprint("r", i), 2*int(d.Seconds())*(tries+1))
	}
	time.Sleep(2 * time.Second) // the rush of the beginning is over
	try(t, "1,000 rooms", func() measured {
		l.over()
		time.Sleep(d)
		late := l.over()
		p99 := late[len(late)*99/100]
		figure("1,000 adaptive rooms, each with somebody to let through: %.0f ticks a second, late by %v at p50, %v at p99, %v at most",
			float64(len(late))/d.Seconds(), late[len(late)/2].Round(time.Millisecond), p99.Round(time.Millisecond),
			late[len(late)-1].Round(time.Millisecond))
		require.Zero(t, l.failed)
		each := float64(len(late)) >= 0.95*rooms*d.Seconds() // ticks in each second
		return measured{each && p99 < 250*time.Millisecond, len(late) > rooms/2}
	})
}

// What a room costs that nobody uses: two looks at the line and one at what has
// ended, each second, and no statement of its own in Postgres.
func TestARoomThatNobodyUsesCostsThreeCallsASecond(t *testing.T) {
	t.Parallel()
	const rooms = 50
	d := lasting(5*time.Second, time.Minute)
	h := newHouse(t)
	h.many(rooms, room.Defaults())
	time.Sleep(time.Second)
	before, statements := h.calls.Load(), h.transactions()
	time.Sleep(d)
	calls := float64(h.calls.Load()-before) / rooms / d.Seconds()
	perSecond := float64(h.transactions()-statements) / d.Seconds()
	figure("a room that nobody uses: %.2f calls of Redis a second; of Postgres %.1f for all %d together", calls, perSecond, rooms)
	require.LessOrEqual(t, calls, 3.2)
	require.LessOrEqual(t, perSecond, 10.0)
}

// transactions is how many the database has seen.
func (h *house) transactions() (n int64) {
	h.Helper()
	require.NoError(h, h.db.QueryRow(h.Context(), `SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`).Scan(&n))
	return n
}
