package ratelimit

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/internal/share"
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
	scripts *share.Scripts
	prefix  string
	clock   func() string
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
	l := &Limiter{scripts: share.NewScripts(rdb), prefix: prefix, clock: func() string { return "" }}
	for _, o := range opts {
		o(l)
	}
	return l
}

// Allow asks for one more under key, and counts it if it is allowed. Whoever
// shares a key and a limit shares the count. An error says that Redis could not
// be asked, or refused because it is full; it may have counted.
func (l *Limiter) Allow(ctx context.Context, key string, limit Limit) (Reply, error) {
	key = l.prefix + ":limit:" + limit.String() + ":" + key
	said, err := l.scripts.Run(ctx, scripts[limit.Algorithm], []any{key}, l.clock(), limit.N, limit.Per.Microseconds(), limit.depth())
	if err != nil {
		return Reply{}, fmt.Errorf("count %s: %w", limit, err)
	}
	n, err := numbers(said)
	if err != nil {
		return Reply{}, fmt.Errorf("count %s: %w", limit, err)
	}
	return Reply{
		Allowed: n[0] == 1, Limit: limit.N, Remaining: int(n[1]),
		RetryAfter: time.Duration(n[2]) * time.Microsecond, Reset: time.Duration(n[3]) * time.Microsecond,
	}, nil
}

// numbers reads the four that every script answers.
func numbers(said any) (n [4]int64, err error) {
	raw, ok := said.([]any)
	if !ok || len(raw) != len(n) {
		return n, fmt.Errorf("malformed reply %v", said)
	}
	for i := range n {
		if n[i], ok = raw[i].(int64); !ok {
			return n, fmt.Errorf("malformed reply %v", said)
		}
	}
	return n, nil
}
