package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// The bubble's clock begins in winter, when New York is five hours behind.
func TestTheLineIsToldTheDayOfTheRoomAndTheObserverTheLifts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b")
		var err error
		a := s.lives["a"]
		a.Rules.Zone, err = time.LoadLocation("America/New_York")
		require.NoError(t, err)
		a.Rules.Boosts = []time.Duration{0, time.Minute}
		s.lives["a"] = a
		res := someone(0, 1)
		res.Lifted = []string{"m1"}
		s.reserve = always(res)
		var seen []scheduler.Admission
		s.run("only", func(c *scheduler.Config) {
			c.Observer.Issued = func(a scheduler.Admission) { seen = append(seen, a) }
		})
		s.after(100 * time.Millisecond)
		require.Equal(t, -5*3600, s.made("reserve", "a")[0].take.Zone)
		require.Zero(t, s.made("reserve", "b")[0].take.Zone, "UTC")
		require.Equal(t, queue.Place{Lane: 0, Score: 1}, seen[0].Candidates[0].Place)
		require.Equal(t, 1, seen[0].Lifted)
		for _, one := range seen {
			if one.Room == "a" {
				require.Equal(t, a.Rules.Boosts, one.Boosts)
			}
		}
	})
}
