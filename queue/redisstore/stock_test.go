package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// shop is a room bound by a product whose stock a test keeps, as Postgres would.
type shop struct {
	*fixture
	left    int64 // in stock
	heard   int64 // consumed, as the scheduler has last heard
	pending []queue.Spent
}

func openShop(t *testing.T, left int64, change ...func(*queue.Rules)) *shop {
	t.Helper()
	bound := func(r *queue.Rules) { r.Stock, r.Overbook = "demo", 1000 }
	return &shop{fixture: setup(t, append([]func(*queue.Rules){bound}, change...)...), left: left}
}

// read is what a scheduler reads in Postgres, with what it has heard before.
func (s *shop) read() *queue.StockReading {
	return &queue.StockReading{SKU: "demo", Left: s.left, Consumed: s.heard}
}

// tell reserves with a reading; nil is none.
func (s *shop) tell(reading *queue.StockReading) queue.Reservation {
	s.Helper()
	s.step.Seq++
	r, err := s.Reserve(s.Context(), s.room, s.step, queue.Take{Keep: s.step.Seq, Effective: s.life.Rules.Batch, Max: 500, Stock: reading})
	require.NoError(s, err)
	s.heard = r.Consumed
	return r
}

// let lets people in by a reading: who they are.
func (s *shop) let(reading *queue.StockReading) []string {
	s.Helper()
	return s.grantAll(s.tell(reading))
}

// order commits an order of one piece by a member with a grant. The room hears
// of it with deliver.
func (s *shop) order(members ...string) {
	s.Helper()
	for _, m := range members {
		g := s.pickUp(m)
		require.NoError(s, s.Claim(s.Context(), g, "c-"+m, time.Hour))
		require.Positive(s, s.left, "%s holds a grant and is told sold-out", m)
		s.left--
		s.pending = append(s.pending, queue.Spent{Member: m, Grant: g.ID, Order: "o-" + m})
	}
}

func (s *shop) deliver() {
	s.Helper()
	words, err := s.Consume(s.Context(), s.room, s.pending)
	require.NoError(s, err)
	require.Len(s, words, len(s.pending))
	s.pending = nil
}

func (s *shop) state() queue.RoomState { return s.snap().State(s.clock) }

func TestStockBoundsWhoIsLetIn(t *testing.T) {
	s := openShop(t, 7)
	s.enterMany(0, 20)
	in := s.let(s.read())
	require.Len(t, in, 7, "as many as there are pieces")
	s.pass(time.Second)
	require.Empty(t, s.let(s.read()), "each of them may still order")
	require.Equal(t, queue.Open, s.state(), "there is something left, and somebody is about to order it")

	s.order(in[:3]...)
	s.deliver()
	s.tell(nil) // hears of them
	require.Empty(t, s.let(s.read()))
	_, err := s.Leave(t.Context(), s.room, in[6], 0, queue.OutcomeLeft)
	require.NoError(t, err)
	require.Equal(t, []string{"m00007"}, s.let(s.read()), "what one lets go is for the next")
	s.conserved()
}

func TestWhatIsConsumedAfterAReadingIsSubtractedFromIt(t *testing.T) {
	s := openShop(t, 5)
	s.enterMany(0, 20)
	in := s.let(s.read())
	s.pass(time.Second)
	s.order(in...)
	s.deliver()
	require.Empty(t, s.tell(nil).Taken, "the reading says 5 and nobody is inside; 5 have been consumed since")
}

func TestWhoIsTakenAndNotYetGrantedCounts(t *testing.T) {
	s := openShop(t, 5)
	s.enterMany(0, 20)
	require.Len(t, s.tell(s.read()).Taken, 5)
	s.pass(time.Second)
	s.step.Seq++
	r, err := s.Reserve(t.Context(), s.room, s.step, queue.Take{Keep: 1, Effective: 50, Max: 500, Stock: s.read()})
	require.NoError(t, err)
	require.Empty(t, r.Taken, "the five are still processing")
}

func TestAStepOfTheClockBackEndsAReading(t *testing.T) {
	s := openShop(t, 5)
	s.tell(s.read())
	s.pass(-2 * time.Minute)
	s.enterMany(0, 20)
	require.Empty(t, s.reserve().Taken, "nobody knows how old it is")
	require.Len(t, s.tell(s.read()).Taken, 5)
}

