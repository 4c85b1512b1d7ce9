package ratelimit

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFS embed.FS

// A full Redis refuses the scripts: they would grow it.
const refusedWhenFull = "#!lua\n"

var scripts = map[Algorithm]*redis.Script{
	Fixed:   script("fixed"),
	Sliding: script("sliding"),
	Token:   script("bucket"),
	Leaky:   script("bucket"),
}

func script(name string) *redis.Script {
	return redis.NewScript(refusedWhenFull + mustRead("prelude") + mustRead(name))
}

// mustRead panics where a file is missing: that is a mistake of the build.
func mustRead(name string) string {
	b, err := luaFS.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Limiter counts in Redis. It is safe for concurrent use, by any number of
// processes, which share its counts.
type Limiter struct {
	rdb    redis.UniversalClient
	prefix string
	clock  func() string
}

// Option changes a Limiter under construction.
type Option func(*Limiter)

// WithClock counts by the time that now returns, instead of the clock of Redis.
// For tests alone: processes must share one clock.
func WithClock(now func() time.Time) Option {
	return func(l *Limiter) {
		l.clock = func() string { return strconv.FormatInt(now().UnixMicro(), 10) }
	}
}

// New returns a Limiter on rdb, which stays the caller's to close. Its keys
// begin with prefix and ":limit:".
func New(rdb redis.UniversalClient, prefix string, opts ...Option) *Limiter {
	l := &Limiter{rdb: rdb, prefix: prefix, clock: func() string { return "" }}
	for _, o := range opts {
		o(l)
	}
	return l
}

// Allow asks for one more under key, and counts it if it is allowed. Whoever
// shares a key and a limit shares the count. An error says that Redis could not
// be asked, or refused because it is full; it may have counted.
func (l *Limiter) Allow(ctx context.Context, key string, limit Limit) (Reply, error) {
	keys := []string{l.prefix + ":limit:" + limit.String() + ":" + key}
	raw, err := scripts[limit.Algorithm].Run(ctx, l.rdb, keys, l.clock(), limit.N, limit.Per.Microseconds(), limit.depth()).Int64Slice()
	if err != nil {
		return Reply{}, fmt.Errorf("count %s: %w", limit, err)
	}
	if len(raw) != 4 {
		return Reply{}, fmt.Errorf("count %s: malformed reply of %d fields", limit, len(raw))
	}
	return Reply{
		Allowed: raw[0] == 1, Limit: limit.N, Remaining: int(raw[1]),
		RetryAfter: time.Duration(raw[2]) * time.Microsecond, Reset: time.Duration(raw[3]) * time.Microsecond,
	}, nil
}
