//go:build faults

package rate

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// lasting is how long something is measured, in a quick run or a long one.
func lasting(quick, long time.Duration) time.Duration {
	if os.Getenv("FAULTS") == "long" {
		return long
	}
	return quick
}

// figure prints what was measured, for docs/verification.md, with what else the
// machine had to do.
func figure(format string, args ...any) {
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	fmt.Printf("rate: "+format+" (load %s)\n", append(args, load)...)
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return string(text)
}

// house is some rooms on a real Redis and Postgres.
type house struct {
	*testing.T
	*redisstore.Store
	rdb    *redis.Client
	db     *pgxpool.Pool
	books  *pgstore.Store
	prefix string
	ends   []func()
	calls  atomic.Int64 // that schedulers have made to Redis
}

// counting counts the commands of a client.
type counting struct{ n *atomic.Int64 }

func (c counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == "evalsha" { // the others introduce a connection
				c.n.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

func newHouse(t *testing.T) *house {
	h := &house{T: t, rdb: harness.Redis(t), db: harness.Database(t), prefix: fmt.Sprintf("rate%x", rand.Uint64())}
	h.Store, h.books = redisstore.New(h.rdb, h.prefix), pgstore.New(h.db)
	t.Cleanup(h.close)
	return h
}

func (h *house) close() {
	for _, end := range slices.Backward(h.ends) {
		end()
	}
	h.ends = nil
}

var operator = room.Actor{Name: "olaf", Role: "admin", Remote: "127.0.0.1"}

// open begins a room with n members in line.
func (h *house) open(name string, n int, change func(*room.Settings)) {
	h.Helper()
	s := room.Defaults()
	s.PickupTTLSeconds, s.SettleSeconds = 600, 0
	change(&s)
	_, err := h.books.Create(h.Context(), name, s, operator)
	require.NoError(h, err)
	life, err := h.books.Begin(h.Context(), name, 0)
	require.NoError(h, err)
	require.NoError(h, h.Create(h.Context(), life))
	h.crowd(name, n)
}

func (h *house) key(name, part string) string { return h.prefix + ":{" + name + "}:" + part }

func member(i int) string { return fmt.Sprintf("m%06d", i) }

// crowd puts members in line, as if they had entered a microsecond apart.
func (h *house) crowd(name string, n int) {
	h.Helper()
	first := time.Now().UnixMicro() - int64(n)
	for i := 0; i < n; i += 5000 {
		var entries []redis.Z
		for k := i; k < min(i+5000, n); k++ {
			entries = append(entries, redis.Z{Score: float64(first + int64(k)), Member: member(k)})
		}
		require.NoError(h, h.rdb.ZAdd(h.Context(), h.key(name, "lane0"), entries...).Err())
	}
	require.NoError(h, h.rdb.HIncrBy(h.Context(), h.key(name, "stats"), "entered", int64(n)).Err())
}

// lockTTL is that of a process's own settings.
const lockTTL = 5 * time.Second

// run starts a scheduler with connections of its own, as a process has.
func (h *house) run(leader string, change func(*scheduler.Config)) {
	rdb, locks := redis.NewClient(h.rdb.Options()), redis.NewClient(h.rdb.Options())
	rdb.AddHook(counting{&h.calls})
	pool := h.db.Config()
	pool.MaxConns = 6
	db, err := pgxpool.NewWithConfig(h.Context(), pool)
	require.NoError(h, err)
	line, books := redisstore.New(rdb, h.prefix), pgstore.New(db)
	c := scheduler.Config{
		Line: line, Batches: line, Rooms: line, Books: books, Admissions: books, Terms: line.Terms(),
		Lock: scheduler.NewLock(h.prefix+":leader", lockTTL, goredis.NewPool(locks)), TTL: lockTTL,
		Leader: leader, NewGrant: credential.NewGrantID, Log: slog.New(slog.DiscardHandler),
	}
	change(&c)
	ctx, stop := context.WithCancel(context.WithoutCancel(h.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = scheduler.New(c).Run(ctx) })
	h.ends = append(h.ends, func() {
		stop()
		running.Wait()
		_, _ = rdb.Close(), locks.Close()
		db.Close()
	})
}

// grants are the times at which members of a room were let through, in order, by
// the clock of Redis in microseconds.
func (h *house) grants(name string) []int64 {
	h.Helper()
	all, err := h.rdb.HVals(h.Context(), h.key(name, "grants")).Result()
	require.NoError(h, err)
	times := make([]int64, len(all))
	for i, record := range all { // id lane score issued ...
		times[i], err = strconv.ParseInt(strings.Fields(record)[3], 10, 64)
		require.NoError(h, err)
	}
	slices.Sort(times)
	return times
}

// within holds I10 in every window: the level of a bucket that leaks at the rate
// is the most that any window which ends at a grant has above it.
func (h *house) within(times []int64, batch int, interval time.Duration) {
	h.Helper()
	perMicro, level := float64(batch)/float64(interval.Microseconds()), 0.0
	for i, at := range times {
		if i > 0 {
			level = max(level-perMicro*float64(at-times[i-1]), 0)
		}
		level++
		require.LessOrEqual(h, level, float64(batch)+1e-3, "I10: more than the rate and a batch, at grant %d", i)
	}
}
