package naive_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

var errCrashed = errors.New("the process is gone")

// interruption befalls a client after so many commands: 0 is before the first.
// That is where a process can be stopped, whichever way it is built.
type interruption struct {
	after  int
	happen func() error // an error ends the client for good

	mu      sync.Mutex
	seen    int
	crashed error
	struck  bool
}

// crash ends the process after so many commands.
func crash(after int) *interruption {
	return &interruption{after: after, happen: func() error { return errCrashed }}
}

// stall stops the process after so many commands: it says so on reached, and
// goes on when resume is closed.
func stall(after int, reached chan<- struct{}, resume <-chan struct{}) *interruption {
	return &interruption{after: after, happen: func() error {
		close(reached)
		<-resume
		return nil
	}}
}

// strike lets happen what has to after n commands.
func (i *interruption) strike(n int) error {
	i.mu.Lock()
	now := n == i.after && !i.struck
	i.struck = i.struck || now
	i.mu.Unlock()
	if now {
		err := i.happen() // may last: others must be able to look meanwhile
		i.mu.Lock()
		i.crashed = err
		i.mu.Unlock()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.crashed
}

// happened tells whether the call was as long as that.
func (i *interruption) happened() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.struck
}

func (i *interruption) next() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen++
	return i.seen
}

// DialHook changes nothing.
func (i *interruption) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing: neither way sends pipelines.
func (i *interruption) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook counts commands. One that was sent has its effect, also where the
// process does not live to see the answer.
func (i *interruption) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n := i.next()
		if err := i.strike(n - 1); err != nil {
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if crashed := i.strike(n); crashed != nil {
			cmd.SetErr(crashed)
			return crashed
		}
		return err
	}
}

// client is a process's own connection to the Redis of the test. It is open
// already: what a client says to get acquainted does not count.
func client(t testing.TB, hooks ...redis.Hook) *redis.Client {
	t.Helper()
	c := harness.Redis(t)
	if len(hooks) > 0 {
		require.NoError(t, c.Ping(t.Context()).Err())
	}
	for _, h := range hooks {
		c.AddHook(h)
	}
	return c
}

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// start is when every scenario begins; time is data here.
var start = time.UnixMicro(1_764_500_000_000_000)

func newClock() *clock { return &clock{now: start} }

// Now is what the clock shows.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Pass moves the clock on.
func (c *clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
