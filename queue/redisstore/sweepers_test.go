package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// another is the Store of a second process, with the same clock.
func (f *fixture) another(hooks ...redis.Hook) *Store {
	f.Helper()
	o := *f.rdb.Options()
	rdb := redis.NewClient(&o)
	for _, h := range hooks {
		rdb.AddHook(h)
	}
	f.Cleanup(func() { _ = rdb.Close() })
	return New(rdb, "t", WithClock(func() time.Time { return f.clock }))
}

// Case 48, hibiken/asynq#717: two that sweep in step end everything once.
func TestCase48TwoSweepersInStepEndEachOnce(t *testing.T) {
	const n = 300 // of each kind a third
	f := setup(t, func(r *queue.Rules) { r.Batch = n })
	f.enterMany(0, n+50)
	granted := f.tick()
	require.Len(t, granted, n)
	for i, m := range granted {
		switch i % 3 {
		case 0:
			f.pickUp(m) // will expire
		case 1: // will not be fetched
		case 2:
			require.NoError(t, f.Claim(t.Context(), f.pickUp(m), "c", 15*time.Second)) // will lapse, and expire
		}
	}
	f.pass(time.Second)
	require.Len(t, f.reserve().Taken, 50) // will return
	sweepers := []*Store{f.Store, f.another()}
	var total queue.Reaped
	for _, passed := range []time.Duration{5, 10, 16, 270, 1} {
		f.pass(passed * time.Second)
		for range 2 {
			total = plus(total, inStep(t, f.room, sweepers)...)
		}
	}
	require.Equal(t, queue.Reaped{Returned: 50, Lapsed: n / 3, Expired: 2 * n / 3, Away: n / 3}, total)
	s := f.snap()
	require.EqualValues(t, 2*n/3, s.Counters["expired"])
	require.EqualValues(t, 50, s.Waiting())
	f.conserved()
}

