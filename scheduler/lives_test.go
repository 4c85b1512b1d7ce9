package scheduler_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// kinds lists what was called about rooms' lives, in order.
func (s *stage) kinds() (kinds []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if slices.Contains([]string{"begin", "create", "update"}, c.what) {
			kinds = append(kinds, c.what)
		}
	}
	return kinds
}

// edit changes a room in Postgres.
func (s *stage) edit(room string, f func(l *queue.Life)) {
	s.change(func() {
		l := s.lives[room]
		f(&l)
		s.lives[room] = l
	})
}

func TestNewSettingsAreInForceWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.run("only")
		s.after(2800 * time.Millisecond)
		s.edit("a", func(l *queue.Life) { l.Version, l.Rules.Batch = 2, 77 })
		s.after(time.Second)
		require.Equal(t, int64(2), s.inRedis["a"].Version)
		s.after(time.Second)
		calls := s.made("reserve", "a")
		require.Equal(t, 77, calls[len(calls)-1].take.Effective)
		require.Equal(t, []string{"update"}, s.kinds(), "pushed once")
	})
}

func TestNewLeaderPushesWhatTheOldOneDidNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.edit("a", func(l *queue.Life) { l.Version = 2 })
		s.run("only")
		s.after(500 * time.Millisecond)
		require.Equal(t, int64(2), s.inRedis["a"].Version, "a room that answers with an old version gets the new one")
	})
}

func TestUnchangedRoomsCostNoStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b", "c")
		s.run("only")
		s.after(10 * time.Second)
		require.InDelta(t, 20, len(s.made("lives", "")), 1)
		require.Empty(t, s.kinds())
		require.Empty(t, s.made("advance", ""))
	})
}

func TestNeverBegunRoomIsBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.run("only")
		s.after(time.Second)
		s.change(func() { s.lives["new"] = queue.Life{Room: "new", Version: 1, Rules: queue.Rules{Batch: 1}} })
		s.after(time.Second)
		require.Equal(t, []string{"begin", "create"}, s.kinds())
		require.Equal(t, int64(10), s.inRedis["new"].Generation)
		require.NotEmpty(t, s.made("reserve", "new"))
		require.Equal(t, int64(10), s.made("reserve", "new")[0].step.Generation)
	})
}

func TestLostRoomBeginsANewGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.run("only")
		s.after(3 * time.Second)
		s.change(func() { delete(s.inRedis, "a") })
		s.after(2 * time.Second)
		require.Equal(t, []string{"begin", "create"}, s.kinds())
		require.Equal(t, int64(15), s.inRedis["a"].Generation)
	})
}

// A restored backup of Redis holds a life that Postgres knows to be over.
func TestOlderGenerationInRedisIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.edit("a", func(l *queue.Life) { l.Generation = 8 })
		s.run("only")
		s.after(time.Second)
		require.Equal(t, []string{"begin", "create"}, s.kinds())
		require.Equal(t, int64(18), s.inRedis["a"].Generation)
	})
}

func TestNewerGenerationInRedisIsLearntAndNotReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = always(queue.Reservation{Wait: 300 * time.Millisecond})
		s.run("only")
		s.after(1100 * time.Millisecond)
		s.change(func() { // another process has begun it, just after our last reading
			l := s.lives["a"]
			l.Generation = 9
			s.lives["a"], s.inRedis["a"] = l, l
			s.calls = nil
		})
		s.after(250 * time.Millisecond) // the refusal at 1200 leads to a reading at once
		require.Empty(t, s.kinds())
		calls := s.made("reserve", "a")
		require.Equal(t, int64(9), calls[len(calls)-1].step.Generation)
	})
}

func TestLoserOfARaceBeginsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.run("only")
		s.after(1100 * time.Millisecond)
		s.change(func() { // the winner is about to create
			l := s.lives["a"]
			l.Generation = 9
			s.lives["a"] = l
			delete(s.inRedis, "a")
			s.read = func() error { return errors.New("not yet") } // our copy stays old
			s.calls = nil
		})
		s.after(2 * time.Second)
		require.NotEmpty(t, s.made("begin", "a"))
		require.Empty(t, s.made("create", "a"))
		s.change(func() {
			s.inRedis["a"] = s.lives["a"]
			s.read = nil
		})
		s.after(2 * time.Second)
		require.Empty(t, s.made("create", "a"))
		calls := s.made("reserve", "a")
		require.Equal(t, int64(9), calls[len(calls)-1].step.Generation)
	})
}

// What was read before the generation began says that it has not.
func TestLateReadingDoesNotBringAnOldGenerationBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.slow = 300 * time.Millisecond
		s.reserve = always(queue.Reservation{Wait: 100 * time.Millisecond})
		s.run("only")
		s.after(850 * time.Millisecond) // the second reading is under way since 800
		s.change(func() { delete(s.inRedis, "a") })
		s.after(100 * time.Millisecond)
		require.Equal(t, []string{"begin", "create"}, s.kinds())
		s.forget()
		s.after(time.Second)
		for _, c := range s.made("reserve", "a") {
			require.Equal(t, int64(15), c.step.Generation)
		}
	})
}

