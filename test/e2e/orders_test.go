package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestOnlyTheExactTokenOfThatMemberOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(nil)
	ann, bob := w.shopper(), w.shopper()
	ann.order(a, "demo", 1).is(401, "entry-token-missing")
	ann.admitted(a)
	bob.admitted(b)

	wrong := map[string]string{
		"nonsense":       "nonsense",
		"a queue ticket": ann.ticket,
		"a changed byte": flipped(ann.token),
		"a cut token":    ann.token[:len(ann.token)-2],
		"unsigned":       ann.token[:strings.LastIndex(ann.token, ".")+1],
	}
	for what, token := range wrong {
		forger := &shopper{w: w, t: t, room: room, token: token}
		require.Equal(t, 401, forger.order(a, "demo", 1).is(401, "entry-token-invalid").status, what)
	}
	foreign := http.Header{"X-Entry-Token": {ann.token}, "X-Queue-Ticket": {bob.ticket}}
	w.ask("POST", a.public+"/v1/orders", foreign, orderOf("demo", 1)).is(401, "entry-token-invalid")
	require.Zero(t, w.placed(), "a refused token has placed an order")

	made := ann.order(b, "demo", 1).is(201).order()
	ann.order(a, "demo", 2).is(409, "entry-token-consumed")
	replay := ann.order(a, "demo", 1).is(200)
	require.Equal(t, "true", replay.header.Get("Idempotency-Replayed"))
	require.Equal(t, made, replay.order())
	require.Equal(t, 1, w.placed())
}

// flipped changes one character in the middle of a token's signature.
func flipped(token string) string {
	at := len(token) - 10
	other := byte('A')
	if token[at] == other {
		other = 'B'
	}
	return token[:at] + string(other) + token[at+1:]
}

// The grant is real; the process that signed it has a key that nobody else has.
func TestTokenSignedByAStrangersKeyIsWorthNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start()
	_, keys, _ := tool(t, nil, "keys", "new")
	stranger := w.start("LINEKEEPER_KEYS="+strings.TrimSpace(keys), "LINEKEEPER_ROLES=api")
	w.open(nil)
	ann := w.shopper()
	ann.admitted(stranger)
	ann.order(a, "demo", 1).is(401, "entry-token-invalid")
	ann.poll(a).is(401, "ticket-invalid")
	ann.enter(a).is(401, "ticket-invalid")
	ann.leave(a).is(401, "ticket-invalid")
	require.Zero(t, w.placed())
}

// The shortest token that settings allow lives for 15 s.
func TestTokenEndsAtItsExpiryHoweverOftenItIsPolled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"entryTokenTtlSeconds": 15})
	ann := w.shopper()
	ready := ann.admitted(a)
	expiry := *ready.EntryTokenExpiresAt
	require.LessOrEqual(t, expiry.Sub(ready.ServerTime), 15*time.Second)

	var p spec.Position
	harness.Eventually(t, patience, "the token ends", func() bool {
		if p = ann.poll(b).is(200).position(); p.Status != queue.Ready {
			return true
		}
		require.Equal(t, expiry, *p.EntryTokenExpiresAt, "polling must not lengthen it")
		require.True(t, p.ServerTime.Before(expiry.Add(slack)), "the token outlives its expiry")
		return false
	})
	require.Less(t, expiry.Sub(p.ServerTime), slack, "the token ended long before its expiry")
	gone := ann.poll(a).is(200).position()
	require.Equal(t, queue.NotEntered, gone.Status)
	require.Equal(t, queue.OutcomeExpired, *gone.LastOutcome)
	require.Nil(t, gone.EntryToken)

	expired := ann.order(a, "demo", 1).is(401, "entry-token-invalid")
	forger := &shopper{w: w, t: t, room: room, token: "nonsense"}
	require.Equal(t, forger.order(a, "demo", 1).anonymous(), expired.anonymous(), "the answer must not tell why")
	require.Zero(t, w.placed())

	back := ann.enter(b).is(201).position()
	require.Greater(t, *back.Score, *ready.Score, "who comes back after an expiry stands at the end")
	ann.until(b, queue.Ready)
	ann.order(b, "demo", 1).is(201)
}

func TestSoldOutLeavesTheTokenAsGoodAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(nil)
	w.stock("rare", 1)
	ann, bob := w.shopper(), w.shopper()
	ready := ann.admitted(a)
	bob.admitted(a)
	bob.order(a, "rare", 1).is(201)

	for range 3 {
		ann.order(b, "rare", 1).is(409, "sold-out")
		p := ann.poll(a).is(200).position()
		require.Equal(t, queue.Ready, p.Status, "a failed order must give the token back at once")
		require.Equal(t, *ready.EntryToken, *p.EntryToken)
		require.Equal(t, *ready.EntryTokenExpiresAt, *p.EntryTokenExpiresAt)
	}
	w.stock("rare", 1)
	ann.order(b, "rare", 1).is(201)
	require.Equal(t, 2, w.placed())
	require.Zero(t, sql[int](w, "SELECT stock FROM products WHERE sku = 'rare'"))
}

