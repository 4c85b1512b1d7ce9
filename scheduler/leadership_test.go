package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// with gives a scheduler a lock of the test's making.
func with(l *fakeLock) func(*scheduler.Config) {
	return func(c *scheduler.Config) { c.Lock = l }
}

// by returns the reserve calls of one leader.
func (s *stage) by(leader string) (calls []call) {
	for _, c := range s.made("reserve", "") {
		if c.step.Leader == leader {
			calls = append(calls, c)
		}
	}
	return calls
}

func TestOneOfThreeLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		for _, name := range []string{"x", "y", "z"} {
			s.run(name)
		}
		s.after(60 * time.Second)
		calls := s.made("reserve", "a")
		require.GreaterOrEqual(t, len(calls), 55, "a room is ticked once a second all the time")
		for _, c := range calls {
			require.Equal(t, calls[0].step.Leader, c.step.Leader, "the lock was extended in time, so nobody else leads")
			require.Equal(t, int64(1), c.step.Term)
		}
	})
}

func TestDeadLeaderIsReplacedWithinTTLAndASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		lock := s.lock()
		lock.unlock = func() error { return errors.New("dead processes unlock nothing") }
		kill := s.run("dead", with(lock))
		s.after(3300 * time.Millisecond)
		s.run("next")
		kill()
		died := time.Now()
		s.after(10 * time.Second)
		require.NotEmpty(t, s.by("next"))
		require.LessOrEqual(t, s.by("next")[0].at.Sub(died), ttl+time.Second)
		require.Greater(t, s.by("next")[0].step.Term, s.by("dead")[0].step.Term)
	})
}

func TestStoppedLeaderHandsOverWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		stop := s.run("first")
		s.after(time.Second)
		s.run("next")
		s.after(7 * time.Second)
		stop()
		stopped := time.Now()
		s.after(5 * time.Second)
		require.NotEmpty(t, s.by("next"))
		require.LessOrEqual(t, s.by("next")[0].at.Sub(stopped), 2*time.Second)
	})
}

func TestStoppingIssuesWhatIsReservedAndUnlocksAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = func(string, queue.Step) (queue.Reservation, error) { return someone(0, 7), nil }
		s.delay = 200 * time.Millisecond
		unlocked := time.Time{}
		lock := s.lock()
		lock.unlock = func() error { unlocked = time.Now(); return nil }
		stop := s.run("first", with(lock))
		s.after(100 * time.Millisecond) // in the middle of the first reserve
		stop()
		issued := s.made("issue", "a")
		require.Len(t, issued, 1)
		require.False(t, unlocked.Before(issued[0].at), "the lock is let go only when the tick is over")
		require.Len(t, s.made("reserve", "a"), 1, "nothing new is begun")
	})
}

func TestStoppingBeginsNothingNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b")
		s.reserve = func(room string, _ queue.Step) (queue.Reservation, error) {
			if room == "a" {
				return someone(0, 7), nil
			}
			return queue.Reservation{Wait: time.Millisecond}, nil
		}
		s.delay = 200 * time.Millisecond
		stop := s.run("first")
		s.after(100 * time.Millisecond)
		stop() // returns when a is issued, at 400 ms
		require.Len(t, s.made("issue", "a"), 1)
		require.Len(t, s.made("reserve", "b"), 1)
	})
}

func TestStoppingDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.delay = time.Hour
		stop := s.run("first")
		s.after(100 * time.Millisecond)
		asked := time.Now()
		stop()
		require.LessOrEqual(t, time.Since(asked), 1100*time.Millisecond)
		require.False(t, s.key.held(time.Now()), "the lock is free")
	})
}

// Case 19 as well.
func TestFailedExtendStopsTicksAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = func(string, queue.Step) (queue.Reservation, error) {
			return queue.Reservation{Wait: time.Millisecond}, nil
		}
		var failed time.Time
		lock := s.lock()
		lock.extend = func(context.Context) error {
			if failed.IsZero() {
				failed = time.Now()
			}
			return errors.New("connection reset")
		}
		lock.tryLock = func() error {
			if !failed.IsZero() {
				return errors.New("connection refused")
			}
			return nil
		}
		s.run("only", with(lock))
		s.after(30 * time.Second)
		calls := s.made("reserve", "a")
		require.NotEmpty(t, calls)
		require.False(t, failed.IsZero())
		require.False(t, calls[len(calls)-1].at.After(failed), "ticks stop when an extend has failed")
	})
}

func TestEachWinIsANewTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.run("only")
		s.after(3 * time.Second)
		s.key.drop() // FLUSHALL, or an eviction
		s.after(10 * time.Second)
		calls := s.made("reserve", "a")
		last := calls[len(calls)-1].step
		require.Equal(t, int64(2), last.Term, "a lock that has vanished is noticed, and won again")
		for i := 1; i < len(calls); i++ {
			before, now := calls[i-1].step, calls[i].step
			require.True(t, now.Term > before.Term || now.Seq == before.Seq+1, "seq rises by one within a term: %v, %v", before, now)
		}
	})
}

