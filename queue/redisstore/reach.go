package redisstore

import (
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// probes is how many rooms of a Cluster are asked for at once.
const probes = 16

// Unreachable returns those of rooms whose server can't be reached at all: every
// way to it ends in a refusal, an address to which there is no way, or a name that
// stands for none. A server that is slow, full, read-only, loading or busy has been
// reached, and so has one that says nothing: who waits in vain for an answer can't
// tell a host that has vanished from one that somebody has made slow.
func (s *Store) Unreachable(ctx context.Context, rooms []string) map[string]bool {
	if len(rooms) == 0 {
		return nil
	}
	asked := rooms[:1] // one server has all rooms
	if _, cluster := s.rdb.(*redis.ClusterClient); cluster {
		asked = rooms
	}
	var g errgroup.Group
	g.SetLimit(probes)
	var mu sync.Mutex
	away := map[string]bool{}
	for _, room := range asked {
		g.Go(func() error {
			err := s.rdb.HGet(ctx, confKey(s.prefix, room), "generation").Err() // a command that scripts need as well
			mu.Lock()
			defer mu.Unlock()
			away[room] = refused(err)
			return nil
		})
	}
	_ = g.Wait()
	for _, room := range rooms[len(asked):] {
		away[room] = away[rooms[0]]
	}
	return away
}

// refused tells an error all of whose causes say that there is no server: of
// several Sentinels one that is slow is enough to leave it open.
func refused(err error) bool {
	switch e := err.(type) {
	case syscall.Errno:
		return e == syscall.ECONNREFUSED || e == syscall.EHOSTUNREACH || e == syscall.ENETUNREACH || e == syscall.EHOSTDOWN
	case *net.DNSError:
		return e.IsNotFound
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			if !refused(cause) {
				return false
			}
		}
		return len(e.Unwrap()) > 0
	case interface{ Unwrap() error }:
		return refused(e.Unwrap())
	}
	return false
}
