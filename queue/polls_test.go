package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seconds plays one second of a process: so many are answered, of whom a share
// was slow, and are told to come back after next instead of usual.
func (p *Polls) second(now *time.Time, answers int, slow float64, usual, next time.Duration) float64 {
	for i := range answers {
		took := SlowPoll
		if float64(i) < slow*float64(answers) {
			took++
		}
		p.Took(took)
		p.Answered(now.Add(time.Second*time.Duration(i)/time.Duration(answers)), usual, next)
	}
	*now = now.Add(time.Second)
	return p.Step(*now)
}

// crowded is a process whose books have 10,000 members who would ask 2,000 times a
// second, and who have just been slow for long enough to be noticed.
func crowded(t *testing.T) (*Polls, *time.Time) {
	t.Helper()
	p, now := &Polls{}, noon
	p.Step(now)
	for range 30 {
		require.EqualValues(t, 1, p.second(&now, 1000, 0, 5*time.Second, 10*time.Second), "a crowd alone is no reason: nothing was slow")
	}
	require.EqualValues(t, 1, p.second(&now, 1000, 0.5, 5*time.Second, 10*time.Second), "one slow second may be anything")
	require.InEpsilon(t, 2/0.75, p.second(&now, 1000, 0.1, 5*time.Second, 10*time.Second), slack, "2,000 a second, of 1,000 borne, less a quarter")
	return p, &now
}

// slack is what being drawn to others may change.
const slack = 0.25

func TestPollsAreStretchedToThreeQuartersOfWhatWasTooMuch(t *testing.T) {
	t.Parallel()
	crowded(t)
}

func TestWhatIsNotSlowForATenthIsNotTooMuch(t *testing.T) {
	t.Parallel()
	p, now := &Polls{}, noon
	for range 60 {
		require.EqualValues(t, 1, p.second(&now, 1000, 0.099, 5*time.Second, 5*time.Second))
	}
}

func TestTheStretchFollowsThoseInTheBooks(t *testing.T) {
	t.Parallel()
	p, now := crowded(t)
	for range 20 {
		require.InEpsilon(t, 2/0.75, p.second(now, 1000, 0, 5*time.Second, 10*time.Second), slack, "as many ask as before")
	}
	for left := 9; left >= 0; left-- { // of ten seconds nobody is told to come back
		want := max(1, 0.2/0.75*float64(left))
		require.InEpsilon(t, want, p.second(now, 1000, 0, 0, 0), slack, "with appointments of %d s", left)
	}
}

func TestNothingIsStretchedBeyondTheMost(t *testing.T) {
	t.Parallel()
	p, now := crowded(t)
	for range 20 {
		p.second(now, 100, 1, 5*time.Second, 25*time.Second)
	}
	for range 20 { // ten times as many as can be borne
		p.second(now, 1000, 0, 5*time.Second, 25*time.Second)
	}
	require.EqualValues(t, MostStretch, p.Stretch())
	require.Equal(t, LongestPoll, Stretched(PollInterval(1<<40), p.Stretch()), "and that is the longest poll")
}

func TestASecondThatStandsStillIsNotWhatCanBeBorne(t *testing.T) {
	t.Parallel()
	p, now := crowded(t)
	p.second(now, 1, 1, 5*time.Second, 10*time.Second)
	require.Less(t, p.second(now, 1, 1, 5*time.Second, 10*time.Second), 4.0, "one answer in a second, of a Redis that stood still")
}

func TestWhatCanBeBorneGrowsAfterFiveCalmMinutes(t *testing.T) {
	t.Parallel()
	p, now := crowded(t)
	bearable := func() float64 { return p.tempo.bearable }
	minute := func(slow float64) {
		for range 60 {
			p.second(now, 100, slow, 5*time.Second, 10*time.Second)
		}
	}
	for range 5 {
		minute(0)
	}
	require.InEpsilon(t, 750, bearable(), 0.001, "five minutes of calm")
	p.tempo.bearable = 150
	minute(0.05)
	require.InEpsilon(t, 150, bearable(), 0.01, "calm it is not while some are slow")
	minute(0)
	require.InEpsilon(t, 150*1.05, bearable(), 0.01)
	minute(0)
	require.InEpsilon(t, 150*1.05*1.05, bearable(), 0.01)
	for range 20 {
		minute(0)
	}
	require.Zero(t, bearable(), "it has never been too much again")
	require.EqualValues(t, 1, p.Stretch())
}

// Processes that one crowd asks alike do not drift apart, although one has learned
// that it bears less.
func TestTheStretchIsDrawnToWhatAnswersAloneSuggest(t *testing.T) {
	t.Parallel()
	end := func(bearable float64) float64 {
		p, now := &Polls{tempo: tempo{bearable: bearable, calm: -time.Hour}}, noon
		stretch := 1.0
		for range 1200 {
			next := time.Duration(stretch * float64(5*time.Second))
			stretch = p.second(&now, 100, 0, 5*time.Second, next)
		}
		return stretch
	}
	less, more := end(99), end(101)
	require.Greater(t, less, more)
	require.Less(t, less, 1.6*more, "by its books alone one would go to the most, and the other to none")
	require.Greater(t, more, 1.5)
	require.Less(t, less, 4.5)
}

func TestAStepThatComesLateKeepsTheBooks(t *testing.T) {
	t.Parallel()
	p, now := crowded(t)
	*now = now.Add(5 * time.Second)
	require.InEpsilon(t, 1/0.75, p.Step(*now), slack, "half of the appointments are over")
	*now = now.Add(time.Hour)
	require.EqualValues(t, 1, p.Step(*now))
	*now = now.Add(-time.Hour)
	p.Step(*now)
	require.GreaterOrEqual(t, p.Stretch(), 1.0, "whatever a clock does")
}

// BenchmarkAnswered is what a poll costs beside its answer.
func BenchmarkAnswered(b *testing.B) {
	p := &Polls{}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			began := time.Now()
			_ = p.Stretch()
			p.Answered(time.Now(), 5*time.Second, 10*time.Second)
			p.Took(time.Since(began))
		}
	})
}
