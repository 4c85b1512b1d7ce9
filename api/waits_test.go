package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// ledger writes down what waits compares.
type ledger struct {
	*waits
	ratios []float64
}

func newLedger() *ledger {
	l := &ledger{}
	l.waits = newWaits(func(_ string, told, waited time.Duration) {
		l.ratios = append(l.ratios, told.Seconds()/waited.Seconds())
	})
	return l
}

var noon = time.UnixMicro(1_764_500_000_000_000)

// let grants the place, after so long.
func (l *ledger) let(score int64, after time.Duration) {
	l.came(queue.Grant{Room: "a", Place: queue.Place{Score: score}, IssuedAt: noon.Add(after)})
}

func TestTheFirstThatAMemberWasToldIsHeldAgainstTheWait(t *testing.T) {
	t.Parallel()
	l := newLedger()
	for score := range int64(8000) {
		l.promised("a", score, noon, 20*time.Second)
		l.promised("a", score, noon.Add(10*time.Second), 90*time.Second) // told anew
		l.let(score, 16*time.Second)
		l.let(score, 16*time.Second) // another poll
	}
	require.InDelta(t, 8000/sampleOneIn, len(l.ratios), 100, "one in %d", sampleOneIn)
	for _, r := range l.ratios {
		require.InDelta(t, 1.25, r, 1e-9)
	}
	require.Empty(t, l.told)
}

func TestWhatIsFollowedIsBoundedAndLetGo(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.most = 50
	for score := range int64(10_000) {
		l.promised("a", score, noon, time.Second)
	}
	require.Len(t, l.told, 50)
	later := noon.Add(waitsKept + time.Minute) // nobody came
	for score := range int64(10_000) {
		l.promised("a", 10_000+score, later, time.Second)
	}
	require.Len(t, l.told, 50)
	for at := range l.told {
		require.GreaterOrEqual(t, at.score, int64(10_000))
	}
}

func TestMostPollsDoNotAskForTheSample(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.mu.Lock() // whoever asked would wait for ever
	defer l.mu.Unlock()
	passed := 0
	for score := range int64(1000) {
		if !l.follows(score) {
			l.promised("a", score, noon, time.Second)
			passed++
		}
	}
	require.Greater(t, passed, 800)
}

func BenchmarkAPollBesideTheSample(b *testing.B) {
	l := newLedger()
	for score := int64(0); b.Loop(); score++ {
		l.promised("a", score%1000, noon, time.Second)
	}
}
