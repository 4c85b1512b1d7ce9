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

// Nobody claims for a client that has hung up before.
func TestWhoHasGivenUpAsksNothing(t *testing.T) {
	f, g := ready(t)
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	require.ErrorIs(t, f.Claim(ctx, g, "c", 15*time.Second), queue.ErrUnavailable)
	require.NoError(t, f.Claim(f.Context(), g, "other", 15*time.Second))
}

// What members wait for goes in calls that they share; what a scheduler does, alone.
func TestWhatMembersWaitForSharesCalls(t *testing.T) {
	const n = 20
	f := setup(t)
	f.enterMany(0, n)
	f.pass(time.Second)
	require.Len(t, f.tick(), n)
	var grants []queue.Grant
	for i := range n {
		g, err := f.PickUp(f.Context(), f.standing(fmt.Sprintf("m%05d", i)).Grant, "k1")
		require.NoError(t, err)
		grants = append(grants, g)
	}
	require.NoError(t, f.Claim(f.Context(), grants[0], "0", time.Minute)) // every script is known
	require.NoError(t, f.Release(f.Context(), grants[0], "0"))
	for _, c := range []struct {
		name string
		do   func(i int) error
	}{
		{"standing", func(i int) error { _, err := f.Standing(f.Context(), f.room, grants[i].Member); return err }},
		{"pickup", func(i int) error { _, err := f.PickUp(f.Context(), grants[i], "k1"); return err }},
		{"claim", func(i int) error { return f.Claim(f.Context(), grants[i], fmt.Sprint(i), time.Minute) }},
		{"release", func(i int) error { return f.Release(f.Context(), grants[i], fmt.Sprint(i)) }},
		{"enter", func(i int) error { _, err := f.Enter(f.Context(), f.room, fmt.Sprint("new", i), 0); return err }},
	} {
		way := &gathering{first: make(chan struct{}), may: make(chan struct{})}
		f.rdb.AddHook(way)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				if err := c.do(i); err != nil {
					t.Errorf("%s %d: %v", c.name, i, err)
				}
			})
		}
		<-way.first
		harness.Eventually(t, 10*time.Second, c.name+": the others wait", func() bool { return f.calls(f.room).together[c.name].Waiting()+way.sent() == n })
		close(way.may)
		all.Wait()
		require.LessOrEqual(t, way.rounds(), 2, c.name)
	}
}

func TestWhoOrdersDoesNotWaitBehindWhoEnters(t *testing.T) {
	f, g := ready(t)
	way := &gathering{first: make(chan struct{}), may: make(chan struct{})}
	f.rdb.AddHook(way)
	entered := make(chan error, 1)
	go func() {
		_, err := f.Enter(f.Context(), f.room, "bob", 0)
		entered <- err
	}()
	<-way.first
	soon, cancel := context.WithTimeout(f.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, f.Claim(soon, g, "c", 15*time.Second))
	close(way.may)
	require.NoError(t, <-entered)
}

// gathering holds the first call of scripts until it may go, and counts all.
type gathering struct {
	first, may chan struct{}

	mu          sync.Mutex
	calls, inIt int
}

func (g *gathering) sent() int   { g.mu.Lock(); defer g.mu.Unlock(); return g.inIt }
func (g *gathering) rounds() int { g.mu.Lock(); defer g.mu.Unlock(); return g.calls }

func (g *gathering) note(scripts int) {
	g.mu.Lock()
	g.calls++
	first := g.calls == 1
	if first {
		g.inIt = scripts
	}
	g.mu.Unlock()
	if first {
		close(g.first)
		<-g.may
	}
}

// DialHook implements redis.Hook.
func (g *gathering) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (g *gathering) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			g.note(1)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (g *gathering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" {
			g.note(len(cmds))
		}
		return next(ctx, cmds)
	}
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
