package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// The tests of this file try what has gone wrong in other shops. Each names the
// public report that it follows, if there is one.

// patiently serves orders that may wait for a connection as long as it takes: a
// busy test machine is no finding.
func patiently(f *fixture) func(*api.Options) {
	return func(o *api.Options) {
		o.Orders = order.New(f.line, orderstore.New(f.db, orderstore.Options{AcquireTimeout: time.Minute}), order.Options{})
	}
}

// lineOf puts n members in line without asking over HTTP; the tickets are those
// that they would have got.
func (f *fixture) lineOf(n int) (members, tickets []string) {
	f.t.Helper()
	for i := range n {
		m := fmt.Sprintf("m%05d", i)
		st, err := f.line.Enter(f.t.Context(), f.room, m, 0)
		require.NoError(f.t, err)
		text, err := f.ring.SignTicket(credential.Ticket{Room: f.room, Sale: st.Sale, Generation: st.Generation, Member: m,
			Place: st.Place, IssuedAt: f.now()})
		require.NoError(f.t, err)
		members, tickets = append(members, m), append(tickets, text.Reveal())
	}
	return members, tickets
}

// admit lets everybody in line through, and returns the tokens of these members.
func (f *fixture) admit(members []string) (grants []queue.Grant, tokens []string) {
	f.t.Helper()
	for left := len(members); left > 0; f.pass(time.Second) {
		left -= f.tick()
	}
	for _, m := range members {
		st, err := f.line.Standing(f.t.Context(), f.room, m)
		require.NoError(f.t, err)
		g, err := f.line.PickUp(f.t.Context(), st.Grant, f.ring.SigningKeyID())
		require.NoError(f.t, err)
		text, err := f.ring.SignGrant(g)
		require.NoError(f.t, err)
		grants, tokens = append(grants, g), append(tokens, text.Reveal())
	}
	return grants, tokens
}

// together sends n orders at the same moment, and returns the answers.
func (s *site) together(n int, items string, shown func(i int) []with) []answer {
	s.t.Helper()
	answers, errs := make([]answer, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			answers[i], errs[i] = s.try(s.t.Context(), "POST", "/v1/orders", append(shown(i), body(`{"items":`+items+`}`))...)
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(s.t, err)
	}
	return answers
}

// Case 15, SandeepVashishtha/Eventra#5431: ten pieces and two hundred who are
// let through, all at once. Whoever comes too late may still buy something else.
func TestCase15TenPiecesAreSoldTenTimesAndTheOtherTokensStayGood(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.BatchSize = 200 }))
	_, err := f.db.Exec(t.Context(), "UPDATE products SET stock = 10 WHERE sku = 'a'")
	require.NoError(t, err)
	members, _ := f.lineOf(200)
	grants, tokens := f.admit(members)
	site := f.serve(patiently(f))
	sold, stock := 0, 0
	for i, a := range site.together(200, oneA, func(i int) []with { return []with{token(tokens[i])} }) {
		st, err := f.line.Standing(t.Context(), f.room, members[i])
		require.NoError(t, err)
		if a.status == http.StatusCreated {
			sold++
			require.Equal(t, queue.Claimed, st.Status, "until the event has spent the grant")
			continue
		}
		a.refused(http.StatusConflict, "sold-out")
		require.Equal(t, queue.Ready, st.Status)
		require.Equal(t, grants[i], st.Grant, "as good as before, and no longer")
	}
	require.Equal(t, 10, sold)
	require.NoError(t, f.db.QueryRow(t.Context(), "SELECT stock FROM products WHERE sku = 'a'").Scan(&stock))
	require.Zero(t, stock)
}

// Case 65, idempot-dev/idempot-js#186: whoever loses the race for a key is told
// to wait, or is given the order. It is never a fault of the server.
func TestCase65TwentyWithOneKeyAreOneOrderAndNoServerError(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, entry := f.ready()
	site := f.serve(patiently(f))
	shown := []with{token(entry), key("basket-1")}
	ids, created := map[string]bool{}, 0
	for _, a := range site.together(20, oneA, func(int) []with { return slices.Clone(shown) }) {
		switch a.status {
		case http.StatusCreated:
			created++
			ids[a.order().ID] = true
		case http.StatusOK:
			require.Equal(t, "true", a.header.Get("Idempotency-Replayed"))
			ids[a.order().ID] = true
		default:
			a.refused(http.StatusConflict, "order-in-progress")
			require.NotEmpty(t, a.header.Get("Retry-After"))
		}
	}
	require.Equal(t, 1, created)
	require.Len(t, ids, 1)
	require.True(t, ids[site.order(oneA, shown...).is(http.StatusOK).order().ID], "and whoever waited finds it")
}

