package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

func TestNoGrantEndsBeforeItWasIssuedAfterAStepBack(t *testing.T) {
	f := setup(t)
	f.enter("ann", "bob")
	f.tick()
	f.pickUp("bob")
	f.pass(-time.Hour)
	ann := f.pickUp("ann")
	require.True(t, ann.IssuedAt.Before(ann.Expiry), "or no token can be signed from it")
	require.Equal(t, 300*time.Second, ann.Expiry.Sub(f.clock), "she has all the time that a pick-up gives")
	f.reap()
	bob := f.pickUp("bob")
	require.True(t, bob.IssuedAt.Before(bob.Expiry), "also one that was picked up before the step")
}

func TestStepBackBoundsHoweverManyClaimedGrants(t *testing.T) {
	const many, lease = 600, 300 * time.Second
	f := setup(t, func(r *queue.Rules) { r.Batch, r.ClaimLease = many, lease })
	f.enterMany(0, many)
	var claimed []queue.Grant
	for _, m := range f.tick() {
		g := f.pickUp(m)
		require.NoError(t, f.Claim(t.Context(), g, "c", lease))
		claimed = append(claimed, g)
	}
	require.Greater(t, len(claimed), 500, "more than one reap looks at")
	f.pass(-10 * time.Minute)
	for f.reap().More {
	}
	for _, g := range claimed {
		require.NoError(t, f.Release(t.Context(), g, "c"))
	}
	for f.reap().More {
	}
	for _, g := range claimed {
		require.LessOrEqual(t, f.standing(g.Member).Grant.Expiry.Sub(f.clock), 300*time.Second, g.Member)
	}
	f.pass(lease)
	f.reap()
	left, err := f.rdb.HExists(t.Context(), f.key("state"), "step_at").Result()
	require.NoError(t, err)
	require.False(t, left, "no claim of before is left: it is over")
}
