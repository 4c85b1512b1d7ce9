package naive_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/queue/redisstore"
)

// entering is what it takes to enter twice.
type entering interface {
	Enter(ctx context.Context, member string, hooks ...redis.Hook) error
	Place(ctx context.Context, member string) (int64, error)
}

// movedPlaces lets two first requests of one member meet: one is stalled after
// so many commands, while the other is answered. It returns the points at which
// that changes the place that the other was told, of how many.
func movedPlaces(t *testing.T, way func() entering) (points []int, of int) {
	t.Helper()
	for after := 0; ; after++ {
		w := way()
		reached, resume := make(chan struct{}), make(chan struct{})
		slow := stall(after, reached, resume)
		var g errgroup.Group
		g.Go(func() error { return w.Enter(t.Context(), "ann", slow) })
		if !happens(t, &g, reached) {
			return points, after
		}
		require.NoError(t, w.Enter(t.Context(), "ann"))
		told, err := w.Place(t.Context(), "ann")
		require.NoError(t, err)
		close(resume)
		require.NoError(t, g.Wait())
		kept, err := w.Place(t.Context(), "ann")
		require.NoError(t, err)
		if kept != told {
			points = append(points, after)
		}
	}
}

// happens tells whether what runs in g gets as far as reached.
func happens(t *testing.T, g *errgroup.Group, reached <-chan struct{}) bool {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	select {
	case <-reached:
		return true
	case err := <-ended:
		require.NoError(t, err)
		return false
	}
}

// TestEnteringTwiceAtOnceGivesOnePlace is about the first gap: to look whether
// somebody is there, then to add them, is two steps.
func TestEnteringTwiceAtOnceGivesOnePlace(t *testing.T) {
	t.Parallel()
	points, _ := movedPlaces(t, func() entering { return newNaive(t) })
	require.Equal(t, []int{1}, points, "the scenario must show the fault where it is: between ZSCORE and ZADD")
	points, of := movedPlaces(t, func() entering { return newKeeper(t) })
	require.Empty(t, points, "I6: entering again changes the score")
	require.GreaterOrEqual(t, of, 2, "before and after its one command at least")
}

// admitting is what it takes to be let through.
type admitting interface {
	Enter(ctx context.Context, member string, hooks ...redis.Hook) error
	// Tick is one step of a scheduler of its own, and who it let through.
	Tick(ctx context.Context, hooks ...redis.Hook) ([]string, error)
	Pass(d time.Duration)
	// Token is empty for who has none.
	Token(ctx context.Context, member string) (string, error)
}

// losses kills the process that ticks after so many commands, and lets another
// one take over. It returns, by point, who is never let through, of how many
// points.
func losses(t *testing.T, way func() admitting) (lost map[int][]string, of int) {
	t.Helper()
	lost = map[int][]string{}
	for after := 0; ; after++ {
		w, all := way(), members(3)
		for _, m := range all {
			require.NoError(t, w.Enter(t.Context(), m))
		}
		dies := crash(after)
		if _, err := w.Tick(t.Context(), dies); !dies.happened() {
			require.NoError(t, err)
			return lost, after
		}
		for range 2 {
			w.Pass(time.Second)
			_, err := w.Tick(t.Context())
			require.NoError(t, err)
		}
		for _, m := range all {
			token, err := w.Token(t.Context(), m)
			require.NoError(t, err)
			if token == "" {
				lost[after] = append(lost[after], m)
			}
		}
	}
}

// TestACrashBetweenPopAndTokenLosesNobody is about the second gap.
func TestACrashBetweenPopAndTokenLosesNobody(t *testing.T) {
	t.Parallel()
	m := members(3)
	lost, _ := losses(t, func() admitting { return newNaive(t) })
	require.Equal(t, map[int][]string{1: m, 2: m[1:], 3: m[2:]}, lost,
		"the scenario must show the fault where it is: after ZPOPMIN, and after each SET but the last")
	lost, of := losses(t, func() admitting { return newKeeper(t) })
	require.Empty(t, lost, "I8: a member is neither in line nor let through")
	require.GreaterOrEqual(t, of, 4, "around the term, reserve and issue at least")
}

// letThrough counts whom four schedulers let through that tick once a second
// each, three times, with far more in line.
func letThrough(t *testing.T, w admitting) (n int) {
	t.Helper()
	for _, m := range members(700) {
		require.NoError(t, w.Enter(t.Context(), m))
	}
	for range 3 {
		w.Pass(time.Second)
		for range 4 {
			through, err := w.Tick(t.Context())
			require.NoError(t, err)
			n += len(through)
		}
	}
	return n
}

// TestFourSchedulersLetNoMoreThroughThanOne is about the third gap: a batch
// for each instance is not a batch for the database behind.
func TestFourSchedulersLetNoMoreThroughThanOne(t *testing.T) {
	t.Parallel()
	require.Equal(t, 600, letThrough(t, newNaive(t)), "the scenario must show the fault: four batches a second")
	require.Equal(t, 150, letThrough(t, newKeeper(t)), "I10: one batch a second, however many schedulers")
}

// selling is what it takes to order.
type selling interface {
	admitting
	Order(ctx context.Context, member, token, sku string, hooks ...redis.Hook) error
	Orders(ctx context.Context) (int, error)
}

