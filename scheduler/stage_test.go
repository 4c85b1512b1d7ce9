package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linekeeper/linekeeper/scheduler"
)

// stage is a world with schedulers on it.
type stage struct {
	*testing.T
	*world
	key   *keyspace
	terms *fakeTerms
	end   []func()
}

const ttl = 5 * time.Second

func newStage(t *testing.T, rooms ...string) *stage {
	s := &stage{T: t, world: newWorld(rooms...), key: &keyspace{}, terms: &fakeTerms{}}
	t.Cleanup(func() {
		for _, end := range s.end {
			end()
		}
	})
	return s
}

func (s *stage) lock() *fakeLock { return &fakeLock{key: s.key, ttl: ttl} }

// run starts a scheduler, and returns what ends it and waits for it.
func (s *stage) run(name string, change ...func(*scheduler.Config)) (end func()) {
	c := scheduler.Config{
		Line: s.world, Batches: s.world, Rooms: s.world, Books: s.world, Admissions: s.world, Terms: s.terms, Lock: s.lock(), TTL: ttl, Leader: name,
		NewGrant: func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ids++
			return fmt.Sprintf("grant-%d", s.ids)
		},
		Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := scheduler.New(c).Run(ctx); err != nil {
			s.Errorf("Run of %s: %v", name, err)
		}
	}()
	end = sync.OnceFunc(func() { cancel(); <-done })
	s.end = append(s.end, end)
	return end
}

// after lets d of the bubble's time pass, and all that happens in it come to
// rest.
func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
