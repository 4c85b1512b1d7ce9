package controller

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/queue"
)

// limits are those of a room of 50 a second.
var limits = Limits{Batch: 50, Interval: time.Second, GrantTTL: 300 * time.Second}

// story is a room whose rounds are told one after the other.
type story struct {
	State
	l    Limits
	owed float64 // part of a member that the next round gets
}

func begin(l Limits) *story { return &story{State: Begin(l), l: l} }

// round is one in which all that was let through ordered, in that band.
func (s *story) round(band int) *story { return s.of(s.full(band)) }

func (s *story) of(r Round) *story {
	s.State = s.Next(r, s.l)
	return s
}

func (s *story) full(band int) Round {
	s.owed += float64(s.Size(s.l)) * RoundLength.Seconds() / s.l.Interval.Seconds()
	n := int64(s.owed)
	s.owed -= float64(n)
	r := Round{Took: RoundLength, Granted: n}
	r.Orders.Done[band] = n
	r.Orders.Delay = time.Duration(n) * 10 * time.Second
	return r
}

func (s *story) failing() Round {
	r := s.full(0)
	r.Orders.Failed, r.Orders.Done = r.Orders.Done[0], [queue.Bands]int64{}
	return r
}

// The four bands, by what they ask for.
const (
	fast = iota
	usual
	slow
	slowest
)

func TestARoomBeginsWithHalfOfTheBatch(t *testing.T) {
	t.Parallel()
	require.Equal(t, 25, Begin(limits).Size(limits))
	require.Equal(t, 1, Begin(Limits{Batch: 1, Interval: time.Second}).Size(limits))
}

func TestFastOrdersRaiseTheBatchToTheOperatorsAndNoFurther(t *testing.T) {
	t.Parallel()
	s := begin(limits)
	for range 400 {
		s.round(fast)
		require.LessOrEqual(t, s.Batch, 50.0)
	}
	require.Equal(t, 50, s.Size(limits))
}

func TestTwoQuietRoundsComeBeforeARise(t *testing.T) {
	t.Parallel()
	s := begin(limits)
	for range 100 {
		s.round(fast) // tried for long: only the quiet rounds are missing
	}
	for _, worse := range []int{usual, slow} {
		s.round(worse)
		before := s.Batch
		require.Equal(t, before, s.round(fast).Batch, "after one quiet round")
	}
	s.l.Batch = 1000
	s.round(usual)
	before := s.Batch
	require.Equal(t, before, s.round(fast).Batch)
	require.Greater(t, s.round(fast).Batch, before)
}

func TestOrdersBetweenTwoAndFiveHundredMillisecondsLeaveTheBatch(t *testing.T) {
	t.Parallel()
	s := begin(limits)
	before := s.Batch
	for range 50 {
		s.round(usual)
	}
	require.Equal(t, before, s.Batch)
	require.Equal(t, Fair, s.Verdict)
}

func TestSlowOrdersCutATenthEachRoundDownToOne(t *testing.T) {
	t.Parallel()
	for _, band := range []int{slow, slowest} {
		s := begin(limits)
		before := s.Batch
		s.round(band)
		require.Equal(t, Bad, s.Verdict)
		require.InDelta(t, 0.92*before, s.Batch, 0.02*before, "somewhat less than what is completed")
		for range 400 {
			s.round(band)
		}
		require.Equal(t, 1, s.Size(limits))
	}
}

func TestACutStopsBelowWhatTheDatabaseCompletes(t *testing.T) {
	t.Parallel()
	s := begin(Limits{Batch: 200, Interval: time.Second})
	jam := Round{Took: RoundLength, Granted: 500}
	jam.Orders.Done[slowest] = 60 * 5 // of a hundred a second
	for range 6 {
		s.of(jam)
	}
	require.InDelta(t, 0.92*60, s.Batch, 0.1)
	for range 10 { // longer than people think, and the queue has not gone down
		s.of(jam)
	}
	require.Less(t, s.Batch, 0.92*60*0.95)
}

func TestHowManyFailDecidesToo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of, failed int64
		want       Verdict
	}{
		{1000, 0, Quiet},
		{1000, 10, Quiet},
		{1000, 11, Fair},
		{1000, 50, Fair},
		{1000, 51, Bad},
		{5, 1, Fair}, // one of few is no reason to cut
		{5, 2, Bad},
		{2, 2, Bad},
		{1, 1, Bad}, // as slow as can be, and all there was
	} {
		r := Round{Took: RoundLength, Granted: c.of}
		r.Orders.Done[fast], r.Orders.Failed = c.of-c.failed, c.failed
		require.Equal(t, c.want, Begin(limits).Next(r, limits).Verdict, "%d of %d", c.failed, c.of)
	}
}

