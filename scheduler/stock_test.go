package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/scheduler"
)

// bind bounds a room of the stage by a stock.
func (s *stage) bind(room, sku string, left int64) {
	s.edit(room, func(l *queue.Life) { l.Rules.Stock, l.Rules.Overbook, l.StockLeft = sku, 1000, left })
}

// readings are those that rooms were told, in order.
func (s *stage) readings(room string) (told []queue.StockReading) {
	for _, c := range s.made("reserve", room) {
		if c.take.Stock != nil {
			told = append(told, *c.take.Stock)
		}
	}
	return told
}

// counting has every reserve answer that one grant more has been consumed.
func (s *stage) counting(wait time.Duration) {
	consumed := int64(0)
	s.reserve = func(string, queue.Step) (queue.Reservation, error) {
		consumed++
		return queue.Reservation{Wait: wait, Consumed: consumed}, nil
	}
}

// What is heard while a reading is under way may count orders that the reading
// still has in stock: subtracting from there would let too many in.
func TestAReadingOfStockGoesWithWhatWasHeardBeforeIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.bind("a", "demo", 40)
		s.counting(100 * time.Millisecond)
		s.slow = 350 * time.Millisecond
		s.run("only")
		s.after(5 * time.Second)
		reads := s.made("lives", "")
		reserves := s.made("reserve", "a")
		heardBy := func(at time.Time) (n int64) {
			for _, c := range reserves {
				if c.at.Before(at) {
					n++
				}
			}
			return n
		}
		told := s.readings("a")
		require.Greater(t, len(told), 4)
		pairs := map[int64]bool{} // what had been heard when a reading began
		for _, c := range reads {
			pairs[heardBy(c.at)] = true
		}
		for _, r := range told {
			require.True(t, pairs[r.Consumed], "%d was heard when no reading began", r.Consumed)
			require.Equal(t, queue.StockReading{SKU: "demo", Left: 40, Consumed: r.Consumed}, r)
		}
	})
}

func TestANewLeaderTellsAReadingAtOnceAfterTheFirstAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b", "free")
		s.bind("a", "demo", 40)
		s.bind("b", "rare", 3)
		s.counting(time.Second)
		s.run("only")
		s.after(100 * time.Millisecond)
		require.Len(t, s.readings("a"), 1, "without waiting for the next second")
		require.Len(t, s.readings("b"), 1)
		require.Nil(t, s.made("reserve", "a")[0].take.Stock, "nothing had been heard of the room before")
		s.after(10 * time.Second)
		require.Empty(t, s.readings("free"))
		require.Less(t, len(s.made("lives", "")), 26, "and twice a second after that")
	})
}

func TestAReadingIsToldOnceAndAgainOnlyWhereNobodyKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.bind("a", "demo", 40)
		s.counting(20 * time.Millisecond)
		s.run("only")
		s.after(2 * time.Second)
		s.forget()
		s.after(10 * time.Second)
		require.InDelta(t, len(s.made("lives", "")), len(s.readings("a")), 1, "each once, of some 500 calls")

		answer := s.reserve
		s.change(func() {
			s.reserve = func(string, queue.Step) (queue.Reservation, error) { return queue.Reservation{}, queue.ErrUnavailable }
		})
		s.after(time.Second)
		s.forget()
		s.after(time.Second)
		told := s.readings("a")
		require.NotEmpty(t, told, "a call that failed may not have arrived")
		s.change(func() { s.reserve, s.read = answer, func() error { return queue.ErrUnavailable } })
		s.after(3 * time.Second)
		s.forget()
		s.after(3 * time.Second)
		require.Empty(t, s.readings("a"), "nobody can read, so nothing new is told")
	})
}

func TestAReadingThatCouldNotBeToldForTwoSecondsIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.bind("a", "demo", 40)
		s.counting(20 * time.Millisecond)
		s.run("only")
		s.after(2 * time.Second)
		answer := s.reserve
		s.change(func() {
			s.read = func() error { return queue.ErrUnavailable }
			s.reserve = func(string, queue.Step) (queue.Reservation, error) { return queue.Reservation{}, queue.ErrUnavailable }
		})
		s.after(4 * time.Second)
		s.forget()
		s.change(func() { s.reserve = answer })
		s.after(4 * time.Second)
		require.NotEmpty(t, s.made("reserve", "a"))
		require.Empty(t, s.readings("a"))
	})
}

func TestAReadingOfAnotherGenerationIsNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.bind("a", "demo", 40)
		s.counting(time.Second)
		s.run("only")
		s.after(2 * time.Second)
		s.edit("a", func(l *queue.Life) { l.Generation = 15 })
		s.change(func() { s.inRedis["a"] = s.lives["a"] })
		s.forget()
		s.after(2 * time.Second)
		for i, c := range s.made("reserve", "a") {
			if c.step.Generation == 15 {
				require.Nil(t, c.take.Stock, "call %d: nothing has been heard of this generation yet", i)
				break
			}
		}
		require.NotEmpty(t, s.readings("a"))
	})
}

func TestARoomThatSellsOutOrSellsAgainIsTickedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.bind("a", "demo", 40)
		s.counting(time.Second)
		s.run("only")
		s.after(5 * time.Second)
		for _, left := range []int64{0, 7, 0} {
			s.bind("a", "demo", left)
			s.after(520 * time.Millisecond)
			told := s.readings("a")
			require.Equal(t, left, told[len(told)-1].Left, "the room sleeps for a second, and was told at once")
			s.after(3 * time.Second)
		}
	})
}

// stocked has the room be bound by a product of so many pieces.
func (h *house) stocked(left int64) {
	h.Helper()
	h.put(left)
	_, err := h.books.Update(h.Context(), theRoom, 0, func(s room.Settings) (room.Settings, error) {
		sku := "demo"
		s.Stock = &sku
		return s, nil
	}, operator)
	require.NoError(h, err)
}

func (h *house) put(left int64) {
	h.Helper()
	_, _, err := h.books.PutProduct(h.Context(), room.Product{SKU: "demo", Stock: left, PriceCents: 100, Currency: "EUR"}, 0, operator)
	require.NoError(h, err)
}

func TestStockIsReadFromPostgresAndPutBackOpensTheRoomByItself(t *testing.T) {
	for name, change := range map[string]func(*scheduler.Config){
		"lock on":  func(*scheduler.Config) {},
		"lock off": withoutLock,
	} {
		t.Run(name, func(t *testing.T) {
			h := setup(t, rate(50, 200*time.Millisecond))
			h.stocked(12)
			h.open()
			h.enter(40)
			for _, leader := range []string{"x", "y"} {
				h.run(leader, change)
			}
			h.eventually(3*time.Second, "as many as there are pieces are let through", func() bool { return h.admitted() == 12 })
			time.Sleep(700 * time.Millisecond)
			require.EqualValues(t, 12, h.admitted(), "and no more")
			state := func() queue.RoomState { s := h.snapshot(); return s.State(s.Now) }
			require.Equal(t, queue.Open, state())
			h.put(0)
			h.eventually(1200*time.Millisecond, "it is sold out", func() bool { return state() == queue.SoldOut })
			h.put(15)
			h.eventually(1200*time.Millisecond, "it sells again, by itself", func() bool { return state() == queue.Open && h.admitted() == 15 })

			_, err := h.db.Exec(t.Context(), `DELETE FROM products`)
			require.NoError(t, err)
			h.eventually(1200*time.Millisecond, "a product that is gone is sold out", func() bool { return state() == queue.SoldOut })
		})
	}
}
