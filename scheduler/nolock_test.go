package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// withoutLock makes a scheduler tick without leading.
func withoutLock(c *scheduler.Config) { c.Lock = nil }

func TestWithoutALockEachTickIsANewTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		n := 0
		s.reserve = func(string, queue.Step) (queue.Reservation, error) {
			res := someone(0, 1)
			n++
			res.More = n%3 != 0 // three calls a tick
			return res, nil
		}
		s.run("only", withoutLock)
		s.after(1500 * time.Millisecond)
		var got [][2]int64
		for _, c := range s.made("reserve", "a") {
			got = append(got, [2]int64{c.step.Term, c.step.Seq})
		}
		require.Equal(t, [][2]int64{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}}, got)
	})
}

func TestWithoutALockARolledBackCounterIsRaised(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = func(_ string, step queue.Step) (queue.Reservation, error) {
			if step.Term <= 40 {
				return queue.Reservation{}, queue.StaleError{Term: 40}
			}
			return queue.Reservation{Wait: time.Second}, nil
		}
		s.run("only", withoutLock)
		s.after(500 * time.Millisecond)
		calls := s.made("reserve", "a")
		require.Len(t, calls, 2)
		require.Equal(t, int64(41), calls[1].step.Term)
	})
}

// Schedulers without a lock wake at the same moment, because the room told them
// the same. They must not take the members from each other for ever.
func TestSchedulersInStepGetOutOfEachOthersWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.delay, s.slow = 20*time.Millisecond, 30*time.Millisecond
		var newest int64
		s.reserve = func(_ string, step queue.Step) (queue.Reservation, error) {
			if step.Term < newest {
				return queue.Reservation{}, queue.StaleError{Term: newest}
			}
			newest = step.Term
			return someone(0, step.Term), nil
		}
		granted := 0
		s.issue = func(_ string, step queue.Step) error {
			if step.Term < newest {
				return queue.StaleError{Term: newest}
			}
			granted++
			return nil
		}
		for _, name := range []string{"x", "y", "z"} {
			s.run(name, withoutLock)
		}
		s.after(60 * time.Second)
		s.change(func() { require.GreaterOrEqual(t, granted, 60, "once a second at least one of them gets through") })
	})
}
