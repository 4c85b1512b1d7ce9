package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// Case 1, aws-solutions/virtual-waiting-room-on-aws#154, in a room bound by
// stock: pieces that wait for people who have gone go to those who are there.
func TestCase1WhoHasGoneHoldsNoPieceOfTheStock(t *testing.T) {
	s := openShop(t, 10)
	s.enterMany(1, 31)
	gone := s.let(s.read())
	require.Len(t, gone, 10)
	s.pass(29 * time.Second)
	require.Empty(t, s.let(s.read()), "they may still come for it")
	s.keepHearing(time.Second)
	in := s.let(s.read())
	require.Equal(t, []string{"m00011", "m00012"}, in[:2], "nobody has fetched the first ten")
	require.Len(t, in, 10)
	s.order(in...)
	s.deliver()
	s.tell(nil)
	require.Empty(t, s.let(s.read()))
	require.Zero(t, s.left, "every piece is sold, and none twice")
	s.reap()
	for _, m := range gone {
		require.True(t, s.away(m), m)
	}
	s.conserved()
}

// Case 2, aws-solutions/virtual-waiting-room-on-aws#208, in a room bound by
// stock: tokens that have expired are nobody inside, before anything has run to
// end them.
func TestCase2ExpiredTokensHoldNoStock(t *testing.T) {
	s := openShop(t, 4)
	s.enterMany(1, 9)
	in := s.let(s.read())
	require.Len(t, in, 4)
	s.order(in[:2]...)
	s.deliver()
	for _, m := range in[2:] {
		s.pickUp(m)
	}
	s.keepHearing(301*time.Second, "m00005", "m00006", "m00007", "m00008")
	s.tell(nil)
	require.Equal(t, []string{"m00005", "m00006"}, s.let(s.read()), "nothing was reaped, and two are free")
}

// Case 4, aws-solutions/virtual-waiting-room-on-aws#265, where stock and capacity
// bound both: an order frees its slot at once, as long as there is stock.
func TestCase4AnOrderFreesItsSlotWhereStockIsLeft(t *testing.T) {
	s := openShop(t, 5, func(r *queue.Rules) { r.Capacity = 2 })
	s.enterMany(1, 9)
	sold := 0
	for range 10 {
		in := s.let(s.read())
		s.order(in...)
		s.deliver()
		s.tell(nil)
		sold += len(in)
		s.pass(time.Second)
	}
	require.Equal(t, 5, sold, "2, 2, 1, and then nobody")
	require.Equal(t, queue.SoldOut, s.state())
}

// Case 8, aws-solutions/virtual-waiting-room-on-aws (assign_queue_num.py): a
// repeated enter keeps the place, also when the room has sold out meanwhile.
func TestCase8EnteringAgainKeepsThePlaceInASoldOutRoom(t *testing.T) {
	s := openShop(t, 0)
	s.enter("ann", "bob")
	before := s.standing("bob")
	s.tell(s.read())
	s.pass(time.Minute)
	again, err := s.Enter(t.Context(), s.room, "bob", 0)
	require.NoError(t, err)
	require.Equal(t, before.Place, again.Place)
	require.EqualValues(t, 2, again.Total)
}