// Case 18 as well, fact 20: with a client that ignores contexts an extend can
// hang far beyond the TTL.
func TestHungExtendDoesNotOutliveTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = func(string, queue.Step) (queue.Reservation, error) {
			return queue.Reservation{Wait: time.Millisecond}, nil
		}
		lock := s.lock()
		lock.extend = func(context.Context) error {
			time.Sleep(20 * time.Second)
			return nil
		}
		s.run("hung", with(lock))
		s.after(time.Second)
		ends := s.key.ends
		s.run("next")
		s.after(30 * time.Second)
		hung, next := s.by("hung"), s.by("next")
		require.True(t, hung[len(hung)-1].at.Before(ends), "no tick after Until")
		require.NotEmpty(t, next)
		require.True(t, next[0].at.After(hung[len(hung)-1].at), "two led at once")
	})
}

// Case 22, mike-marcacci/node-redlock#296.
func TestLockThatCameTooLateIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		lock := s.lock()
		lock.tryLock = func() error {
			time.Sleep(ttl * 95 / 100)
			return nil
		}
		s.run("late", with(lock))
		s.after(30 * time.Second)
		require.Empty(t, s.made("reserve", ""), "the lock was as good as over when it came")
	})
}

func TestOwnLockIsTakenBackAfterRedisReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		var away atomic.Bool
		lock := s.lock()
		down := func() error {
			if away.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		lock.extend = func(context.Context) error { return down() }
		lock.tryLock, lock.unlock = down, down
		s.run("only", with(lock))
		s.after(1600 * time.Millisecond)
		away.Store(true)
		s.after(200 * time.Millisecond) // a restart; the key has survived it
		away.Store(false)
		back := time.Now()
		s.forget()
		s.after(10 * time.Second)
		require.LessOrEqual(t, s.made("reserve", "a")[0].at.Sub(back), 2*time.Second,
			"the leader's own key would keep everybody out for a TTL")
	})
}

func TestLeaderWithoutEffectMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		cut := newWorld("a")
		cut.reserve = func(string, queue.Step) (queue.Reservation, error) {
			return queue.Reservation{}, queue.ErrUnavailable
		}
		s.run("cut-off", func(c *scheduler.Config) { c.Line = cut })
		s.after(time.Second)
		s.run("next")
		s.after(8 * time.Second)
		require.NotEmpty(t, s.by("next"), "T9: a leader that ticks nothing keeps nobody else out")
		s.after(20 * time.Second)
		last := s.made("reserve", "a")
		require.Less(t, time.Since(last[len(last)-1].at), 1100*time.Millisecond, "and stays out while the other leads")
	})
}

func TestLeaderOfNoRoomsKeepsLeading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		wins := 0
		s.run("only", func(c *scheduler.Config) {
			c.Observer.Led = func(_ int64, leads bool) {
				if leads {
					wins++
				}
			}
		})
		s.after(60 * time.Second)
		require.Equal(t, 1, wins)
	})
}

func TestCounterRolledBackLocksNobodyOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b")
		newest := int64(40)
		s.reserve = func(_ string, step queue.Step) (queue.Reservation, error) {
			if step.Term < newest {
				return queue.Reservation{}, queue.StaleError{Term: newest}
			}
			return queue.Reservation{Wait: time.Second}, nil
		}
		s.run("only")
		began := time.Now()
		s.after(5 * time.Second)
		require.Equal(t, []int64{40}, s.terms.above, "raised once, for both rooms")
		for _, room := range []string{"a", "b"} {
			calls := s.made("reserve", room)
			last := calls[len(calls)-1].step
			require.Equal(t, int64(41), last.Term)
			for _, c := range calls {
				if c.step.Term == 41 {
					require.Less(t, c.at.Sub(began), time.Second, "ticks go on at once")
					require.Equal(t, int64(1), c.step.Seq)
					break
				}
			}
		}
	})
}

// T6: after a failover two leaders may have been given the same number.
func TestSameTermOfAnotherLeaderIsRaisedAbove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = func(_ string, step queue.Step) (queue.Reservation, error) {
			if step.Term == 1 {
				return queue.Reservation{}, queue.StaleError{Term: 1}
			}
			return queue.Reservation{Wait: time.Second}, nil
		}
		s.run("only")
		s.after(2 * time.Second)
		calls := s.made("reserve", "a")
		require.Equal(t, int64(2), calls[len(calls)-1].step.Term)
	})
}

func TestReplacedLeaderStopsInsteadOfRaisingItsTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		replaced := false
		s.reserve = func(_ string, step queue.Step) (queue.Reservation, error) {
			if replaced {
				return queue.Reservation{}, queue.StaleError{Term: 40}
			}
			return queue.Reservation{Wait: time.Millisecond}, nil
		}
		s.run("old")
		s.after(100 * time.Millisecond)
		s.change(func() {
			replaced = true
			s.calls = nil
		})
		other := s.lock()
		s.key.drop()
		require.NoError(t, other.TryLockContext(t.Context()))
		s.after(time.Second)
		require.Len(t, s.made("reserve", "a"), 1, "T5: the first STALE ends the term of a leader without a lock")
		require.Empty(t, s.terms.above)
	})
}