// The reading has the order, and its grant is still inside: it counts twice, so
// that fewer are let in than could be, and never more.
func TestAnOrderNotYetConsumedCountsTwiceUntilTheNextReading(t *testing.T) {
	s := openShop(t, 3)
	s.enterMany(0, 20)
	in := s.let(s.read())
	s.pass(time.Second)
	s.order(in[0])
	leave := func(m string) {
		_, err := s.Leave(t.Context(), s.room, m, 0, queue.OutcomeLeft)
		require.NoError(t, err)
	}
	leave(in[1]) // one of two pieces is free
	reading := s.read()
	require.Empty(t, s.let(reading), "2 - (ordered, not consumed) - 1 inside")
	s.deliver()
	require.Empty(t, s.tell(nil).Taken, "2 - (consumed since the reading) - 1 inside")
	require.Len(t, s.let(s.read()), 1, "2 - 1 inside")
}

func TestAnOrderOfAGrantThatHadExpiredIsSubtractedToo(t *testing.T) {
	s := openShop(t, 2)
	s.enterMany(0, 20)
	in := s.let(s.read())
	g := s.pickUp(in[0])
	require.NoError(t, s.Claim(t.Context(), g, "c", time.Second))
	s.left-- // the commit comes while the claim is live, and nobody has heard of it yet
	s.keepHearing(400*time.Second, "m00002", "m00003")
	s.reap()
	require.Equal(t, queue.OutcomeExpired, s.standing(in[0]).Outcome)
	reading := &queue.StockReading{SKU: "demo", Left: 2, Consumed: 0} // of before the commit
	_, err := s.Consume(t.Context(), s.room, []queue.Spent{{Member: in[0], Grant: g.ID, Order: "o"}})
	require.NoError(t, err)
	require.EqualValues(t, 1, s.tell(nil).Consumed, "it is consumed late, and counted")
	require.Len(t, s.let(reading), 1, "2 - 1 consumed since")
}

func TestOverbookingLetsInAsManyMoreRoundedDown(t *testing.T) {
	for overbook, want := range map[int]int{1000: 7, 1142: 7, 1143: 8, 1200: 8, 1999: 13, 2000: 14} {
		t.Run(fmt.Sprint(overbook), func(t *testing.T) {
			s := openShop(t, 7, func(r *queue.Rules) { r.Overbook = overbook })
			s.enterMany(0, 20)
			require.Len(t, s.let(s.read()), want)
		})
	}
}

func TestTheLeastOfRateCapacityAndStockBounds(t *testing.T) {
	for name, c := range map[string]struct {
		batch, capacity int
		stock           int64
		want            int
	}{"rate": {3, 10, 10, 3}, "capacity": {10, 4, 10, 4}, "stock": {10, 10, 5, 5}} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, c.stock, func(r *queue.Rules) { r.Batch, r.Capacity = c.batch, c.capacity })
			s.enterMany(0, 20)
			require.Len(t, s.let(s.read()), c.want)
		})
	}
}

func TestWithoutAReadingThatCountsNobodyIsLetIn(t *testing.T) {
	s := openShop(t, 5)
	s.enterMany(0, 20)
	require.Empty(t, s.tell(nil).Taken, "none yet")
	require.Empty(t, s.tell(&queue.StockReading{SKU: "other", Left: 5}).Taken, "of another product")
	require.Empty(t, s.tell(&queue.StockReading{SKU: "demo", Left: 5, Consumed: 1}).Taken,
		"it has counted more than the room remembers: Redis has lost something")
	require.Len(t, s.let(s.read()), 5)

	for _, m := range []string{"m00000", "m00001"} {
		_, err := s.Leave(t.Context(), s.room, m, 0, queue.OutcomeLeft)
		require.NoError(t, err)
	}
	s.pass(10 * time.Second)
	r := s.reserve()
	require.Len(t, r.Taken, 2, "ten seconds old")
	s.grantAll(r)
	_, err := s.Leave(t.Context(), s.room, "m00002", 0, queue.OutcomeLeft)
	require.NoError(t, err)
	s.pass(time.Microsecond)
	require.Empty(t, s.reserve().Taken, "older")

	s.life.Generation++
	require.NoError(t, s.Create(t.Context(), s.life))
	s.step = queue.Step{Generation: s.life.Generation, Term: 2, Leader: "a"}
	s.enter("ann")
	s.pass(time.Second)
	require.Empty(t, s.reserve().Taken, "a new generation knows no reading")
}

