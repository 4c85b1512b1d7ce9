package scheduler

import (
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
// has to find out.
func NewLock(name string, ttl time.Duration, pools ...redis.Pool) Lock {
	return redsync.New(pools...).NewMutex(name,
		redsync.WithExpiry(ttl),
		redsync.WithTries(1),
		// The default gives a reply 5 % of the TTL, too little for a slow link.
		redsync.WithTimeoutFactor(0.2))
}

// taken tells whether err says that somebody else has the lock, as opposed to
// a Redis that can't be asked.
func taken(err error) bool {
	var t *redsync.ErrTaken
	return errors.As(err, &t)
}