// inStep has all sweepers reap the room at the same moment.
func inStep(t *testing.T, room string, sweepers []*Store) []queue.Reaped {
	t.Helper()
	counts, errs := make([]queue.Reaped, len(sweepers)), make([]error, len(sweepers))
	var wg sync.WaitGroup
	for i, s := range sweepers {
		wg.Go(func() { counts[i], errs[i] = s.Reap(t.Context(), room) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return counts
}

func plus(total queue.Reaped, more ...queue.Reaped) queue.Reaped {
	for _, r := range more {
		total.Returned, total.Lapsed = total.Returned+r.Returned, total.Lapsed+r.Lapsed
		total.Expired, total.Away = total.Expired+r.Expired, total.Away+r.Away
	}
	return total
}

// Case 52, sidekiq/sidekiq#4611: a process that has just started takes nothing
// from those at work before their leases end. (What schedulers of older terms
// have taken out of the line returns at once, because they can't grant it any
// more.)
func TestCase52ANewInstanceTakesNothingBeforeTheLeaseEnds(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Batch = 2 })
	f.enter("ann", "bob", "cy")
	require.Len(t, f.tick(), 2)
	lease := 15 * time.Second
	require.NoError(t, f.Claim(t.Context(), f.pickUp("ann"), "old", lease))
	bob := f.standing("bob").Grant // not fetched yet
	f.pass(time.Second)
	require.Equal(t, []string{"cy"}, members(f.reserve()))

	fresh, last := f.another(), start.Add(lease-time.Microsecond)
	for term := int64(2); f.clock.Before(last); term++ {
		_, err := fresh.Reap(t.Context(), f.room)
		require.NoError(t, err)
		r, err := fresh.Reserve(t.Context(), f.room, queue.Step{Generation: 7, Term: term, Leader: "new", Seq: 1}, queue.Take{Keep: 1, Effective: 2, Max: 500})
		require.NoError(t, err)
		require.Equal(t, []string{"cy"}, members(r), "nobody but whom a scheduler of before had out of the line")
		st := f.standing("ann")
		require.Equal(t, queue.Claimed, st.Status, "after %v", f.clock.Sub(start))
		require.ErrorIs(t, fresh.Claim(t.Context(), st.Grant, "new", lease), queue.ErrBusy)
		require.Equal(t, bob, f.standing("bob").Grant)
		f.pass(min(time.Second, last.Sub(f.clock)))
	}
	_, err := f.Issue(t.Context(), f.room, f.step, []queue.Decision{{Member: "cy", Grant: "late"}})
	require.ErrorIs(t, err, queue.ErrStale)

	f.pass(time.Microsecond)
	r, err := fresh.Reap(t.Context(), f.room)
	require.NoError(t, err)
	require.Equal(t, 1, r.Lapsed, "at its end, and not before, a lease is over")
	require.Equal(t, queue.Ready, f.status("ann"))
	f.conserved()
}

// slowly holds the first script up on its way to the server.
type slowly struct {
	once            *sync.Once
	reached, resume chan struct{}
}

func (s slowly) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slowly) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.once.Do(func() {
				close(s.reached)
				<-s.resume
			})
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook changes nothing: a script that is alone is sent by itself.
func (s slowly) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Case 56, riverqueue/river#1302: what a sweeper or a scheduler has set out to
// do is judged when it arrives, not when it set out.
func TestCase56WhatHasEndedMeanwhileStaysEnded(t *testing.T) {
	late := func(f *fixture, call func(*Store) error) (arrive func()) {
		way := slowly{&sync.Once{}, make(chan struct{}), make(chan struct{})}
		done, s := make(chan error, 1), f.another(way)
		go func() { done <- call(s) }()
		<-way.reached
		return func() {
			close(way.resume)
			require.NoError(f, <-done)
		}
	}
	t.Run("a sweeper finds an order that has committed", func(t *testing.T) {
		f, g := ready(t)
		require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
		f.pass(301 * time.Second) // lease and grant are over
		arrive := late(f, func(s *Store) error { _, err := s.Reap(t.Context(), f.room); return err })
		_, err := f.Consume(t.Context(), f.room, spent(g))
		require.NoError(t, err)
		before := f.dump("state")
		arrive()
		require.Equal(t, before, f.dump("state"))
		require.Equal(t, queue.Consumed, f.status("ann"))
		require.Zero(t, f.snap().Counters["expired"])
	})
	t.Run("a release finds that the order is there after all", func(t *testing.T) {
		f, g := ready(t)
		require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
		arrive := late(f, func(s *Store) error { return s.Release(t.Context(), g, "c") })
		_, err := f.Consume(t.Context(), f.room, spent(g))
		require.NoError(t, err)
		arrive()
		require.Equal(t, queue.Consumed, f.status("ann"))
		f.conserved()
	})
	t.Run("a scheduler finds that its candidate has left", func(t *testing.T) {
		f := setup(t)
		f.enter("ann")
		taken := f.reserve()
		var issued queue.Issued
		arrive := late(f, func(s *Store) (err error) {
			issued, err = s.Issue(t.Context(), f.room, f.step, []queue.Decision{{Member: "ann", Grant: "g"}})
			return err
		})
		_, err := f.Leave(t.Context(), f.room, "ann", taken.Taken[0].Place.Score, queue.OutcomeLeft)
		require.NoError(t, err)
		f.enter("ann") // again, at the end
		arrive()
		require.Equal(t, queue.Issued{Gone: 1}, issued)
		require.Equal(t, queue.Waiting, f.status("ann"))
		f.conserved()
	})
}

// A batch of 50 that grows to 10,000 reaches members whom nobody has listened
// for, and who poll each half minute: they keep their order, and none is taken
// for gone.
func TestABatchGrownTo10000KeepsTheOrderOfPollersAt30Seconds(t *testing.T) {
	const n, every = 14_900, 30
	f := setup(t, func(r *queue.Rules) { r.PickupTTL, r.AwayAfter = time.Hour, 3*every*time.Second })
	f.enterAtOnce(n)
	line := f.rdb.ZRange(t.Context(), f.key("lane0"), 0, -1).Val()
	require.Len(t, line, n)
	var got []string
	second := func(i int) {
		f.pass(time.Second)
		var polled []string
		for at := i % every; at < n; at += every {
			polled = append(polled, line[at])
		}
		require.NoError(t, f.Heard(t.Context(), f.room, polled))
		got = append(got, f.tick()...)
	}
	for i := range 95 {
		second(i)
	}
	require.Equal(t, 95*50, len(got))
	listened := f.rdb.ZCard(t.Context(), f.key("seen")).Val()
	require.Less(t, listened, f.snap().Waiting()-2000, "everybody is listened for: this test shows nothing")
	f.life.Version, f.life.Rules.Batch = 2, 10_000
	require.NoError(t, f.Update(t.Context(), f.life))
	for i := 95; len(got) < n && i < 105; i++ {
		second(i)
	}
	require.Equal(t, line, got)
	require.Zero(t, f.snap().Away)
}