// The client hangs up after sending; what it asks for again is the same order,
// whatever had become of the first request.
func TestRepeatAfterALostAnswerGivesTheSameOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(nil)
	for i := range 12 {
		ann := w.shopper()
		ann.admitted(a)
		hangUp := sendOrder(t, a, ann.token)
		if i%2 == 0 { // an answer that was given and got lost, not only a request that was
			harness.Eventually(t, patience, "the order is placed", func() bool { return w.placed() == i+1 })
		}
		hangUp()
		var got answer
		harness.Eventually(t, patience, "the repeat is answered for good", func() bool {
			got = ann.order([]*process{b, a}[i/2%2], "demo", 1)
			return got.status != 409 || got.code() != "order-in-progress"
		})
		if i%2 == 0 {
			got.is(200)
			require.Equal(t, "true", got.header.Get("Idempotency-Replayed"))
		}
		require.Contains(t, []int{200, 201}, got.status, "%s", got.body)
		require.Equal(t, i+1, w.placed(), "one token, one order")
		require.Equal(t, got.order().ID, *ann.until(a, queue.Consumed).OrderID)
	}
}

// sendOrder sends an order on a connection of its own and never reads.
func sendOrder(t *testing.T, p *process, token string) (hangUp func()) {
	t.Helper()
	host := strings.TrimPrefix(p.public, "http://")
	c, err := net.Dial("tcp", host)
	require.NoError(t, err)
	body := orderOf("demo", 1)
	_, err = fmt.Fprintf(c, "POST /v1/orders HTTP/1.1\r\nHost: %s\r\nX-Entry-Token: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		host, token, len(body), body)
	require.NoError(t, err)
	return func() { _ = c.Close() }
}

// One hundred requests with one token and one content are one order, and every
// one of them ends up with it.
func TestOneTokenIsOneOrderHoweverManyRequestsUseIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(nil)
	ann := w.shopper()
	ann.admitted(a)
	answers := make([]answer, 100)
	together(len(answers), func(i int) { answers[i] = ann.order([]*process{a, b}[i%2], "demo", 1) })
	made := map[string]int{}
	for _, got := range answers {
		switch got.status {
		case 200, 201:
			made[got.order().ID] += got.status - 200
		default:
			got.is(409, "order-in-progress")
			require.NotEmpty(t, got.header.Get("Retry-After"))
		}
	}
	require.Len(t, made, 1, "one token must give one order")
	require.Equal(t, 1, w.placed())
	for id, created := range made {
		require.LessOrEqual(t, created, 1, "one order was made twice")
		require.Equal(t, id, ann.order(a, "demo", 1).is(200).order().ID)
	}
}

func TestIdempotencyKeyMeansOneContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.start(proxied...), w.start(proxied...)
	w.open(nil)
	ann := w.member("ann")
	ann.key = "basket-1"
	ann.admitted(a)
	first := ann.order(a, "demo", 1).is(201).order()
	require.Equal(t, first, ann.order(b, "demo", 1).is(200).order())
	ann.order(b, "demo", 2).is(422, "idempotency-mismatch")
	ann.until(a, queue.Consumed)

	// A second grant of the same member: the key still means the first order, and
	// the grant is not spent on it.
	again := w.member("ann")
	again.key = ann.key
	again.admitted(b)
	require.NotEqual(t, ann.token, again.token)
	require.Equal(t, first, again.order(b, "demo", 1).is(200).order())
	again.order(a, "demo", 2).is(422, "idempotency-mismatch")
	require.Equal(t, queue.Ready, again.poll(a).is(200).position().Status)
	again.key = "basket-2"
	require.NotEqual(t, first.ID, again.order(a, "demo", 2).is(201).order().ID)

	// Case 67 as well: another member's key of the same name is another key.
	bob := w.member("bob")
	bob.key = "basket-1"
	bob.admitted(a)
	require.NotEqual(t, first.ID, bob.order(a, "demo", 5).is(201).order().ID)
	require.Equal(t, 3, w.placed())

	for _, malformed := range []string{"with space", strings.Repeat("x", 256), "ä"} {
		bob.key = malformed
		bob.order(a, "demo", 1).is(400, "bad-request")
	}
}

func TestOneOrderPerMemberWhereTheRoomSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.start(proxied...), w.start(proxied...)
	w.open(settings{"oneOrderPerMember": true})
	ann := w.member("ann")
	ann.admitted(a)
	ann.order(b, "demo", 1).is(201)
	ann.until(a, queue.Consumed)
	w.member("ann").enter(b).is(409, "already-ordered")
	require.Equal(t, 1, w.placed())
}
