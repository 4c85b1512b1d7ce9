package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// courier holds the first call about ranks until it may go, and counts all.
type courier struct {
	calls     atomic.Int64
	sent, may chan struct{}
	fail      error // of the first
}

// DialHook implements redis.Hook.
func (c *courier) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (c *courier) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (c *courier) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if last := cmds[len(cmds)-1]; last.Name() != "zmscore" || c.calls.Add(1) > 1 {
			return next(ctx, cmds)
		}
		close(c.sent)
		<-c.may
		if c.fail == nil {
			return next(ctx, cmds)
		}
		for _, cmd := range cmds {
			cmd.SetErr(c.fail)
		}
		return c.fail
	}
}

// held is a room with n members, and a first call on the way that waits.
func held(t *testing.T, n int, fail error) (f *fixture, c *courier, first chan error) {
	f = setup(t)
	f.enterMany(0, n)
	c = &courier{sent: make(chan struct{}), may: make(chan struct{}), fail: fail}
	f.rdb.AddHook(c)
	first = make(chan error, 1)
	go func() {
		_, err := f.Poll(f.Context(), f.room, "m00000", queue.Place{})
		first <- err
	}()
	<-c.sent
	return f, c, first
}

// gathered waits until n questions wait for the call that is on the way.
func (f *fixture) gathered(n int) {
	harness.Eventually(f, 10*time.Second, "they wait", func() bool { return f.calls(f.room).lanes[0].Waiting() == n })
}

func TestPollsThatComeTogetherShareACall(t *testing.T) {
	const n = 200
	f, c, first := held(t, n, nil)
	var all sync.WaitGroup
	for i := 1; i < n; i++ {
		all.Go(func() {
			st, err := f.Poll(f.Context(), f.room, fmt.Sprintf("m%05d", i), queue.Place{})
			if err != nil || st.Status != queue.Waiting || st.Rank != int64(i) || st.InLane != int64(i) {
				t.Errorf("m%05d: %+v, %v", i, st, err)
			}
			direct, err := f.rdb.ZScore(f.Context(), f.key("lane0"), fmt.Sprintf("m%05d", i)).Result()
			if err != nil || int64(direct) != st.Place.Score {
				t.Errorf("m%05d: score %d, stored %v, %v", i, st.Place.Score, direct, err)
			}
		})
	}
	f.gathered(n - 1)
	close(c.may)
	all.Wait()
	require.NoError(t, <-first)
	require.EqualValues(t, 2, c.calls.Load(), "the first, and one for all who came meanwhile")
}

// A stranger among them is found to be none, by the script, and changes nothing for
// the others.
func TestAStrangerSharesACall(t *testing.T) {
	f, c, first := held(t, 2, nil)
	answers := make(chan queue.Standing, 2)
	for _, m := range []string{"stranger", "m00001"} {
		go func() {
			st, err := f.Poll(f.Context(), f.room, m, queue.Place{})
			if err != nil {
				t.Error(err)
			}
			answers <- st
		}()
	}
	f.gathered(2)
	close(c.may)
	require.NoError(t, <-first)
	a, b := <-answers, <-answers
	require.ElementsMatch(t, []queue.Status{queue.Waiting, queue.NotEntered}, []queue.Status{a.Status, b.Status})
}

func TestWhoGivesUpTakesNothingFromTheOthers(t *testing.T) {
	f, c, first := held(t, 3, nil)
	ctx, cancel := context.WithCancel(f.Context())
	gone, stays := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := f.Poll(ctx, f.room, "m00001", queue.Place{})
		gone <- err
	}()
	f.gathered(1)
	go func() {
		_, err := f.Poll(f.Context(), f.room, "m00002", queue.Place{})
		stays <- err
	}()
	f.gathered(2)
	cancel()
	require.ErrorIs(t, <-gone, queue.ErrUnavailable)
	close(c.may)
	require.NoError(t, <-first)
	require.NoError(t, <-stays)
}

// The one whose poll makes the call may be the one who gives up.
func TestACallOutlivesWhoMadeIt(t *testing.T) {
	f := setup(t)
	f.enter("ann")
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	_, err := f.Poll(ctx, f.room, "ann", queue.Place{})
	if err != nil { // the answer may have been quicker
		require.ErrorIs(t, err, queue.ErrUnavailable)
	}
	st, err := f.Poll(f.Context(), f.room, "ann", queue.Place{})
	require.NoError(t, err)
	require.Equal(t, queue.Waiting, st.Status)
}

func TestACallThatFailsFailsForAllWhoShareItAndNobodyElse(t *testing.T) {
	lost := errors.New("connection lost")
	f, c, first := held(t, 2, lost)
	second := make(chan error, 1)
	go func() {
		_, err := f.Poll(f.Context(), f.room, "m00001", queue.Place{})
		second <- err
	}()
	f.gathered(1)
	close(c.may)
	err := <-first
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorIs(t, err, lost)
	require.NoError(t, <-second)
}
