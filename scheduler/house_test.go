package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// house is one room on a real Redis and a real Postgres, with as many
// schedulers as a test likes.
type house struct {
	*testing.T
	*redisstore.Store
	rdb    *redis.Client
	books  *pgstore.Store
	db     *pgxpool.Pool
	prefix string
	end    []func()
}

const theRoom = "a"

var operator = room.Actor{Name: "ann", Role: "operator", Remote: "127.0.0.1"}

// setup makes the room, of 50 a second unless change says otherwise.
func setup(t *testing.T, change ...func(*room.Settings)) *house {
	t.Helper()
	t.Parallel()
	return on(t, harness.Redis(t), harness.Database(t), change...)
}

func on(t *testing.T, rdb *redis.Client, db *pgxpool.Pool, change ...func(*room.Settings)) *house {
	t.Helper()
	h := &house{T: t, rdb: rdb, db: db, books: pgstore.New(db), prefix: fmt.Sprintf("s%x", rand.Uint64())}
	h.Store = redisstore.New(rdb, h.prefix)
	settings := room.Defaults()
	settings.SettleSeconds = 0
	for _, f := range change {
		f(&settings)
	}
	_, err := h.books.Create(t.Context(), theRoom, settings, operator)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, end := range h.end {
			end()
		}
	})
	return h
}

// rate lets batch members through per interval.
func rate(batch int, interval time.Duration) func(*room.Settings) {
	return func(s *room.Settings) { s.BatchSize, s.IntervalMs = batch, int(interval.Milliseconds()) }
}

// lock is a lock of the house's Redis, over a client of its own.
func (h *house) lock(ttl time.Duration) scheduler.Lock {
	opts := *h.rdb.Options()
	opts.MaxRetries, opts.ReadTimeout, opts.WriteTimeout, opts.DialTimeout = -1, ttl/6, ttl/6, ttl/6
	client := redis.NewClient(&opts)
	h.end = append(h.end, func() { _ = client.Close() })
	return scheduler.NewLock(h.prefix+":leader", ttl, goredis.NewPool(client))
}

// run starts a scheduler and returns what stops it and waits for it.
func (h *house) run(name string, change ...func(*scheduler.Config)) (stop func()) {
	c := scheduler.Config{
		Line: h.Store, Batches: h.Store, Rooms: h.Store, Books: h.books, Admissions: h.books, Terms: h.Terms(), Lock: h.lock(ttl), TTL: ttl,
		Leader: name, NewGrant: uuid.NewString, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = scheduler.New(c).Run(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	h.end = slices.Insert(h.end, 0, stop) // before the clients that it uses
	return stop
}

// withTTL gives a scheduler a lock that runs out sooner.
func (h *house) withTTL(d time.Duration) func(*scheduler.Config) {
	return func(c *scheduler.Config) { c.Lock, c.TTL = h.lock(d), d }
}

// begun waits until the room has begun.
func (h *house) begun() {
	h.Helper()
	h.eventually(5*time.Second, "the room begins", func() bool {
		_, err := h.Snapshot(h.Context(), theRoom)
		return err == nil
	})
}

// open begins the room without a scheduler.
func (h *house) open() queue.Life {
	h.Helper()
	life, err := h.books.Begin(h.Context(), theRoom, h.life().Generation)
	require.NoError(h, err)
	require.NoError(h, h.Create(h.Context(), life))
	return life
}

// life is what Postgres has of the room.
func (h *house) life() queue.Life {
	h.Helper()
	lives, err := h.books.Lives(h.Context())
	require.NoError(h, err)
	return lives[slices.IndexFunc(lives, func(l queue.Life) bool { return l.Room == theRoom })]
}

func (h *house) snapshot() queue.Snapshot {
	h.Helper()
	s, err := h.Snapshot(h.Context(), theRoom)
	require.NoError(h, err)
	return s
}

// tickedBy waits until leader has ticked the room, and returns how long it took.
func (h *house) tickedBy(leader string, within time.Duration) time.Duration {
	h.Helper()
	asked := time.Now()
	h.eventually(within, leader+" ticks", func() bool {
		s, err := h.Snapshot(h.Context(), theRoom)
		return err == nil && s.Leader == leader
	})
	return time.Since(asked)
}

// enter puts n members in line, in the order of the names it returns.
func (h *house) enter(n int) []string {
	h.Helper()
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf("m%05d", i)
		_, err := h.Enter(h.Context(), theRoom, members[i], 0)
		require.NoError(h, err)
	}
	return members
}

func (h *house) standing(member string) queue.Standing {
	h.Helper()
	s, err := h.Standing(h.Context(), theRoom, member)
	require.NoError(h, err)
	return s
}

// admitted is how many grants there have been.
func (h *house) admitted() (n int64) {
	h.Helper()
	for _, lane := range h.snapshot().Lanes {
		n += lane.Admitted
	}
	return n
}

func (h *house) eventually(within time.Duration, what string, f func() bool) {
	h.Helper()
	harness.Eventually(h, within, what, f)
}

// grantTimes are the moments at which members were granted, in their order, by
// the clock of Redis.
func (h *house) grantTimes(members []string) []time.Time {
	h.Helper()
	times := make([]time.Time, len(members))
	for i, m := range members {
		s := h.standing(m)
		require.Equal(h, queue.Ready, s.Status, "%s has no grant", m)
		times[i] = s.Grant.IssuedAt
	}
	return times
}

// checkRate holds I10: in no window more than the rate, plus one batch.
func (h *house) checkRate(times []time.Time, batch int, interval time.Duration) {
	h.Helper()
	times = slices.Clone(times)
	slices.SortFunc(times, time.Time.Compare)
	for i, from := range times {
		for j := i; j < len(times); j++ {
			allowed := float64(batch)*float64(times[j].Sub(from))/float64(interval) + float64(batch)
			require.LessOrEqual(h, float64(j-i+1), allowed+1e-6, "I10: %d grants within %v", j-i+1, times[j].Sub(from))
		}
	}
}

// exclude keeps members out of the room, as operators do.
func (h *house) exclude(members []string) {
	h.Helper()
	_, err := h.db.Exec(h.Context(), `INSERT INTO room_exclusions (room, member, kind) SELECT $1, unnest($2::text[]), 'blocked'`,
		theRoom, members)
	require.NoError(h, err)
}