func TestAnOutageLetsOneThroughAtOnce(t *testing.T) {
	t.Parallel()
	warm := func() *story {
		s := begin(limits)
		for range 200 {
			s.round(fast)
		}
		return s
	}
	silence := Round{Took: RoundLength, Granted: 250}
	t.Run("no memory", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, 1, warm().of(Round{Took: RoundLength, Outage: true}).Size(limits))
		require.Equal(t, 1, Restart(limits).Size(limits))
	})
	t.Run("no order", func(t *testing.T) {
		t.Parallel()
		s := warm()
		require.Greater(t, s.of(silence).Size(limits), 40, "one silent round is a pause")
		require.Equal(t, 1, s.of(silence).Size(limits))
	})
	t.Run("all fail", func(t *testing.T) {
		t.Parallel()
		s := warm()
		s.of(s.failing())
		require.Greater(t, s.Size(limits), 40)
		require.Equal(t, 1, s.of(s.failing()).Size(limits))
	})
	t.Run("grants end and nobody has ever ordered", func(t *testing.T) {
		t.Parallel()
		s := begin(limits)
		for range 10 {
			s.of(silence)
		}
		require.Equal(t, 25, s.Size(limits), "people may still be thinking")
		s.of(Round{Took: RoundLength, Granted: 250, Unused: 250})
		require.Equal(t, Out, s.Verdict)
	})
}

func TestAnEmptyLineIsNoOutageAndRaisesNothing(t *testing.T) {
	t.Parallel()
	s := begin(Limits{Batch: 1000, Interval: time.Second})
	for range 50 {
		s.round(fast)
	}
	before := s.Batch
	for range 500 {
		s.of(Round{Took: RoundLength})
	}
	require.Equal(t, before, s.Batch)

	few := Round{Took: RoundLength, Granted: 2}
	few.Orders.Done[fast] = 2
	for range 500 {
		s.of(few)
	}
	require.LessOrEqual(t, s.Batch, before, "a full batch has not been tried")
}

func TestTheWayBackFromAnOutageIsQuickToHalfAndThenAsTried(t *testing.T) {
	t.Parallel()
	s := begin(limits)
	for range 200 {
		s.round(fast)
	}
	s.of(Round{Took: RoundLength, Outage: true})
	rounds := 0
	for ; s.Batch < 25; rounds++ {
		s.round(fast)
	}
	require.Equal(t, quietRounds-1+34, rounds, "a tenth each round: 1.1^34 is above 25")
	for ; s.Batch < 50; rounds++ {
		s.round(fast)
	}
	require.InDelta(t, 90, rounds, 5, "a twentieth each time people have thought")
}

// anyRound draws a round of a room of so many a second.
func anyRound(l Limits) *rapid.Generator[Round] {
	return rapid.Custom(func(t *rapid.T) Round {
		few := func(name string) int64 { return rapid.Int64Range(0, int64(2*l.Batch)).Draw(t, name) }
		r := Round{Took: time.Duration(rapid.Int64Range(1, 10).Draw(t, "seconds")) * time.Second, Granted: few("granted")}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			r.Outage = true
		case 1, 2: // nothing
		default:
			quick := rapid.IntRange(0, 3).Draw(t, "band")
			r.Orders.Done[quick] = few("orders")
			r.Orders.Done[rapid.IntRange(0, 3).Draw(t, "other")] += few("others")
			r.Orders.Failed = few("failed") / 8
			r.Orders.Delay = time.Duration(r.Orders.Attempts()*rapid.Int64Range(1, 100).Draw(t, "delay")) * time.Second
		}
		r.Unused, r.Inside = few("unused"), few("inside")
		return r
	})
}

func anyLimits(t *rapid.T) Limits {
	return Limits{
		Batch:    rapid.IntRange(1, 500).Draw(t, "batch"),
		Interval: time.Duration(rapid.IntRange(1, 20).Draw(t, "interval")) * 500 * time.Millisecond,
		Capacity: rapid.IntRange(0, 300).Draw(t, "capacity"),
		GrantTTL: 300 * time.Second,
	}
}

