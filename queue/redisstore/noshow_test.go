package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// Ten places, and three in ten of those who are let through never order: their
// places are taken again as soon as their tokens end, and those of the others as
// soon as they have ordered. At every look ten at most are inside, and nearly
// always ten.
func TestCapacityIsUsedInSpiteOfNoShowsAndNeverExceeded(t *testing.T) {
	const capacity, tick = 10, 250 * time.Millisecond
	f := setup(t, func(r *queue.Rules) { r.Capacity, r.TokenTTL, r.PickupTTL = capacity, 20*time.Second, 10*time.Second })
	f.enterMany(0, 400)
	orders := map[string]time.Time{} // when who is let through will order
	used, looks, n := 0.0, 0, 0
	for end := f.clock.Add(4 * time.Minute); f.clock.Before(end); f.pass(tick) {
		for _, m := range f.tick() {
			g := f.pickUp(m)
			if n++; n%10 >= 3 {
				orders[m] = f.clock.Add(5 * time.Second)
				require.NoError(t, f.Claim(t.Context(), g, "c", time.Minute))
			}
		}
		s := f.snap()
		inside := s.Ready + s.Claimed + s.Processing
		require.LessOrEqual(t, inside, int64(capacity))
		used, looks = used+float64(inside)/capacity, looks+1
		for m, at := range orders {
			if f.clock.Before(at) {
				continue
			}
			st := f.standing(m)
			_, err := f.Consume(t.Context(), f.room, []queue.Spent{{Member: m, Grant: st.Grant.ID, Order: fmt.Sprint("o-", m)}})
			require.NoError(t, err)
			delete(orders, m)
		}
	}
	require.GreaterOrEqual(t, used/float64(looks), 0.95, "use of capacity")
	c := f.snap().Counters
	require.InDelta(t, 0.3, float64(c["unused"])/float64(c["unused"]+c["consumed"]), 0.05)
	f.conserved()
}