func TestARoomThatChangesItsProductForgetsTheReadingOfTheOld(t *testing.T) {
	s := openShop(t, 0)
	s.enterMany(0, 3)
	s.tell(s.read())
	require.Equal(t, queue.SoldOut, s.state())
	s.life.Version, s.life.Rules.Stock = 2, "new"
	require.NoError(t, s.Update(t.Context(), s.life))
	require.Equal(t, queue.Open, s.state(), "nobody knows yet")
	require.Empty(t, s.reserve().Taken)
	s.life.Version, s.life.Rules.Stock, s.life.Rules.Overbook = 3, "", 0
	require.NoError(t, s.Update(t.Context(), s.life))
	require.Len(t, s.reserve().Taken, 3, "no product bounds it now")
}

func TestASoldOutRoomTakesNobodyNewKeepsPlacesAndOpensAgain(t *testing.T) {
	s := openShop(t, 2, func(r *queue.Rules) { r.OneOrder = true })
	s.enterMany(0, 5)
	in := s.let(s.read())
	s.tell(s.read())
	require.Equal(t, queue.Open, s.state(), "2 left and 2 about to order them: not sold out")
	s.enter("late")

	s.order(in[0])
	s.left-- // another room sells the last piece
	s.deliver()
	s.pass(time.Second)
	r := s.tell(s.read())
	require.Empty(t, r.Taken)
	require.Equal(t, time.Second, r.Wait, "a room with nothing to sell is asked seldom")
	require.Equal(t, queue.SoldOut, s.state())
	before := s.dump()
	_, err := s.Enter(t.Context(), s.room, "zoe", 0)
	require.ErrorIs(t, err, queue.ErrSoldOut)
	require.Equal(t, before, s.dump(), "refused, and nothing changed")
	_, err = s.Enter(t.Context(), s.room, in[0], 0)
	require.ErrorIs(t, err, queue.ErrOrdered, "who has ordered is told that")
	st, err := s.Enter(t.Context(), s.room, "m00003", 0)
	require.NoError(t, err, "who has a place keeps it")
	require.Equal(t, queue.Waiting, st.Status)
	st, err = s.Enter(t.Context(), s.room, in[1], 0)
	require.NoError(t, err)
	require.Equal(t, queue.Ready, st.Status, "who has a grant keeps it")
	require.NoError(t, s.Claim(t.Context(), s.pickUp(in[1]), "c", time.Minute), "and may still try")

	s.left = 3
	s.pass(time.Second)
	require.Equal(t, []string{"m00002", "m00003"}, s.let(s.read()), "stock put back opens it: 3, of which one is being ordered")
	require.Equal(t, queue.Open, s.state())
	s.enter("zoe")
}

func TestSoldOutStandsBehindTheScheduleAndBeforePauseAndDrain(t *testing.T) {
	s := openShop(t, 0)
	s.tell(s.read())
	version := int64(1)
	for _, c := range []struct {
		change func(*queue.Rules)
		state  queue.RoomState
		enter  error
	}{
		{func(*queue.Rules) {}, queue.SoldOut, queue.ErrSoldOut},
		{func(r *queue.Rules) { r.Paused = true }, queue.SoldOut, queue.ErrSoldOut},
		{func(r *queue.Rules) { r.Draining = true }, queue.SoldOut, queue.ErrClosed},
		{func(r *queue.Rules) { r.OpensAt = s.clock.Add(time.Hour) }, queue.NotOpen, queue.ErrNotOpen},
		{func(r *queue.Rules) { r.ClosesAt = s.clock }, queue.Closed, queue.ErrClosed},
		{func(r *queue.Rules) { r.AdmitsAt = s.clock.Add(time.Hour) }, queue.PreQueue, nil},
		{func(r *queue.Rules) { r.AdmitsAt, r.Paused = s.clock.Add(time.Hour), true }, queue.Paused, nil},
		{func(r *queue.Rules) { r.AdmitsAt = s.clock }, queue.SoldOut, queue.ErrSoldOut},
	} {
		life := s.life
		version++
		life.Version = version
		c.change(&life.Rules)
		require.NoError(t, s.Update(t.Context(), life))
		require.Equal(t, c.state, s.state())
		_, err := s.Enter(t.Context(), s.room, fmt.Sprint("m", version), 0)
		require.ErrorIs(t, err, c.enter, "%s", c.state)
	}
}

func TestMalformedReadingsChangeNothing(t *testing.T) {
	s := openShop(t, 1)
	s.enter("ann")
	before := s.dump()
	for _, bad := range []queue.StockReading{{SKU: "a b", Left: 1}, {SKU: "demo", Left: -1}, {SKU: "demo", Consumed: -1}} {
		s.step.Seq++
		_, err := s.Reserve(t.Context(), s.room, s.step, queue.Take{Keep: 1, Effective: 50, Max: 500, Stock: &bad})
		require.Error(t, err)
		require.Equal(t, before, s.dump())
	}
}
