// Package breaker keeps requests from waiting for a Redis that does not answer.
//
// A Breaker stands in front of one server, as a hook of go-redis. It opens after
// five failures in a row, answers OpenError at once for three seconds, and then
// lets one request try:
//
//	closed --5 failures in a row--> open --3 s--> half open --answered--> closed
//	                                 ^               |
//	                                 +---- failed ---+
//
// A failure is a call that got no answer: no connection, one that broke, or none
// in time. What Redis says, an error too (full, read-only, loading, busy), is an
// answer; a client that hung up proves nothing.
//
// Only requests go through it, those of whom Requests has made a note: the
// scheduler, the relay, operators and the probes ask as ever, so that they see for
// themselves when Redis is back, and a breaker can't hide that from them.
//
// It does not decide what becomes of a room whose Redis is away.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

const (
	// failures in a row open a breaker: one broken connection is nothing, and with
	// a read timeout of half a second five at once are.
	failures = 5
	// openFor is how long nobody is let try.
	openFor = 3 * time.Second
	// memory is how long a failure counts while nobody asks.
	memory = 10 * time.Second
)

// State is what a breaker does with requests.
type State int

// The states, as the metric has them.
const (
	Closed   State = iota // they go through
	HalfOpen              // one tries, the others are refused
	Open                  // they are refused
)

// String is the state in a word.
func (s State) String() string { return gobreaker.State(s).String() }

// OpenError is the answer to a request that was not sent: the ones before it got
// no answer.
type OpenError struct {
	Name  string
	after time.Duration
}

// Error names the breaker.
func (e OpenError) Error() string { return fmt.Sprintf("breaker %s is open", e.Name) }

// RetryAfter is when to come back: spread, so that not all try at one moment.
func (e OpenError) RetryAfter() time.Duration { return e.after }

type requestKey struct{}

// Requests notes of all that next does for a request that a client waits for it.
func Requests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(Request(r.Context())))
	})
}

// Request is ctx with the note that somebody waits for what is done in it.
func Request(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, true)
}

func isRequest(ctx context.Context) bool { return ctx.Value(requestKey{}) != nil }

// Guard puts a breaker in front of rdb; in a Cluster one in front of each node, so
// that a shard that is away takes no room of another along. changed is told each
// change with the name of the breaker: redis, in a Cluster with the node's address;
// first, from closed to closed, that there is one.
func Guard(rdb redis.UniversalClient, changed func(name string, from, to State)) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		rdb.AddHook(New("redis", changed))
		return
	}
	cluster.OnNewNode(func(node *redis.Client) { node.AddHook(New("redis "+node.Options().Addr, changed)) })
}

// Breaker is a hook for the client of one server.
type Breaker struct {
	name string
	cb   *gobreaker.CircuitBreaker[struct{}]
	// troubled is false while no failure is remembered. Then a call costs one look
	// at it: almost all calls there will ever be.
	troubled atomic.Bool
}

// errAside is the verdict on a call that tells nothing.
var errAside = errors.New("nothing learnt")

// New returns a closed breaker, and tells changed so.
func New(name string, changed func(name string, from, to State)) *Breaker {
	b := &Breaker{name: name}
	b.cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: name, MaxRequests: 1, Interval: memory, Timeout: openFor,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsExcluded:    func(err error) bool { return errors.Is(err, errAside) },
		OnStateChange: func(name string, from, to gobreaker.State) { changed(name, State(from), State(to)) },
	})
	changed(name, Closed, Closed)
	return b
}

// DialHook implements redis.Hook: it is the calls that count.
func (b *Breaker) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (b *Breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !b.troubled.Load() {
			return b.note(ctx, next(ctx, cmd))
		}
		err := b.call(ctx, func() error { return next(ctx, cmd) })
		if isOpen(err) {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (b *Breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !b.troubled.Load() {
			return b.note(ctx, next(ctx, cmds))
		}
		err := b.call(ctx, func() error { return next(ctx, cmds) })
		if isOpen(err) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// note remembers the first failure.
func (b *Breaker) note(ctx context.Context, err error) error {
	if err == nil || !isRequest(ctx) {
		return err
	}
	if why := verdict(ctx, err); why != nil && why != errAside {
		b.troubled.Store(true)
		_, _ = b.cb.Execute(func() (struct{}, error) { return struct{}{}, why })
	}
	return err
}

// call lets a request through, or not.
func (b *Breaker) call(ctx context.Context, do func() error) error {
	if !isRequest(ctx) {
		return do()
	}
	var err error
	_, refused := b.cb.Execute(func() (struct{}, error) {
		err = do()
		return struct{}{}, verdict(ctx, err)
	})
	if errors.Is(refused, gobreaker.ErrOpenState) || errors.Is(refused, gobreaker.ErrTooManyRequests) {
		return OpenError{Name: b.name, after: time.Second + rand.N(openFor)}
	}
	if refused == nil && b.cb.State() == gobreaker.StateClosed {
		b.troubled.Store(false)
	}
	return err
}

// verdict is nil for an answer, errAside where a client no longer waited for one,
// else the failure.
func verdict(ctx context.Context, err error) error {
	switch {
	case !unanswered(err):
		return nil
	case ctx.Err() != nil:
		return errAside
	}
	return err
}

// unanswered tells a call that got no answer; what is not listed was one. A timeout counts: this breaker
// protects requests from a Redis that is slow, too.
func unanswered(err error) bool {
	var network net.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &network), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isOpen(err error) bool {
	var open OpenError
	return errors.As(err, &open)
}
