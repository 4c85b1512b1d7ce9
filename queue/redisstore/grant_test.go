package redisstore

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// unwrapAll is the innermost error.
func unwrapAll(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

func ready(t *testing.T, change ...func(*queue.Rules)) (*fixture, queue.Grant) {
	f := setup(t, change...)
	f.enter("ann")
	f.tick()
	return f, f.pickUp("ann")
}

func spent(g queue.Grant) []queue.Spent {
	return []queue.Spent{{Member: g.Member, Grant: g.ID, Order: "o1"}}
}

func TestPickUpFixesTheExpiryOnceInWholeSeconds(t *testing.T) {
	f := setup(t)
	f.pass(700 * time.Millisecond)
	f.enter("ann")
	f.tick()
	st := f.standing("ann")
	require.False(t, st.Grant.Picked)
	require.Equal(t, f.clock.Add(30*time.Second), st.Grant.Expiry, "until it is fetched, a grant lives for pickupTtl")

	f.pass(10 * time.Second)
	g := f.pickUp("ann")
	require.Equal(t, f.clock.Add(300*time.Second).Truncate(time.Second), g.Expiry)
	require.Equal(t, "k1", g.KeyID)

	f.pass(100 * time.Second)
	again, err := f.PickUp(t.Context(), st.Grant, "k2")
	require.NoError(t, err)
	require.Equal(t, g, again, "the same grant has the same expiry and key for ever")
}

// After a loss a member can hold a token whose pick-up Redis does not know of:
// the claim comes first then, and the token is signed anew.
func TestClaimedGrantWhosePickUpIsLostHasAnExpiryInWholeSeconds(t *testing.T) {
	f := setup(t)
	f.pass(700 * time.Millisecond)
	f.enter("ann")
	f.tick()
	before := f.standing("ann").Grant
	require.NotZero(t, before.Expiry.Nanosecond())
	require.NoError(t, f.Claim(t.Context(), before, "c1", 15*time.Second))
	g, err := f.PickUp(t.Context(), before, "k1")
	require.NoError(t, err)
	require.Equal(t, before.Expiry.Truncate(time.Second), g.Expiry, "no longer than it was")
	require.NoError(t, f.Release(t.Context(), before, "c1"))
	require.Equal(t, g, f.pickUp("ann"), "the same grant has the same expiry and key for ever")
	f.clock = g.Expiry
	require.Equal(t, queue.NotEntered, f.status("ann"))
	f.conserved()
}

func TestPollingDoesNotLengthenAGrant(t *testing.T) {
	f, g := ready(t)
	for range 10 {
		f.pass(29 * time.Second)
		require.Equal(t, queue.Ready, f.status("ann"))
		f.pickUp("ann")
	}
	f.pass(11 * time.Second)
	require.Equal(t, queue.NotEntered, f.status("ann"))
	_, err := f.PickUp(t.Context(), g, "k1")
	require.ErrorIs(t, err, queue.ErrGone)
}

func TestPickUpComparesIds(t *testing.T) {
	f, g := ready(t)
	g.ID = "another"
	_, err := f.PickUp(t.Context(), g, "k1")
	require.ErrorIs(t, err, queue.ErrGone)
}

func TestOneClaimAtATime(t *testing.T) {
	f, g := ready(t)
	lease := 15 * time.Second
	require.NoError(t, f.Claim(t.Context(), g, "c1", lease))
	f.pass(5 * time.Second)
	require.NoError(t, f.Claim(t.Context(), g, "c1", lease), "the same attempt")
	err := f.Claim(t.Context(), g, "c2", lease)
	require.Equal(t, queue.BusyError{Left: 10 * time.Second}, unwrapAll(err), "repeating did not lengthen the lease")
	f.pass(10 * time.Second)
	require.NoError(t, f.Claim(t.Context(), g, "c2", lease), "a lapsed claim lets go by itself")
	require.NoError(t, f.Release(t.Context(), g, "c1"))
	require.Equal(t, queue.Claimed, f.status("ann"), "a late release frees nobody else's claim")
	f.conserved()
}

func TestAHundredParallelClaimsHaveOneWinner(t *testing.T) {
	f, g := ready(t)
	var wg sync.WaitGroup
	errs := make([]error, 100)
	for i := range errs {
		wg.Go(func() { errs[i] = f.Claim(t.Context(), g, string(rune('A'+i)), time.Minute) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			require.ErrorIs(t, err, queue.ErrBusy)
		}
	}
	require.Equal(t, 1, won)
}

func TestClaimRefusals(t *testing.T) {
	t.Run("another grant", func(t *testing.T) {
		f, g := ready(t)
		g.ID = "another"
		require.ErrorIs(t, f.Claim(t.Context(), g, "c", time.Second), queue.ErrGone)
	})
	t.Run("at expiry", func(t *testing.T) {
		f, g := ready(t)
		f.clock = g.Expiry
		require.ErrorIs(t, f.Claim(t.Context(), g, "c", time.Second), queue.ErrGone)
	})
	t.Run("just before expiry", func(t *testing.T) {
		f, g := ready(t)
		f.clock = g.Expiry.Add(-time.Microsecond)
		require.NoError(t, f.Claim(t.Context(), g, "c", time.Second))
	})
	t.Run("no lease", func(t *testing.T) {
		f, g := ready(t)
		require.Error(t, f.Claim(t.Context(), g, "c", 0))
	})
	t.Run("enough in flight", func(t *testing.T) {
		f := setup(t, func(r *queue.Rules) { r.MaxInFlight = 1 })
		f.enter("ann", "bob")
		f.tick()
		ann, bob := f.pickUp("ann"), f.pickUp("bob")
		require.NoError(t, f.Claim(t.Context(), ann, "c1", 15*time.Second))
		require.ErrorIs(t, f.Claim(t.Context(), bob, "c2", 15*time.Second), queue.ErrLimit)
		require.Equal(t, queue.Ready, f.status("bob"))
		f.pass(15 * time.Second) // a lapsed claim is not in flight
		require.NoError(t, f.Claim(t.Context(), bob, "c2", 15*time.Second))
	})
}

func TestReleaseGivesBackTheOldExpiry(t *testing.T) {
	f, g := ready(t)
	f.pass(100 * time.Second)
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	f.pass(5 * time.Second)
	require.NoError(t, f.Release(t.Context(), g, "c"))
	st := f.standing("ann")
	require.Equal(t, queue.Ready, st.Status)
	require.Equal(t, g.Expiry, st.Grant.Expiry)
	before := f.dump("state")
	require.NoError(t, f.Release(t.Context(), g, "c"))
	require.Equal(t, before, f.dump("state"), "releasing twice is releasing once")
}

func TestReleaseAfterExpiryEndsTheGrant(t *testing.T) {
	f, g := ready(t)
	f.clock = g.Expiry.Add(-time.Second)
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	f.pass(5 * time.Second)
	require.Equal(t, queue.Claimed, f.status("ann"), "the lease covers the expiry")
	require.NoError(t, f.Release(t.Context(), g, "c"))
	require.Equal(t, queue.OutcomeExpired, f.standing("ann").Outcome)
	f.conserved()
}

func TestConsume(t *testing.T) {
	consume := func(f *fixture, s []queue.Spent) Consumed {
		words, err := f.Consume(f.Context(), f.room, s)
		require.NoError(f, err)
		return words[0]
	}
	t.Run("claimed", func(t *testing.T) {
		f, g := ready(t)
		require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
		require.Equal(t, ConsumedNow, consume(f, spent(g)))
		require.Equal(t, ConsumedNone, consume(f, spent(g)), "twice is once")
		require.EqualValues(t, 1, f.snap().Counters["consumed"])
		require.ErrorIs(t, f.Claim(t.Context(), g, "d", time.Second), queue.ErrGone)
		f.conserved()
	})
	t.Run("ends another attempt's claim", func(t *testing.T) {
		f, g := ready(t)
		require.NoError(t, f.Claim(t.Context(), g, "first", time.Second))
		f.pass(2 * time.Second)
		require.NoError(t, f.Claim(t.Context(), g, "second", 15*time.Second))
		require.Equal(t, ConsumedNow, consume(f, spent(g)))
		require.NoError(t, f.Release(t.Context(), g, "second"))
		require.Equal(t, queue.Consumed, f.status("ann"))
	})
	t.Run("late, after expiry", func(t *testing.T) {
		f, g := ready(t)
		f.pass(301 * time.Second)
		require.Equal(t, queue.OutcomeExpired, f.standing("ann").Outcome)
		require.Equal(t, ConsumedLate, consume(f, spent(g)))
		require.Equal(t, queue.Consumed, f.status("ann"))
		f.conserved()
	})
	t.Run("late, after leaving", func(t *testing.T) {
		f, g := ready(t)
		_, err := f.Leave(t.Context(), f.room, "ann", 0, queue.OutcomeLeft)
		require.NoError(t, err)
		require.Equal(t, ConsumedLate, consume(f, spent(g)))
		f.conserved()
	})
	t.Run("never the member's next grant", func(t *testing.T) {
		f, old := ready(t)
		f.pass(301 * time.Second)
		f.reap()
		f.enter("ann")
		f.tick()
		next := f.pickUp("ann")
		require.Equal(t, ConsumedNone, consume(f, spent(old)))
		require.Equal(t, next, f.pickUp("ann"))
		f.conserved()
	})
	t.Run("more than a call takes", func(t *testing.T) {
		f, g := ready(t)
		all := make([]queue.Spent, 2*consumedAtOnce, 2*consumedAtOnce+1)
		for i := range all {
			all[i] = queue.Spent{Member: fmt.Sprint("nobody", i), Grant: "g", Order: "o"}
		}
		words, err := f.Consume(t.Context(), f.room, append(all, spent(g)...))
		require.NoError(t, err)
		require.Len(t, words, len(all)+1)
		require.Equal(t, ConsumedNow, words[len(all)])
	})
	t.Run("many of many members at once", func(t *testing.T) {
		f, old := ready(t)
		f.pass(301 * time.Second)
		f.reap()
		f.enter("bob", "cy")
		f.tick()
		f.enter("dan")
		bob, cy := f.pickUp("bob"), f.pickUp("cy")
		require.NoError(t, f.Claim(t.Context(), cy, "c", 15*time.Second))
		var all []queue.Spent
		for _, g := range []queue.Grant{bob, old, cy, bob, old, {Member: "dan", ID: "g"}} {
			all = append(all, spent(g)...)
		}
		words, err := f.Consume(t.Context(), f.room, all)
		require.NoError(t, err)
		require.Equal(t, []Consumed{ConsumedNow, ConsumedLate, ConsumedNow, ConsumedNone, ConsumedNone, ConsumedNone}, words,
			"who is named again meets what came of the first")
		require.EqualValues(t, 3, f.snap().Counters["consumed"])
		require.Equal(t, queue.Waiting, f.status("dan"))
		for _, name := range []string{"ann", "bob", "cy"} {
			require.Equal(t, queue.Consumed, f.status(name))
		}
		for _, part := range []string{"ready", "claimed", "grants"} {
			require.NotContains(t, f.dump(), part)
		}
		f.conserved()
	})
}

// Case 28, rails/solid_queue#761: neither a second release nor a consume after
// the lease frees a place twice.
func TestCase28CapacityIsNeverFreedTwice(t *testing.T) {
	f := setup(t, func(r *queue.Rules) { r.Capacity = 1 })
	f.enter("ann", "bob", "cy")
	require.Equal(t, []string{"ann"}, f.tick())
	g := f.pickUp("ann")
	require.NoError(t, f.Claim(t.Context(), g, "c", 15*time.Second))
	f.pass(16 * time.Second)
	f.reap()
	finish := func() {
		require.NoError(t, f.Release(t.Context(), g, "c"))
		_, err := f.Consume(t.Context(), f.room, spent(g))
		require.NoError(t, err)
	}
	for range 3 {
		finish()
	}
	require.Equal(t, []string{"bob"}, f.tick())
	require.Empty(t, f.tick())
	before := f.dump("state")
	finish()
	require.Equal(t, before, f.dump("state"), "what has ended changes nothing any more")
	require.Empty(t, f.tick())
	f.conserved()
}

// Records are separated by spaces: what would break one is refused at the door.
func TestIdsThatAreNotOneWordAreRefusedUnwritten(t *testing.T) {
	f, g := ready(t)
	f.enter("bob")
	before := f.dump()
	for _, bad := range []string{"", "a b", "a\n"} {
		require.Error(t, f.Claim(t.Context(), g, bad, time.Second))
		_, err := f.PickUp(t.Context(), g, bad)
		require.Error(t, err)
		_, err = f.Consume(t.Context(), f.room, []queue.Spent{{Member: "ann", Grant: g.ID, Order: bad}})
		require.Error(t, err)
		_, err = f.Reserve(t.Context(), f.room, queue.Step{Generation: 7, Term: 9, Leader: bad, Seq: 1}, queue.Take{Keep: 1, Effective: 1, Max: 1})
		require.Error(t, err)
		if bad != "" { // an empty one is a refusal
			_, err = f.Issue(t.Context(), f.room, f.step, []queue.Decision{{Member: "bob", Grant: bad}})
			require.Error(t, err)
		}
	}
	require.Equal(t, before, f.dump())
}
