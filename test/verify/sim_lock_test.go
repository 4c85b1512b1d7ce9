//go:build faults

package verify

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/linekeeper/linekeeper/scheduler"
)

const lockTTL = 5 * time.Second

// simLock is the scheduler's lock in simulated time: the real one's TTL would be
// counted by the clock of the Redis server. It can be taken away from its owner,
// as a failover does, so that two nodes lead at once. That must do no harm.
type simLock struct {
	mu    sync.Mutex
	owner *node
	until time.Time
}

// lockView is a node's view of the lock.
type lockView struct {
	*simLock
	node  *node
	until time.Time
}

func (l *simLock) of(n *node) scheduler.Lock { return &lockView{simLock: l, node: n} }

// rob has the lock vanish from the server; its owner does not notice.
func (l *simLock) rob() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owner = nil
}

var errLockUnreachable = errors.New("redis is out of reach")

func (v *lockView) TryLockContext(context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.node.crashed() || v.node.w.redisAway() {
		return errLockUnreachable
	}
	if v.owner != nil && v.owner != v.node && time.Now().Before(v.simLock.until) {
		return &redsync.ErrTaken{Nodes: []int{0}}
	}
	v.owner = v.node
	v.extend()
	return nil
}

func (v *lockView) extend() {
	v.simLock.until = time.Now().Add(lockTTL)
	v.until = v.simLock.until
}

func (v *lockView) ExtendContext(context.Context) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.node.crashed() || v.node.w.redisAway() {
		return false, errLockUnreachable
	}
	if v.owner != v.node || !time.Now().Before(v.simLock.until) {
		return false, nil
	}
	v.extend()
	return true, nil
}

func (v *lockView) UnlockContext(context.Context) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.node.crashed() || v.node.w.redisAway() {
		return false, errLockUnreachable
	}
	if v.owner != v.node {
		return false, nil
	}
	v.owner = nil
	return true, nil
}

// Until is the end of the lock as its owner knows it.
func (v *lockView) Until() time.Time { return v.until }
