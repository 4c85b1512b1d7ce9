// Package redisstore keeps waiting lines in Redis. Each method that changes
// anything is one script, so each is atomic, costs one round trip, and is safe
// to repeat; its header in lua/ says why.
//
// A room is a fixed set of keys in one Cluster slot (keys.go). Time is that of
// Redis. The package interprets nothing: what a script answers becomes a value
// or one of the errors of package queue, and an answer that did not come is
// queue.ErrUnavailable, which says nothing about what happened.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/internal/share"
	"github.com/linekeeper/linekeeper/queue"
)

// Store is all rooms of one Redis. It is safe for concurrent use, by any
// number of processes.
type Store struct {
	rdb     redis.UniversalClient
	prefix  string
	clock   func() string // first argument of every script
	observe func(script string, d time.Duration, err error)
	memory  memory
	rooms   sync.Map // name -> *calls
}

// Option changes a Store under construction.
type Option func(*Store)

// WithClock gives every script the time that now returns, instead of the clock
// of Redis. For tests alone: production processes must share one clock.
func WithClock(now func() time.Time) Option {
	return func(s *Store) {
		s.clock = func() string { return strconv.FormatInt(now().UnixMicro(), 10) }
	}
}

// WithObserver calls observe after every script with its name, how long it
// took and how it failed.
func WithObserver(observe func(script string, d time.Duration, err error)) Option {
	return func(s *Store) { s.observe = observe }
}

// New returns a Store on rdb, which stays the caller's to close. Keys begin
// with prefix, which holds no braces.
func New(rdb redis.UniversalClient, prefix string, opts ...Option) *Store {
	s := &Store{
		rdb: rdb, prefix: prefix,
		clock:   func() string { return "" },
		observe: func(string, time.Duration, error) {},
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Probe runs a script that writes, outside any room: the only kind of question
// whose answer tells that the line works (a PING is answered by a server that
// is read-only or has lost its scripts).
func (s *Store) Probe(ctx context.Context) error {
	err := probeScript.Run(ctx, s.rdb, []string{s.prefix + ":probe"}).Err()
	if isFull(err) {
		return nil // a full Redis is busy, not down
	}
	return mapError(err)
}

var probeScript = redis.NewScript("#!lua\nreturn redis.call('SET', KEYS[1], '1', 'PX', 10000)")

// run runs a script on a room and decodes the reply's frame.
func (s *Store) run(ctx context.Context, sc namedScript, room string, args ...any) (reply, error) {
	return s.measured(sc, room, func() (any, error) {
		return sc.Run(ctx, s.rdb, keys(s.prefix, room), append([]any{s.clock()}, args...)...).Result()
	})
}

// runTogether is run for what members wait for: those who ask the same at once share
// a call.
func (s *Store) runTogether(ctx context.Context, sc namedScript, room string, args ...any) (reply, error) {
	return s.measured(sc, room, func() (any, error) {
		c := s.calls(room)
		return c.together[sc.name].Run(ctx, sc.Script, c.keys, append([]any{s.clock()}, args...)...)
	})
}

func (s *Store) measured(sc namedScript, room string, run func() (any, error)) (reply, error) {
	start := time.Now()
	raw, err := run()
	s.observe(sc.name, time.Since(start), err)
	if err != nil {
		return reply{}, fmt.Errorf("%s in room %s: %w", sc.name, room, mapError(err))
	}
	r, err := parseReply(raw)
	if err != nil {
		return reply{}, fmt.Errorf("%s in room %s: %w", sc.name, room, err)
	}
	return r, r.refusal()
}

// calls are what those who ask about one room share.
type calls struct {
	keys     []any                     // of scripts
	together map[string]*share.Scripts // by the script: who orders does not wait behind a crowd that enters
	lanes    [queue.MaxLanes]*ranks
}

func (s *Store) calls(room string) *calls {
	if c, ok := s.rooms.Load(room); ok {
		return c.(*calls)
	}
	c := &calls{together: map[string]*share.Scripts{}}
	for _, sc := range []namedScript{enterScript, standingScript, pickupScript, claimScript, releaseScript} {
		c.together[sc.name] = share.NewScripts(s.rdb)
	}
	for _, k := range keys(s.prefix, room) {
		c.keys = append(c.keys, k)
	}
	for lane := range c.lanes {
		c.lanes[lane] = newRanks(s.rdb, laneKey(s.prefix, room, lane))
	}
	kept, _ := s.rooms.LoadOrStore(room, c)
	return kept.(*calls)
}

// transient are the first words of errors that Redis answers while it, and not
// the request, is at fault.
var transient = []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF", "MOVED", "ASK", "UNBLOCKED",
	"max number of clients"}

// mapError sorts what go-redis returns into the errors of package queue. What
// Redis says of a request itself (rights, say) stays as it is.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	if isFull(err) {
		return fmt.Errorf("%w: %w", queue.ErrFull, err)
	}
	var answered redis.Error
	if errors.As(err, &answered) {
		for _, word := range transient {
			if redis.HasErrorPrefix(err, word) {
				return fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
			}
		}
		if redis.HasErrorPrefix(err, "WRONGTYPE") || strings.Contains(err.Error(), "user_script") && !refusedRights(err) {
			return fmt.Errorf("%w: %w", queue.ErrDamaged, err)
		}
		return err
	}
	return fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
}

// refusedRights tells that a script met a right that its user lacks. It reads
// like a fault in the data, and is one of the server's settings: what was to be
// written is as good as ever.
func refusedRights(err error) bool {
	return strings.Contains(err.Error(), "The user executing the script can't") || strings.Contains(err.Error(), "ACL failure in script")
}

// isFull tells an answer of a Redis at its memory limit.
func isFull(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "OOM") || strings.Contains(err.Error(), "command not allowed when used memory"))
}
