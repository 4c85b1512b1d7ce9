package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// following has a room of 100 a second follow its orders, on a stage on which
// somebody waits and whose database answers as orders says, of each second that
// has passed.
func following(t *testing.T, orders func(h *queue.Health)) *stage {
	s := newStage(t, "a")
	s.follow("a", 100)
	began, done := time.Now(), 0
	var health queue.Health
	s.counts = func(snap *queue.Snapshot) {
		for ; done < int(time.Since(began).Seconds()); done++ {
			orders(&health)
		}
		snap.Health = health
		snap.Lanes = []queue.LaneSnapshot{{Waiting: 1000, Admitted: health.Attempts()}}
	}
	return s
}

func (s *stage) follow(room string, batch int) {
	s.change(func() {
		l := s.lives[room]
		l.Rules.Adaptive, l.Rules.Batch, l.RestorableFrom = true, batch, l.Generation
		l.Version++
		s.lives[room], s.inRedis[room] = l, l
	})
}

// batches are what the ticks worked with, each once as long as it stayed.
func (s *stage) batches() []int {
	var all []int
	for _, c := range s.made("reserve", "a") {
		all = append(all, c.take.Effective)
	}
	return slices.Compact(all)
}

func (s *stage) inForce() int {
	all := s.batches()
	return all[len(all)-1]
}

// fill places n orders of a band.
func fill(band int, n int64) func(h *queue.Health) {
	return func(h *queue.Health) {
		h.Done[band] += n
		h.Delay += time.Duration(n) * 5 * time.Second
	}
}

func TestAnAdaptiveRoomBeginsWithHalfAndRisesAfterTwoQuietRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, fill(0, 50))
		s.run("only")
		s.after(9 * time.Second)
		require.Equal(t, []int{50}, s.batches(), "one round or none")
		s.after(3 * time.Minute)
		all := s.batches()
		require.Greater(t, len(all), 3)
		require.True(t, slices.IsSorted(all), "%v", all)
		for i := 1; i < len(all); i++ {
			require.LessOrEqual(t, float64(all[i]), 1.1*float64(all[i-1])+1, "a tenth a round at most: %v", all)
		}
	})
}

func TestASlowRoundLowersTheBatchAndAFailingOneToo(t *testing.T) {
	t.Parallel()
	for name, orders := range map[string]func(h *queue.Health){
		"slow":    fill(3, 50),
		"failing": func(h *queue.Health) { h.Failed += 5; fill(0, 45)(h) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := following(t, orders)
				s.run("only")
				s.after(15 * time.Second)
				require.Less(t, s.inForce(), 50)
			})
		})
	}
}

func TestAnotherLeaderGoesOnWhereTheOneBeforeStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, fill(3, 50))
		stop := s.run("first")
		s.after(31 * time.Second)
		stop()
		was, kept := s.inForce(), s.tuned["a"]
		require.Less(t, was, 50)
		s.forget()
		s.run("second")
		s.after(time.Second)
		require.Equal(t, []int{was}, s.batches(), "from the first tick on")
		s.after(6 * time.Second)
		require.Equal(t, kept.Round+1, s.tuned["a"].Round, "and its next round is the next")
	})
}

func TestAfterAnOutageOneIsLetThroughAndThenMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, fill(0, 50))
		away := false
		s.reserve = func(string, queue.Step) (queue.Reservation, error) {
			if away {
				return queue.Reservation{}, fmt.Errorf("away: %w", queue.ErrUnavailable)
			}
			return queue.Reservation{Wait: time.Second}, nil
		}
		s.run("only", withoutLock)
		s.after(30 * time.Second)
		s.change(func() { away = true })
		s.after(20 * time.Second)
		s.change(func() { away = false })
		s.forget()
		s.after(2 * time.Second)
		require.Equal(t, []int{1}, s.batches())
		s.after(2 * time.Minute)
		require.Greater(t, s.inForce(), 5)
	})
}