// doubleOrders sends two orders with one token: one is stalled after so many
// commands, while the other is answered. It returns how many orders there are
// then, by the points at which that is not one, of how many.
func doubleOrders(t *testing.T, way func() selling) (wrong map[int]int, of int) {
	t.Helper()
	wrong = map[int]int{}
	for after := 0; ; after++ {
		w := way()
		require.NoError(t, w.Enter(t.Context(), "ann"))
		_, err := w.Tick(t.Context())
		require.NoError(t, err)
		token, err := w.Token(t.Context(), "ann")
		require.NoError(t, err)
		require.Error(t, w.Order(t.Context(), "ann", token, "none"), "there is nothing left of it")
		reached, resume := make(chan struct{}), make(chan struct{})
		var g errgroup.Group
		g.Go(func() error {
			_ = w.Order(t.Context(), "ann", token, "plenty", stall(after, reached, resume))
			return nil
		})
		if !happens(t, &g, reached) {
			return wrong, after
		}
		_ = w.Order(t.Context(), "ann", token, "plenty") // one of the two may be refused
		close(resume)
		require.NoError(t, g.Wait())
		n, err := w.Orders(t.Context())
		require.NoError(t, err)
		if n != 1 {
			wrong[after] = n
		}
	}
}

// TestOneTokenPaysForOneOrder is about the fourth gap: a token that is looked
// at before the order, and deleted after it, pays for all that come between.
func TestOneTokenPaysForOneOrder(t *testing.T) {
	t.Parallel()
	wrong, _ := doubleOrders(t, func() selling { return newNaiveShop(t) })
	require.Equal(t, map[int]int{1: 2}, wrong,
		"the scenario must show the fault where it is: between the look at the token and its deletion")
	wrong, of := doubleOrders(t, func() selling { return newKeeper(t) })
	require.Empty(t, wrong, "I1: one committed order per grant")
	require.GreaterOrEqual(t, of, 2, "before and after the claim at least")
}

// estimating is what it takes to be told how long it will last.
type estimating interface {
	admitting
	EstimatedWait(ctx context.Context, member string) (time.Duration, error)
}

// saidAndTook is how long the last of 500 is told to wait, and waits from then
// on, where a tick comes every five seconds: the database is slow today.
func saidAndTook(t *testing.T, w estimating) (said, took time.Duration) {
	t.Helper()
	all := members(500)
	for _, m := range all {
		require.NoError(t, w.Enter(t.Context(), m))
	}
	last := all[len(all)-1]
	tick := func() {
		w.Pass(5 * time.Second)
		_, err := w.Tick(t.Context())
		require.NoError(t, err)
	}
	var err error
	for range 4 {
		_, err = w.EstimatedWait(t.Context(), last) // people poll all the time
		require.NoError(t, err)
		tick()
	}
	said, err = w.EstimatedWait(t.Context(), last)
	require.NoError(t, err)
	for token := ""; token == ""; took += 5 * time.Second {
		tick()
		token, err = w.Token(t.Context(), last)
		require.NoError(t, err)
	}
	return said, took
}

// TestTheEstimatedWaitIsThatOfTheRealThroughput is about the fifth gap.
func TestTheEstimatedWaitIsThatOfTheRealThroughput(t *testing.T) {
	t.Parallel()
	said, took := saidAndTook(t, newNaive(t))
	require.Equal(t, 30*time.Second, took)
	require.Less(t, said, took/4, "the scenario must show the fault: rank / 50 whatever happens")

	said, took = saidAndTook(t, newKeeper(t))
	require.Equal(t, 30*time.Second, took)
	require.InEpsilon(t, took.Seconds(), said.Seconds(), 0.1, "the estimate is not that of the measured admissions")
}

// arriving is what it takes to arrive through one of several processes.
type arriving interface {
	EnterThrough(ctx context.Context, process int, member string) error
	Tick(ctx context.Context, hooks ...redis.Hook) ([]string, error)
	Pass(d time.Duration)
}

// servedInOneMillisecond is the order in which three are let through who have
// come one after the other, before the clock moved.
func servedInOneMillisecond(t *testing.T, w arriving) []string {
	t.Helper()
	for _, m := range []string{"zoe", "max", "ann"} {
		require.NoError(t, w.EnterThrough(t.Context(), 1, m))
	}
	served, err := w.Tick(t.Context())
	require.NoError(t, err)
	return served
}

// TestArrivalsWithinOneMillisecondKeepTheirOrder is about the first half of the
// sixth gap.
func TestArrivalsWithinOneMillisecondKeepTheirOrder(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"ann", "max", "zoe"}, servedInOneMillisecond(t, newNaive(t)),
		"the scenario must show the fault: equal scores go by name")
	require.Equal(t, []string{"zoe", "max", "ann"}, servedInOneMillisecond(t, newKeeper(t)), "I7: not first come, first served")
}

// servedAcrossClocks is the order in which two are let through who have come a
// second apart, the first through a process whose clock is ten minutes fast.
func servedAcrossClocks(t *testing.T, w arriving) []string {
	t.Helper()
	require.NoError(t, w.EnterThrough(t.Context(), 0, "first"))
	w.Pass(time.Second)
	require.NoError(t, w.EnterThrough(t.Context(), 1, "second"))
	served, err := w.Tick(t.Context())
	require.NoError(t, err)
	return served
}

// TestClocksOfProcessesDoNotDecideWhoIsFirst is about the second half of the
// sixth gap. Linekeeper has the clock of Redis here, the real one.
func TestClocksOfProcessesDoNotDecideWhoIsFirst(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"second", "first"}, servedAcrossClocks(t, newNaive(t)),
		"the scenario must show the fault: the fast clock's member is behind")
	require.Equal(t, []string{"first", "second"}, servedAcrossClocks(t, newKeeper(t, noClock)), "I7: not first come, first served")
}

// noClock leaves the time to Redis.
func noClock() []redisstore.Option { return nil }
