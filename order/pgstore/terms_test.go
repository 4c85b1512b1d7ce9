package pgstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
)

// unclaimed is a request for which no claim is asked, in room r of sale 3 and
// generation 7.
func unclaimed(g queue.Grant, life time.Duration) order.Request {
	r := of(g, "a")
	r.Unclaimed, r.Grant.Expiry = true, time.Now().Add(life)
	return r
}

func (f *fixture) room() {
	f.t.Helper()
	f.exec(`INSERT INTO rooms (name, settings, sale, generation) VALUES ('r', '{}', 3, 7)`)
}

func TestTermsDecideInTheTransactionOfTheOrder(t *testing.T) {
	t.Parallel()
	open := func(g queue.Grant) queue.Grant { g.Open = true; return g }
	older := func(g queue.Grant) queue.Grant { g.Generation = 6; return g }
	before := func(g queue.Grant) queue.Grant { g.Sale = 2; return g }
	for _, c := range []struct {
		name  string
		grant queue.Grant
		life  time.Duration
		sql   string
		good  bool
	}{
		{"good", grantOf("ann"), time.Minute, "", true},
		{"over", grantOf("ann"), -time.Second, "", false},
		{"of a generation before", older(grantOf("ann")), time.Minute, "", false},
		{"open, of a generation before", open(older(grantOf("ann"))), time.Minute, "", true},
		{"open, of a sale before", open(before(grantOf("ann"))), time.Minute, "", false},
		{"open, over", open(grantOf("ann")), -time.Second, "", false},
		{"evicted from this sale", grantOf("ann"), time.Minute, "INSERT INTO room_exclusions (room, member, kind, sale) VALUES ('r', 'ann', 'evicted', 3)", false},
		{"evicted from a sale before", grantOf("ann"), time.Minute, "INSERT INTO room_exclusions (room, member, kind, sale) VALUES ('r', 'ann', 'evicted', 2)", true},
		{"blocked", open(grantOf("ann")), time.Minute, "INSERT INTO room_exclusions (room, member, kind) VALUES ('r', 'ann', 'blocked')", false},
		{"of a deleted room", grantOf("ann"), time.Minute, "UPDATE rooms SET deleted_at = now()", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.room()
			if c.sql != "" {
				f.exec(c.sql)
			}
			r := unclaimed(c.grant, c.life)
			placed, err := f.orders.Place(t.Context(), r)
			if !c.good {
				require.ErrorIs(t, err, order.ErrTokenInvalid)
				require.Zero(t, f.orderCount())
				require.Equal(t, 1000, f.stock("a"))
				require.Equal(t, 1, f.count("SELECT count(*) FROM orders WHERE void"), "it is settled for ever")
				require.Zero(t, f.count("SELECT count(*) FROM outbox"))
				return
			}
			require.NoError(t, err)
			r.Grant.Expiry = time.Now().Add(-time.Minute) // a retry after the end of the token
			again, err := f.orders.Place(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, placed.ID, again.ID)
			require.True(t, again.Replayed)
			require.Equal(t, 1, f.count("SELECT count(*) FROM outbox"))
		})
	}
}

// TestTwoUnclaimedAttemptsWithOneGrantAreOneOrder: with no claim to keep them apart
// the index does.
func TestTwoUnclaimedAttemptsWithOneGrantAreOneOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.room()
	var requests []order.Request
	for range 8 {
		g := grantOf("ann")
		for i := range 6 {
			r := unclaimed(g, time.Minute)
			r.Unclaimed = i%2 == 0 // the others hold a claim that Redis has given them
			requests = append(requests, r)
		}
	}
	for _, a := range f.all(requests) {
		if a.err != nil {
			require.ErrorIs(t, a.err, order.ErrInProgress)
		}
	}
	require.Equal(t, 8, f.orderCount())
	require.Equal(t, 992, f.stock("a"))
	require.Equal(t, 8, f.count("SELECT count(*) FROM outbox"))
}

func TestUnclaimedOrdersAreOneAMemberWhereTheRoomSaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.room()
	var requests []order.Request
	for range 6 {
		r := unclaimed(grantOf("ann"), time.Minute)
		r.Once = true
		requests = append(requests, r)
	}
	require.Equal(t, map[error]int{nil: 1, order.ErrAlreadyOrdered: 5}, tally(f.all(requests), order.ErrAlreadyOrdered))
	require.Equal(t, 1, f.orderCount())
	require.Equal(t, 999, f.stock("a"))
}
