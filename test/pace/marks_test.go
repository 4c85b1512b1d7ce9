package pace

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// arrivals are ways in which a crowd comes, as moments in seconds, in any order.
var arrivals = map[string]func(r *rand.Rand, n int) []float64{
	"evenly": func(r *rand.Rand, n int) []float64 {
		return several(n, func(int) float64 { return 600 * r.Float64() })
	},
	"at once, and less and less": func(r *rand.Rand, n int) []float64 {
		return several(n, func(int) float64 { return 60 * r.ExpFloat64() })
	},
	"in bursts": func(r *rand.Rand, n int) []float64 { // a message to customers each minute, as it were
		return several(n, func(i int) float64 {
			if i%5 == 0 {
				return 1200 * r.Float64()
			}
			return 60*float64(r.IntN(20)) + 2*r.ExpFloat64()
		})
	},
	"a few early, most in five seconds": func(r *rand.Rand, n int) []float64 {
		return several(n, func(i int) float64 {
			if i%100 == 0 {
				return 3600 * r.Float64()
			}
			return 3600 + 5*r.Float64()
		})
	},
	"and many have left": func(r *rand.Rand, n int) []float64 {
		var out []float64
		for len(out) < n {
			at := 600 * r.Float64()
			switch { // whom an outage of their network took, and who had no patience
			case at > 60 && at < 90, at > 250 && at < 260:
			case at > 300 && at < 400 && r.IntN(4) > 0:
			default:
				out = append(out, at)
			}
		}
		return out
	},
}

func several(n int, moment func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = moment(i)
	}
	return out
}

// TestAThousandOfACrowdPlaceThemselvesByTheMarks: within a twentieth of their rank, or
// a place, however the crowd came, and without asking for more than everybody is told.
func TestAThousandOfACrowdPlaceThemselvesByTheMarks(t *testing.T) {
	t.Parallel()
	n := max(*crowdSize, 100_000)
	for name, come := range arrivals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 4))
			line, scores := lineOf(t, come(r, n))
			began := time.Now()
			snap, err := line.SnapshotMarks(t.Context(), roomName)
			took := time.Since(began)
			require.NoError(t, err)
			marks := snap.Lanes[0].Marks
			require.LessOrEqual(t, len(marks), queue.MostMarks)
			worst := 0.0
			for range 1000 {
				rank := r.IntN(n)
				if r.IntN(2) == 0 { // as many near the front as far behind
					rank = int(math.Exp(r.Float64()*math.Log(float64(n)))) - 1
				}
				off := math.Abs(placed(marks, scores[rank]) - float64(rank))
				require.LessOrEqual(t, off, max(1, float64(rank)/20), "of the member with %d ahead", rank)
				worst = max(worst, off/float64(max(rank, 20)))
			}
			t.Logf("pace: marks of %d who came %s: %d, at most %.1f %% wrong; read in %v", n, name, len(marks), 100*worst, took.Round(100*time.Microsecond))
		})
	}
}

// placed is what docs/clients.md tells a client to compute.
func placed(marks []queue.Mark, score int64) float64 {
	for i := 1; i < len(marks); i++ {
		if a, b := marks[i-1], marks[i]; score <= b.Score {
			return float64(a.Rank) + float64(b.Rank-a.Rank)*float64(score-a.Score)/float64(b.Score-a.Score)
		}
	}
	return math.Inf(1)
}

// lineOf is a room whose members came at these moments, and their scores in order.
func lineOf(t *testing.T, moments []float64) (*redisstore.Store, []int64) {
	t.Helper()
	slices.Sort(moments)
	rdb, prefix := harness.Redis(t), fmt.Sprintf("marks%x", rand.Uint64())
	line := redisstore.New(rdb, prefix)
	rules := queue.Rules{Batch: 50, Interval: time.Second, TokenTTL: time.Minute, PickupTTL: time.Minute, ClaimLease: time.Minute, ProcessingTimeout: time.Minute,
		AwayAfter: 2 * time.Minute, ForgetAfter: time.Hour, DoneTTL: time.Hour, MaxWaiting: 10_000_000, Weights: []int{1}}
	require.NoError(t, line.Create(t.Context(), queue.Life{Room: roomName, Generation: 1, Sale: 1, RestorableFrom: 1, Version: 1, Rules: rules,
		Lanes: []string{"standard"}, Settings: []byte("{}"), Floors: []int64{0}}))
	start, last := noon.UnixMicro(), int64(0)
	scores := make([]int64, len(moments))
	for i, at := range moments {
		last = max(last+1, start+int64(1e6*at))
		scores[i] = last
	}
	key := prefix + ":{" + roomName + "}:lane0"
	for i := 0; i < len(scores); i += 5000 {
		entries := make([]redis.Z, 0, 5000)
		for k := i; k < min(i+5000, len(scores)); k++ {
			entries = append(entries, redis.Z{Score: float64(scores[k]), Member: fmt.Sprintf("m%013d", k)})
		}
		require.NoError(t, rdb.ZAdd(t.Context(), key, entries...).Err())
	}
	t.Cleanup(func() { _ = rdb.Unlink(context.WithoutCancel(t.Context()), key).Err() })
	return line, scores
}