func TestWhateverHappensTheBatchKeepsItsBoundsAndSteps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := anyLimits(t)
		s, quiet := Begin(l), 0
		for range rapid.IntRange(1, 120).Draw(t, "rounds") {
			next := s.Next(anyRound(l).Draw(t, "round"), l)
			if next.Verdict == Quiet {
				quiet++
			} else if next.Verdict != Idle { // no data are no trouble
				quiet = 0
			}
			switch size := next.Size(l); {
			case next.Batch < 1 || next.Batch > float64(l.Batch) || size < 1 || size > l.Batch:
				t.Fatalf("%v of 1 to %d", next.Batch, l.Batch)
			case next.Verdict == Out && size != 1:
				t.Fatalf("an outage, and %d are let through", size)
			case next.Verdict != Out && (next.Batch > s.Batch*1.1+1e-9 || next.Batch < max(1, s.Batch*0.9)-1e-9):
				t.Fatalf("a step from %v to %v", s.Batch, next.Batch)
			case next.Batch > s.Batch && (quiet < 2 || next.Verdict != Quiet):
				t.Fatalf("%v rises to %v after %d quiet rounds", s.Batch, next.Batch, quiet)
			}
			s = next
		}
	})
}

func TestAWorseRoundNeverLetsMoreThrough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := anyLimits(t)
		s := Begin(l)
		for range rapid.IntRange(0, 60).Draw(t, "rounds") {
			s = s.Next(anyRound(l).Draw(t, "round"), l)
		}
		better := anyRound(l).Draw(t, "last")
		worse := better
		for i := range queue.Bands {
			n := rapid.Int64Range(0, worse.Orders.Done[i]).Draw(t, "worse")
			worse.Orders.Done[i] -= n
			if i+1 < queue.Bands && rapid.Bool().Draw(t, "slower") {
				worse.Orders.Done[i+1] += n
			} else {
				worse.Orders.Failed += n
			}
		}
		if a, b := s.Next(better, l), s.Next(worse, l); b.Batch > a.Batch {
			t.Fatalf("%+v leads to %v, the worse %+v to %v", better.Orders, a.Batch, worse.Orders, b.Batch)
		}
	})
}

func TestFromAnyStateTheBatchFallsAndComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := anyLimits(t)
		l.Capacity = 0
		s := begin(l)
		for range rapid.IntRange(0, 60).Draw(t, "rounds") {
			s.of(anyRound(l).Draw(t, "round"))
		}
		for n := 0; s.Size(l) > 1; n++ {
			if s.round(slowest); n > 1500 {
				t.Fatalf("still %v with every order slow", s.Batch)
			}
		}
		for n := 0; s.Size(l) < l.Batch; n++ {
			if s.round(fast); n > 3000 {
				t.Fatalf("still %v of %d with every order fast: %+v", s.Batch, l.Batch, s.State)
			}
		}
	})
}

func TestTheStateOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	s := begin(limits)
	for i := range 60 {
		s.round(i % 3)
		text, err := json.Marshal(s.State)
		require.NoError(t, err)
		var read State
		require.NoError(t, json.Unmarshal(text, &read))
		require.Equal(t, s.State, read)
	}
}

func TestAnOperatorsSmallerBatchIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	s := begin(limits)
	s.l.Batch = 10
	require.Equal(t, 10, s.Size(s.l))
	require.LessOrEqual(t, s.round(fast).Batch, 10.0)
}

// orders is a round of so many orders in a band.
func orders(n int64, band int) Round {
	r := Round{Took: RoundLength, Granted: n}
	r.Orders.Done[band] = n
	r.Orders.Delay = time.Duration(n) * 10 * time.Second
	return r
}

func TestFewSlowOrdersAreTakenForChance(t *testing.T) {
	t.Parallel()
	verdict := func(n int64) Verdict { return Begin(limits).Next(orders(n, slow), limits).Verdict }
	require.Equal(t, Fair, verdict(2))
	require.Equal(t, Bad, verdict(3))
	r := orders(1, slowest)
	r.Orders.Done[fast] = 2
	require.NotEqual(t, Bad, Begin(limits).Next(r, limits).Verdict)
}

func TestFewOrdersDoNotTellWhatTheDatabaseBears(t *testing.T) {
	t.Parallel()
	s := begin(limits)
	s.of(orders(enough-1, slowest))
	require.Equal(t, 0.9*25, s.Batch, "it is cut")
	require.Zero(t, s.Ceiling)
	require.Equal(t, 25.0, s.Known, "and known ground stays known")
	require.NotZero(t, s.of(orders(enough, slowest)).Ceiling)
}

func TestACeilingThatHoldsIsTriedMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	s := begin(limits)
	for _, want := range []time.Duration{1, 2, 4, 4} {
		s.round(slowest)
		require.Equal(t, want*time.Minute, s.Patience)
		s.round(slowest)
		require.Equal(t, want*time.Minute, s.Patience, "one trouble counts once, however long it lasts")
		for range 3 {
			s.round(fast)
		}
	}
}
