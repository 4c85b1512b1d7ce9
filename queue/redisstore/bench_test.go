package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// benchRoom is a room in which n already wait, in a line put there directly.
func benchRoom(b *testing.B, n int) *fixture {
	b.Helper()
	f := on(b, harness.Redis(b), func(r *queue.Rules) { r.MaxWaiting = 1 << 30; r.Batch = 10_000; r.Interval = 100 * time.Millisecond })
	f.rdb.FlushDB(b.Context())
	if err := f.Create(b.Context(), f.life); err != nil {
		b.Fatal(err)
	}
	const fill = `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do redis.call('ZADD', KEYS[1], 1764400000000000 + i, 'waiting-member-' .. string.format('%07d', i)) end`
	for i := 0; i < n; i += 10_000 {
		if err := f.rdb.Eval(b.Context(), fill, []string{f.key("lane0")}, i, min(i+10_000, n)-1).Err(); err != nil && !errors.Is(err, redis.Nil) {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	return f
}

func BenchmarkEnter(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := benchRoom(b, n)
			for i := range b.N {
				f.enter(fmt.Sprint("new-", i))
			}
		})
	}
}

func BenchmarkPoll(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := benchRoom(b, n)
			for i := range b.N {
				st, err := f.Poll(b.Context(), f.room, fmt.Sprintf("waiting-member-%07d", i%n), queue.Place{})
				if err != nil || st.Rank != int64(i%n) {
					b.Fatal(st, err)
				}
			}
		})
	}
}

// BenchmarkTick is one step of 500 members: reserve and issue.
func BenchmarkTick(b *testing.B) {
	f := benchRoom(b, 1_000_000)
	for range b.N {
		if got := f.grantAll(f.reserve()); len(got) == 0 {
			f.pass(100 * time.Millisecond)
		}
	}
}
