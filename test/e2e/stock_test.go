package e2e

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// queueUp puts members in line without HTTP, which would take a minute: those
// that come first one by one, so that it is known who they are.
func (w *world) queueUp(first, all int) []*shopper {
	w.t.Helper()
	store := redisstore.New(harness.Redis(w.t), w.prefix)
	members := make([]*shopper, all)
	enter := func(i int) {
		members[i] = w.member(fmt.Sprintf("m%05d", i))
		if _, err := store.Enter(w.t.Context(), room, members[i].member, 0); err != nil {
			w.t.Errorf("enter %d: %v", i, err)
		}
	}
	for i := range first {
		enter(i)
	}
	const hands = 32
	together(hands, func(hand int) {
		for i := first + hand; i < all; i += hands {
			enter(i)
		}
	})
	require.False(w.t, w.t.Failed(), "not everybody could enter")
	return members
}

// Ten thousand wait for a hundred pieces. A hundred are let in, and each of them
// gets one; everybody else learns with the next poll that there is nothing left,
// and keeps the place, which is worth something when there is more.
func TestAHundredPiecesAreAHundredOrdersAndEverybodyElseIsTold(t *testing.T) {
	t.Parallel()
	const pieces, people = 100, 10_000
	w := newWorld(t)
	a, b := w.start(proxied...), w.start(proxied...)
	both := []*process{a, b}
	w.stock("ticket", pieces)
	w.openRoom(room, settings{"stock": "ticket", "paused": true, "batchSize": 100, "intervalMs": 200, "pickupTtlSeconds": 120})
	members := w.queueUp(pieces+3, people)
	w.do("resume")

	for i := range pieces {
		members[i].until(both[i%2], queue.Ready)
	}
	together(pieces, func(i int) {
		buyer, p := members[i], both[i%2]
		if got := buyer.order(p, "ticket", 1); got.status != http.StatusCreated {
			t.Errorf("%s holds a token and is told %d %s", buyer.member, got.status, got.body)
		}
	})
	sold := time.Now()
	require.False(t, t.Failed())
	require.Equal(t, pieces, w.placed())
	require.Zero(t, sql[int](w, "SELECT stock FROM products WHERE sku = 'ticket'"))

	for i, p := range both {
		harness.Eventually(t, patience, "those who wait are told", func() bool {
			return members[pieces+i].poll(p).is(200).position().RoomState == queue.SoldOut
		})
	}
	told := time.Since(sold)
	t.Logf("told %v after the last order", told.Round(time.Millisecond))
	// A reading of stock, a tick, and the age of a process's view of the room.
	require.Less(t, told, time.Second+slack)
	w.allAreTold(members[pieces:], both)

	w.member("late").enter(a).is(403, "room-sold-out")
	members[people-1].enter(b).is(200)
	w.stock("ticket", 3)
	for i := range 3 {
		members[pieces+i].until(both[i%2], queue.Ready)
	}
	late := w.member("late")
	late.enter(a).is(201)
	harness.Eventually(t, patience, "the room is open again", func() bool {
		return late.poll(a).is(200).position().RoomState == queue.Open
	})
	w.conserved(w.snapshot())
}

// allAreTold polls each once, and wants to hear that the room has sold out.
func (w *world) allAreTold(waiting []*shopper, at []*process) {
	w.t.Helper()
	const hands = 32
	var wrong atomic.Int64
	together(hands, func(hand int) {
		for i := hand; i < len(waiting); i += hands {
			got := waiting[i].poll(at[i%len(at)])
			if got.status != http.StatusOK {
				w.t.Errorf("poll: %d %v %s", got.status, got.err, got.body)
				return
			}
			p := got.position()
			if p.RoomState != queue.SoldOut || p.Status != queue.Waiting || p.Rank == nil || p.EstimatedWaitSeconds != nil {
				wrong.Add(1)
			}
		}
	})
	require.Zero(w.t, wrong.Load(), "of %d who wait, with their next poll", len(waiting))
}
