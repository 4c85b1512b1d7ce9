package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// losses counts what a scheduler reports as lost.
func losses(n *int) func(*scheduler.Config) {
	return func(c *scheduler.Config) { c.Observer.Lost = func(string) { *n++ } }
}

func TestTotalLossIsCountedAndABeginningIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.edit("a", func(l *queue.Life) { l.RestorableFrom = 5 })
		s.change(func() { s.lives["new"] = queue.Life{Room: "new", RestorableFrom: 10, Rules: queue.Rules{Batch: 1}} })
		lost := 0
		s.run("only", losses(&lost))
		s.after(3 * time.Second)
		require.Equal(t, int64(10), s.inRedis["new"].Generation)
		require.Zero(t, lost, "the first generation of a room, or the first after a flush, is no loss")
		s.change(func() { delete(s.inRedis, "a") })
		s.after(3 * time.Second)
		require.Equal(t, 1, lost)
	})
}

// The outage that ends a term is often the one that loses something.
func TestLossIsSeenAcrossTerms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		last, lost := int64(800), 0
		s.reserve = func(string, queue.Step) (queue.Reservation, error) {
			return queue.Reservation{Wait: time.Second, Watermarks: []int64{5}, LastScore: last}, nil
		}
		s.run("only", losses(&lost))
		s.after(3 * time.Second)
		s.change(func() { last = 700 })
		s.key.drop()
		s.after(10 * time.Second)
		require.Greater(t, s.terms.n, int64(1), "the term has not changed: this test shows nothing")
		require.Equal(t, 1, lost)
	})
}

// A process that has never ticked the room knows what Postgres was told.
func TestLossIsSeenByANewProcess(t *testing.T) {
	t.Parallel()
	for last, want := range map[int64]int{899: 1, 900: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, "a")
			s.edit("a", func(l *queue.Life) { l.LastScore, l.Floors = 900, []int64{700} })
			s.reserve = func(string, queue.Step) (queue.Reservation, error) {
				return queue.Reservation{Wait: time.Second, Watermarks: []int64{600}, LastScore: last}, nil
			}
			lost := 0
			s.run("only", losses(&lost))
			s.after(5 * time.Second)
			require.Equal(t, want, lost, "a floor above the watermark is no loss: it is written before its grants")
		})
	}
}