// A flush has set a newer generation while ours could not be begun.
func TestGenerationThatIsOverIsNotBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		delete(s.inRedis, "a")
		s.create = func(queue.Life) error { return queue.ErrFull }
		s.run("only")
		s.after(2 * time.Second)
		require.NotEmpty(t, s.made("create", "a"))
		s.edit("a", func(l *queue.Life) { l.Generation = 30 })
		s.change(func() { s.inRedis["a"] = s.lives["a"] })
		s.after(600 * time.Millisecond) // read by then
		s.forget()
		s.after(time.Second)
		require.NotEmpty(t, s.made("reserve", "a"))
		require.Empty(t, s.kinds())
	})
}

func TestCreateOfUnknownOutcomeIsRepeatedWithTheSameGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		delete(s.inRedis, "a")
		fail := true
		s.create = func(queue.Life) error {
			if fail {
				return queue.ErrUnavailable
			}
			return nil
		}
		s.run("only")
		s.after(4 * time.Second)
		require.Len(t, s.made("begin", "a"), 1, "a number that is won is used, not thrown away")
		require.Greater(t, len(s.made("create", "a")), 2)
		s.change(func() { fail = false })
		s.after(1100 * time.Millisecond)
		require.Equal(t, int64(15), s.inRedis["a"].Generation)
		require.NotEmpty(t, s.made("reserve", "a"))
	})
}

func TestRoomThatIsGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b")
		s.delay = 100 * time.Millisecond // a call is under way when the room goes
		s.reserve = always(queue.Reservation{Wait: time.Millisecond})
		s.reap = func(string) (queue.Reaped, error) { return queue.Reaped{More: true}, nil }
		s.run("only")
		s.after(2 * time.Second)
		s.change(func() { delete(s.lives, "a") })
		s.after(600 * time.Millisecond)
		s.forget()
		s.after(5 * time.Second)
		require.Empty(t, s.made("reserve", "a"))
		require.Empty(t, s.made("reap", "a"))
		require.NotEmpty(t, s.made("reserve", "b"))
	})
}

// A room that fails as it goes must not count as failing for ever: nothing
// would be logged of the others any more.
func TestFailureOfARoomThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b")
		s.reserve = always(queue.Reservation{Wait: time.Millisecond})
		var log strings.Builder
		s.run("only", func(c *scheduler.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		s.after(2 * time.Second)
		s.change(func() { s.delay = 1500 * time.Millisecond; delete(s.lives, "a") })
		s.after(600 * time.Millisecond) // the list without it is read, while its call is under way
		s.change(func() {
			s.reserve = func(string, queue.Step) (queue.Reservation, error) { return queue.Reservation{}, queue.ErrUnavailable }
		})
		s.after(time.Second)
		s.change(func() { s.delay = 0; s.reserve = always(queue.Reservation{Wait: time.Second}) })
		s.after(3 * time.Second)
		require.Contains(t, log.String(), "tick failed")
		require.Contains(t, log.String(), "ticks succeed again")
	})
}

func TestUnreadableSettingsLeaveTheLastInForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.run("only")
		s.after(2 * time.Second)
		s.change(func() { s.read = func() error { return errors.New("connection refused") } })
		s.after(20 * time.Second)
		require.GreaterOrEqual(t, len(s.made("reserve", "a")), 21)
	})
}

// A leader that was elected while Postgres is away knows no rooms but those of
// its last term.
func TestNextTermReapsWhatTheLastOneKnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.run("only")
		s.after(2 * time.Second)
		s.change(func() { s.read = func() error { return errors.New("connection refused") } })
		s.key.drop()
		s.after(10 * time.Second)
		s.forget()
		s.after(3 * time.Second)
		require.NotEmpty(t, s.made("reap", "a"))
	})
}

func TestReapGoesOnAtOnceWhileThereIsMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		left := 10
		s.reap = func(string) (queue.Reaped, error) {
			left--
			return queue.Reaped{Expired: 500, More: left > 0}, nil
		}
		s.run("only")
		s.after(200 * time.Millisecond)
		require.Len(t, s.made("reap", "a"), 10)
		s.after(10 * time.Second)
		require.InDelta(t, 20, len(s.made("reap", "a")), 1)
	})
}

func TestDeletedRoomIsRemovedFromRedisOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b")
		s.run("only")
		s.after(2 * time.Second)
		s.edit("a", func(l *queue.Life) { l.Deleted = true })
		s.after(2 * time.Second)
		require.NotContains(t, s.inRedis, "a")
		require.Contains(t, s.inRedis, "b")
		require.Len(t, s.made("drop", "a"), 1)
		before := len(s.made("reserve", "a"))
		s.after(2 * time.Second)
		require.Len(t, s.made("reserve", "a"), before, "nothing is asked of it any more")
	})
}
