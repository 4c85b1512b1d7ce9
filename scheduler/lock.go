package scheduler

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
)

// NewLock returns the lock that schedulers sharing name lead by. The pool's
// client should be one of its own, without retries and with a short read
// timeout that obeys contexts: by default one slow reply outlives the lock.
//
// The lock is never taken anew by an extend: a leader whose lock has vanished
// has to find out. All who share it should have the same ttl.
func NewLock(name string, ttl time.Duration, pools ...redis.Pool) Lock {
	return &lock{pools: pools, ttl: ttl, Mutex: redsync.New(pools...).NewMutex(name,
		redsync.WithExpiry(ttl),
		redsync.WithTries(1),
		// The default gives a reply 5 % of the TTL, too little for a slow link.
		redsync.WithTimeoutFactor(0.2))}
}

// lock is a redsync mutex that a step of Redis' clock can't keep from being
// taken.
type lock struct {
	*redsync.Mutex
	ttl   time.Duration
	pools []redis.Pool
}

// TryLockContext takes the lock if it is free. One that has longer to live than
// ttl was taken before the clock of Redis was set back; if its holder has died
// since, it would stand for as long as the step was. It is cut to ttl: who lives
// extends it in time.
func (l *lock) TryLockContext(ctx context.Context) error {
	err := l.Mutex.TryLockContext(ctx)
	if taken(err) {
		l.cut(ctx)
	}
	return err
}

const cutSource = `if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return 0`

var cutScript = redis.NewScript(1, cutSource, hashOf(cutSource))

// hashOf is how Redis names a script.
func hashOf(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// cut is tried again with the next attempt to lead, so its errors are nobody's.
func (l *lock) cut(ctx context.Context) {
	for _, p := range l.pools {
		conn, err := p.Get(ctx)
		if err != nil {
			continue
		}
		_, _ = conn.Eval(cutScript, l.Name(), l.ttl.Milliseconds())
		_ = conn.Close()
	}
}

// taken tells whether err says that somebody else has the lock, as opposed to
// a Redis that can't be asked.
func taken(err error) bool {
	var t *redsync.ErrTaken
	return errors.As(err, &t)
}
