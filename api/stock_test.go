package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// boundBy has a product bound who is let into the room.
func boundBy(sku string) func(*plan) {
	return settings(func(s *room.Settings) { s.Stock = &sku })
}

// tell has the room hear what is left of its product, as a scheduler does, and
// lets in whom it allows.
func (f *fixture) tell() int {
	f.t.Helper()
	f.step.Seq++
	heard, err := f.line.Reserve(f.t.Context(), f.room, f.step, queue.Take{Keep: f.step.Seq, Effective: 50, Max: 500})
	require.NoError(f.t, err)
	require.Empty(f.t, heard.Taken)
	life := f.written()
	f.step.Seq++
	r, err := f.line.Reserve(f.t.Context(), f.room, f.step, queue.Take{Keep: f.step.Seq, Effective: 50, Max: 500,
		Stock: &queue.StockReading{SKU: life.Rules.Stock, Left: life.StockLeft, Consumed: heard.Consumed}})
	require.NoError(f.t, err)
	if len(r.Taken) > 0 {
		f.issue(r.Taken)
	}
	return len(r.Taken)
}

func TestASoldOutRoomIsToldToEverybodyAndOpensAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t, boundBy("b")) // one piece
	ann, bob := f.enter(), f.enter()
	require.Equal(t, 1, f.tell())
	require.Equal(t, 0, f.tell(), "the one piece is spoken for")
	entry := *f.poll(ann).EntryToken
	waiting := f.serve().poll(bob)
	require.Equal(t, queue.Open, waiting.RoomState, "and not ordered yet")
	cyd := f.serve().enter()

	f.order(`[{"sku":"b","quantity":1}]`, token(entry)).is(http.StatusCreated)
	require.Equal(t, 0, f.tell())
	for _, who := range []string{bob, cyd} {
		p := f.serve().poll(who)
		require.Equal(t, queue.SoldOut, p.RoomState)
		require.Equal(t, queue.Waiting, p.Status, "they keep their places")
		require.NotNil(t, p.Rank)
		require.Nil(t, p.EstimatedWaitSeconds)
		require.Nil(t, p.EstimatedWaitRange)
	}
	site := f.serve()
	status, _ := site.status(f.room)
	require.Equal(t, queue.SoldOut, status.RoomState)
	site.post().refused(http.StatusForbidden, "room-sold-out")
	require.Equal(t, queue.Waiting, site.post(ticket(bob)).is(http.StatusOK).position().Status)
	f.order(`[{"sku":"b","quantity":1}]`, token(entry)).is(http.StatusOK) // a repeat gets the order there is

	_, _, err := f.rooms.PutProduct(t.Context(), room.Product{SKU: "b", Stock: 3, PriceCents: 1000, Currency: "USD"}, 0, operator)
	require.NoError(t, err)
	f.pass(time.Second)
	require.Equal(t, 2, f.tell(), "the first who waited are let in")
	site = f.serve()
	require.Equal(t, queue.Ready, site.poll(bob).Status)
	site.enter()
	status, _ = site.status(f.room)
	require.Equal(t, queue.Open, status.RoomState)
}

// Somebody who has a grant when the room sells out may still try, and if a piece
// comes back, finds it.
func TestAGrantInHandOutlivesSellingOut(t *testing.T) {
	t.Parallel()
	f := setUp(t, boundBy("b"))
	ann := f.enter()
	require.Equal(t, 1, f.tell())
	put := func(stock int64) {
		_, _, err := f.rooms.PutProduct(t.Context(), room.Product{SKU: "b", Stock: stock, PriceCents: 1000, Currency: "USD"}, 0, operator)
		require.NoError(t, err)
		require.Equal(t, 0, f.tell())
	}
	put(0)
	p := f.serve().poll(ann)
	require.Equal(t, queue.SoldOut, p.RoomState)
	require.Equal(t, queue.Ready, p.Status)
	f.order(`[{"sku":"b","quantity":1}]`, token(*p.EntryToken)).refused(http.StatusConflict, "sold-out")
	put(1)
	f.order(`[{"sku":"b","quantity":1}]`, token(*p.EntryToken)).is(http.StatusCreated)
}