func TestALossOfTheRoomLetsOneThroughAndANewSaleHalf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		restorable int64
		want       int
	}{"loss": {5, 1}, "sale": {15, 50}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := following(t, fill(3, 50))
				s.run("only")
				s.after(20 * time.Second)
				s.change(func() {
					l := s.lives["a"]
					l.Generation, l.RestorableFrom = 15, c.restorable
					s.lives["a"], s.inRedis["a"] = l, l
					clear(s.tuned)
				})
				s.forget()
				s.after(2 * time.Second)
				require.Equal(t, c.want, s.inForce())
			})
		})
	}
}

func TestTheOperatorsBatchIsNeverPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, fill(0, 50))
		s.run("only")
		s.after(30 * time.Second)
		s.follow("a", 7)
		s.after(time.Second)
		s.forget()
		s.after(time.Minute)
		require.LessOrEqual(t, slices.Max(s.batches()), 7)
	})
}

func TestARoomSwitchedOffHasTheOperatorsBatchAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, fill(3, 50))
		s.run("only")
		s.after(30 * time.Second)
		s.change(func() {
			l := s.lives["a"]
			l.Rules.Adaptive = false
			l.Version++
			s.lives["a"] = l
			clear(s.tuned)
		})
		s.after(time.Second)
		s.forget()
		s.after(20 * time.Second)
		require.Equal(t, []int{100}, s.batches())
		require.Empty(t, s.made("snapshot", ""), "and costs nothing more")
	})
}

func TestSchedulersWithoutALockMakeOneRoundTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, fill(1, 50))
		for _, name := range []string{"x", "y", "z"} {
			s.run(name, withoutLock)
		}
		s.after(time.Minute)
		require.InDelta(t, 12, s.tuned["a"].Round, 3, "every five seconds")
	})
}

func TestARoomInWhichNothingHappensIsReadAndSeldomWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, func(*queue.Health) {})
		s.run("only")
		s.after(10 * time.Second)
		s.forget()
		s.after(2 * time.Minute)
		require.Len(t, s.made("snapshot", "a"), 24)
		require.LessOrEqual(t, len(s.made("tune", "a")), 2)
		require.NotEmpty(t, s.made("tune", "a"))
	})
}

// Grants that end without an order make room for others: the controller is told.
func TestGrantsThatEndUnusedAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, fill(0, 50))
		counts := s.counts
		s.counts = func(snap *queue.Snapshot) {
			counts(snap)
			snap.Counters = map[string]int64{"unused": snap.Health.Orders() / 2}
		}
		s.run("only")
		s.after(2 * time.Minute)
		var kept struct{ State controller.State }
		require.NoError(t, json.Unmarshal(s.tuned["a"].Memory, &kept))
		require.InDelta(t, 2.0/3, kept.State.Share(), 0.05, "a third of them")
	})
}

func TestARoundThatHangsDelaysNoTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := following(t, fill(0, 50))
		s.run("only")
		s.after(2 * time.Second)
		s.change(func() { s.hangs = true })
		s.forget()
		s.after(30 * time.Second)
		require.GreaterOrEqual(t, len(s.made("reserve", "a")), 29)
		require.Equal(t, []int{50}, s.batches(), "the last known stays in force")
	})
}

var _ scheduler.Batches = (*world)(nil)

// Snapshot knows no more than that the room is there.
func (w *world) Snapshot(ctx context.Context, room string) (queue.Snapshot, error) {
	w.mu.Lock()
	d := w.delay
	if w.hangs {
		d = time.Hour
	}
	w.mu.Unlock()
	if err := wait(ctx, d); err != nil {
		return queue.Snapshot{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "snapshot", room: room})
	s := queue.Snapshot{Room: room, Generation: w.inRedis[room].Generation, Now: time.Now(), TickedAt: time.Now(), Tuning: w.tuned[room]}
	if w.counts != nil {
		w.counts(&s)
	}
	return s, nil
}

func (w *world) Tune(ctx context.Context, room string, step queue.Step, t queue.Tuning) (bool, error) {
	if err := w.pass(ctx); err != nil {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(call{what: "tune", room: room, step: step, tuning: t})
	if t.Round <= w.tuned[room].Round {
		return false, nil
	}
	t.At = time.Now()
	w.tuned[room] = t
	return true, nil
}