// An order that was placed in time and whose answer was lost is found by the
// same token one second after its end. So is one whose event has been consumed.
func TestARetryOneSecondAfterTheExpiryIsAnsweredWithTheOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	_, unused := f.ready()
	g := f.grant(entry)
	f.pass(g.Expiry.Sub(f.now()) - time.Second)
	first := f.order(oneA, token(entry)).is(http.StatusCreated).order()
	require.Equal(t, first, f.order(oneA, token(entry)).is(http.StatusOK).order(), "at once, before the event has spent the grant")

	f.pass(2 * time.Second)
	require.Equal(t, time.Second, f.now().Sub(g.Expiry))
	require.Equal(t, first, f.order(oneA, token(entry)).is(http.StatusOK).order(), "while the claim is still held")
	f.pass(f.life.Rules.ClaimLease)
	require.Equal(t, of(queue.OutcomeExpired), f.serve().poll(ann).LastOutcome)
	require.Equal(t, first, f.order(oneA, token(entry)).is(http.StatusOK).order(), "and when it is not")
	f.order(oneA, token(unused)).refused(http.StatusUnauthorized, "entry-token-invalid")

	spent := []queue.Spent{{Member: g.Member, Grant: g.ID, Order: first.ID}}
	_, err := f.line.Consume(t.Context(), f.room, spent) // the relay is late
	require.NoError(t, err)
	require.Equal(t, queue.Consumed, f.serve().poll(ann).Status)
	require.Equal(t, first, f.order(oneA, token(entry)).is(http.StatusOK).order())
	f.pass(f.life.Rules.DoneTTL)
	p := f.serve().poll(ann)
	require.Equal(t, queue.NotEntered, p.Status)
	require.Equal(t, of(queue.OutcomeConsumed), p.LastOutcome)
}

// Redis loses everything while a thousand wait, who each poll every half minute.
// A handful are slow and come back when others are let through already: they
// alone can have been passed.
func TestAThousandPollersComeBackInOrderWithinTheSettlingTime(t *testing.T) {
	t.Parallel()
	const pollers, every, slow, batch = 1000, 30, 10, 20
	f := setUp(t, settings(func(s *room.Settings) { s.BatchSize = batch }))
	_, tickets := f.lineOf(pollers + batch)
	require.Equal(t, batch, f.tick())
	gone, tickets := tickets[:batch], tickets[batch:]
	f.relive()
	site, began := f.serve(), f.now()
	tardy := func(i int) bool { return i%(pollers/slow) == pollers/slow/2 }
	var scores []int64 // of those let through, in this order
	restored := func() int64 {
		s, err := f.line.Snapshot(t.Context(), f.room)
		require.NoError(t, err)
		return s.Counters["restored"]
	}
	for second := 0; len(scores) < pollers && second < 120; second++ {
		settling := f.now().Before(began.Add(f.life.Rules.Settle))
		for i := second % every; i < pollers; i += every {
			if late := tardy(i); settling && !late || late && second >= 2*every && second < 3*every {
				require.Equal(t, queue.Waiting, site.poll(tickets[i]).Status)
			}
		}
		taken := f.reserve()
		require.True(t, !settling || len(taken) == 0, "nobody is let through while places come back")
		if len(taken) > 0 {
			f.issue(taken)
		}
		for _, c := range taken {
			scores = append(scores, c.Place.Score)
		}
		if second == every {
			require.EqualValues(t, pollers-slow, restored(), "everybody who has polled is back after one interval")
		}
		f.pass(time.Second)
	}
	require.Equal(t, queue.NotEntered, site.poll(gone[0]).Status, "a place that has been used does not come back")
	require.EqualValues(t, pollers, restored(), "nobody came back twice")
	require.Len(t, scores, pollers)
	inverted := 0
	for i := 1; i < len(scores); i++ {
		if scores[i] < scores[i-1] {
			inverted++
		}
	}
	require.Positive(t, inverted, "the slow were not passed: this test shows nothing")
	require.LessOrEqual(t, inverted, slow, "somebody who came back in time was passed")
}
