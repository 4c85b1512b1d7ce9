package redisstore

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// sizes are the rooms that everything is tried in, by how many wait.
var sizes = []int{10_000, 1_000_000}

// benchRoom is a room in which n already wait, in a line put there directly.
func benchRoom(b *testing.B, n int) *fixture {
	b.Helper()
	f := on(b, harness.Redis(b), func(r *queue.Rules) {
		r.MaxWaiting, r.Batch, r.Interval = 1<<30, 10_000, 100*time.Millisecond
		r.PickupTTL = 24 * time.Hour
	})
	const fill = `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do redis.call('ZADD', KEYS[1], 1764400000000000 + i, 'waiting-member-' .. string.format('%07d', i)) end`
	for i := 0; i < n; i += 10_000 {
		if err := f.rdb.Eval(b.Context(), fill, []string{f.key("lane0")}, i, min(i+10_000, n)-1).Err(); err != nil && !errors.Is(err, redis.Nil) {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() { f.rdb.FlushDB(b.Context()) })
	return f
}

func inLine(i, n int) string { return fmt.Sprintf("waiting-member-%07d", i%n) }

func BenchmarkPoll(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			f := benchRoom(b, n)
			for i := 0; b.Loop(); i++ {
				st, err := f.Poll(b.Context(), f.room, inLine(i, n), queue.Place{})
				if err != nil || st.Rank != int64(i%n) {
					b.Fatal(st, err)
				}
			}
		})
	}
}

// BenchmarkScript is each script of a sale. redis-us is how long Redis executed a
// call, the rest is the client.
func BenchmarkScript(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			s := &scripts{benchRoom(b, n), n}
			for _, c := range s.calls() {
				b.Run(c.name, func(b *testing.B) { s.run(b, c) })
			}
		})
	}
}

type scripts struct {
	*fixture
	n int
}

// scriptCall is one call of a script, or two that undo each other.
type scriptCall struct {
	name   string
	before func()            // not measured
	do     func(i int) error // measured
}

func (s *scripts) run(b *testing.B, c scriptCall) {
	ctx := b.Context()
	require.NoError(b, s.rdb.ConfigResetStat(ctx).Err())
	calls, micros := 0.0, 0.0
	for i := 0; b.Loop(); i++ {
		if c.before != nil {
			b.StopTimer()
			c.before()
			require.NoError(b, s.rdb.ConfigResetStat(ctx).Err()) // its calls are not counted
			b.StartTimer()
		}
		if err := c.do(i); err != nil {
			b.Fatal(err)
		}
		if c.before != nil {
			b.StopTimer()
			n, us := s.executed()
			calls, micros = calls+n, micros+us
			b.StartTimer()
		}
	}
	if c.before == nil {
		calls, micros = s.executed()
	}
	b.ReportMetric(micros/calls, "redis-us")
}

var evalStats = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=(\d+)`)

// executed is how many scripts have run since the count began, and for how long.
func (s *scripts) executed() (calls, micros float64) {
	info, err := s.rdb.Info(s.Context(), "commandstats").Result()
	require.NoError(s, err)
	m := evalStats.FindStringSubmatch(info)
	require.NotNil(s, m, info)
	calls, _ = strconv.ParseFloat(m[1], 64)
	micros, _ = strconv.ParseFloat(m[2], 64)
	return calls, micros
}

func (s *scripts) calls() []scriptCall {
	ctx, last := s.Context(), s.n-1
	front := make([]string, 500)
	for i := range front {
		front[i] = inLine(i, s.n)
	}
	var granted []string
	var g queue.Grant
	return []scriptCall{
		{"enter-leave", nil, func(i int) error {
			_, err := s.Enter(ctx, s.room, fmt.Sprint("new-", i), 0)
			_, left := s.Leave(ctx, s.room, fmt.Sprint("new-", i), 0, queue.OutcomeLeft)
			return errors.Join(err, left)
		}},
		{"enter-again", nil, func(i int) error { _, err := s.Enter(ctx, s.room, inLine(i, s.n), 0); return err }},
		{"standing", nil, func(i int) error { _, err := s.Standing(ctx, s.room, inLine(i, s.n)); return err }},
		{"look", nil, func(i int) error { _, err := s.Look(ctx, s.room, inLine(i, s.n)); return err }},
		{"restore", nil, func(i int) error {
			_, err := s.Restore(ctx, s.room, queue.Lost{Generation: 7, Member: inLine(last-i%100, s.n), Ticket: 7,
				Place: queue.Place{Score: 1764400000000000 + int64(last-i%100)}, Issued: s.clock})
			return err
		}},
		{"heard=500", nil, func(int) error { return s.Heard(ctx, s.room, front) }},
		{"reap", nil, func(int) error { s.reap(); return nil }},
		{"snapshot", nil, func(int) error { _, err := s.Snapshot(ctx, s.room); return err }},
		{"marks", nil, func(int) error { _, err := s.SnapshotMarks(ctx, s.room); return err }},
		{"reserve-issue=500", s.refill, func(int) error { granted = s.grantAll(s.reserve()); return nil }},
		{"pickup", nil, func(i int) (err error) {
			if g.ID == "" {
				g = s.standing(granted[0]).Grant
			}
			_, err = s.PickUp(ctx, g, "k1")
			return err
		}},
		{"claim-release", nil, func(int) error {
			return errors.Join(s.Claim(ctx, g, "c1", 15*time.Second), s.Release(ctx, g, "c1"))
		}},
		{"consume=500", func() { s.refill(); granted = s.grantAll(s.reserve()) }, func(int) error {
			spent := make([]queue.Spent, len(granted))
			for i, m := range granted {
				spent[i] = queue.Spent{Member: m, Grant: fmt.Sprint("g", s.ids-len(granted)+1+i), Order: "0190b6a0-0000-7000-8000-000000000000"}
			}
			done, err := s.Consume(ctx, s.room, spent)
			if err == nil && done[0] != ConsumedNow {
				err = fmt.Errorf("a grant of this tick was %s", done[0])
			}
			return err
		}},
	}
}

// refill undoes the ticks before: who was let through stands in front again, and
// another batch may go.
func (s *scripts) refill() {
	ctx := s.Context()
	s.pass(100 * time.Millisecond)
	require.NoError(s, s.rdb.Del(ctx, s.key("ready"), s.key("grants"), s.key("done"), s.key("done:info")).Err())
	back := make([]redis.Z, 500)
	for i := range back {
		back[i] = redis.Z{Score: 1764400000000000 + float64(i), Member: inLine(i, s.n)}
	}
	require.NoError(s, s.rdb.ZAdd(ctx, s.key("lane0"), back...).Err())
}
