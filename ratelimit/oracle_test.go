package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/httprate"
	"github.com/go-redis/redis_rate/v10"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// Two that others have written decide alike where they promise alike.

func TestTheTokenBucketDecidesAsRedisRateDoes(t *testing.T) {
	rdb := harness.Redis(t)
	l := Limit{Token, 20, 400 * time.Millisecond}
	prefix := unique(t)
	ours, theirs := New(rdb, prefix), redis_rate.NewLimiter(rdb)
	rnd := rand.New(rand.NewPCG(8, 9))
	const questions, close, one = 300, 5 * time.Millisecond, 20 * time.Millisecond
	edges, refused := 0, 0
	apart := time.Duration(0) // what a busy machine has put between the two at most
	for i := range questions {
		began := time.Now()
		key := fmt.Sprint(prefix, edges) // after a tie that each has broken its own way they go apart
		a, err := ours.Allow(t.Context(), key, l)
		require.NoError(t, err)
		b, err := theirs.Allow(t.Context(), key, redis_rate.Limit{Rate: l.N, Burst: l.N, Period: l.Per})
		require.NoError(t, err)
		apart = max(apart, time.Since(began))
		if !a.Allowed {
			refused++
		}
		if a.Allowed != (b.Allowed == 1) {
			refusal := b.RetryAfter
			if !a.Allowed {
				refusal = a.RetryAfter
			}
			require.Less(t, refusal, close+apart, "question %d: ours %+v, theirs %+v", i, a, b)
			edges++
			continue
		}
		require.InDelta(t, a.Remaining, b.Remaining, 1+float64(apart/one), "question %d", i)
		require.InDelta(t, a.Reset, b.ResetAfter, float64(close+apart), "question %d", i)
		if rnd.IntN(4) == 0 {
			time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond) // their clock is the server's
		}
	}
	require.Less(t, edges, questions/10)
	require.Greater(t, refused, questions/10)
}

// It weighs the stretch before; after a pause there is none to weigh, and all
// three allow as many.
func TestWindowsDecideAsHTTPRateDoesAfterAPause(t *testing.T) {
	rdb := harness.Redis(t)
	for _, algorithm := range []Algorithm{Fixed, Sliding} {
		l := Limit{algorithm, 7, 40 * time.Millisecond}
		now := epoch
		ours := New(rdb, unique(t), WithClock(func() time.Time { return now }))
		theirs := httprate.NewRateLimiter(l.N, l.Per)
		rnd := rand.New(rand.NewPCG(10, 11))
		for burst := range 8 {
			now = now.Truncate(l.Per).Add(3 * l.Per)
			began, mine, other := time.Now(), 0, 0
			for range rnd.IntN(2 * l.N) {
				a, err := ours.Allow(t.Context(), "ann", l)
				require.NoError(t, err)
				if a.Allowed {
					mine++
				}
				if !theirs.OnLimit(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), "ann") {
					other++
				}
			}
			if time.Since(began) < l.Per/4 { // or a new stretch may have begun in the middle
				require.Equal(t, other, mine, "%s, burst %d", l, burst)
			}
			time.Sleep(3 * l.Per)
		}
	}
}
