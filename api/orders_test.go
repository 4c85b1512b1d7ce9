package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

const oneA, oneB = `[{"sku":"a","quantity":1}]`, `[{"sku":"b","quantity":1}]`

func key(text string) with { return header("Idempotency-Key", text) }

func (a answer) order() (o spec.Order) {
	a.t.Helper()
	a.decode(&o)
	return o
}

func TestAnOrderIsPlacedOnceAndRepeatedForEver(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	owner, err := f.ring.Ticket(ann)
	require.NoError(t, err)
	a := f.order(`[{"sku":"b","quantity":1},{"sku":"a","quantity":1},{"sku":"a","quantity":1}]`, token(entry)).is(http.StatusCreated)
	o := a.order()
	require.Equal(t, "/v1/orders/"+o.ID, a.header.Get("Location"))
	require.Empty(t, a.header.Get("Idempotency-Replayed"))
	require.Equal(t, spec.Order{ID: o.ID, Room: f.room, Member: owner.Member, TotalCents: 1500, Currency: "USD", CreatedAt: o.CreatedAt,
		Items: []spec.Item{{SKU: "a", Quantity: 2}, {SKU: "b", Quantity: 1}}}, o)
	require.Equal(t, queue.Claimed, f.poll(ann).Status, "until the event has spent the grant")

	again := f.order(`[{"sku":"a","quantity":2},{"sku":"b","quantity":1}]`, token(entry)).is(http.StatusOK)
	require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))
	require.Equal(t, "/v1/orders/"+o.ID, again.header.Get("Location"))
	require.Equal(t, o, again.order())
	f.order(oneA, token(entry)).refused(http.StatusConflict, "entry-token-consumed")

	f.pass(time.Hour) // the token is long over
	require.Equal(t, o, f.order(`[{"sku":"b","quantity":1},{"sku":"a","quantity":2}]`, token(entry)).is(http.StatusOK).order())
}

func TestAnOrderIsShownToItsMemberAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	path := "/v1/orders/" + f.order(oneA, token(entry)).is(http.StatusCreated).order().ID
	bob, bobs := f.ready()
	for what, shown := range map[string]with{"ticket": ticket(ann), "token": token(entry), "cookie": cookie("linekeeper_"+f.room, ann)} {
		require.Equal(t, "/v1/orders/"+f.call("GET", path, shown).is(http.StatusOK).order().ID, path, what)
	}
	for what, shown := range map[string]with{
		"nothing": header("X-Other", "1"), "another ticket": ticket(bob), "another token": token(bobs),
		"another cookie": cookie("linekeeper_"+f.room, bob), "garbage": ticket("x"), "a header no proxy sent": header("X-Member-Id", "m"),
	} {
		f.call("GET", path, shown).refused(http.StatusNotFound, "order-not-found")
		require.NotEmpty(t, what)
	}
	f.call("GET", "/v1/orders/"+uuid.NewString(), ticket(ann)).refused(http.StatusNotFound, "order-not-found")
	f.call("GET", "/v1/orders/1", ticket(ann)).refused(http.StatusNotFound, "order-not-found")
}

// TestARefusedOrderLeavesTheTokenAsGoodAsItWas has what a client can do wrong,
// with one token, which pays at the end.
func TestARefusedOrderLeavesTheTokenAsGoodAsItWas(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	for what, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no items":           {`{"items":[]}`, 422, "invalid-order"},
		"none of it":         {`{"items":[{"sku":"a","quantity":0}]}`, 422, "invalid-order"},
		"no such product":    {`{"items":[{"sku":"nothing","quantity":1}]}`, 422, "invalid-order"},
		"two currencies":     {`{"items":[{"sku":"a","quantity":1},{"sku":"euro","quantity":1}]}`, 422, "invalid-order"},
		"more than there is": {`{"items":[{"sku":"a","quantity":101}]}`, 409, "sold-out"},
		"a member":           {`{"items":[{"sku":"a","quantity":1}],"member":"bob"}`, 400, "bad-request"},
		"a text for a count": {`{"items":[{"sku":"a","quantity":"1"}]}`, 400, "bad-request"},
		"nothing":            {``, 400, "bad-request"},
		"two orders":         {`{"items":[]}{}`, 400, "bad-request"},
		"much too much":      {`{"items":[{"sku":"` + strings.Repeat("a", 17<<10) + `","quantity":1}]}`, 413, "body-too-large"},
	} {
		a := f.call("POST", "/v1/orders", body(c.body), token(entry))
		require.Equal(t, c.status, a.status, "%s: %s", what, a.body)
		a.refused(c.status, c.code)
		require.Equal(t, queue.Ready, f.serve().poll(ann).Status, what)
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	f.order(oneA, token(entry), form).refused(http.StatusUnsupportedMediaType, "unsupported-media-type")
	f.order(oneA, token(entry)).is(http.StatusCreated)
}

func TestOnlyTheTokenOfThisMemberIsTaken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	bob := f.enter()
	f.order(oneA).refused(http.StatusUnauthorized, "entry-token-missing")
	f.order(oneA, token("")).refused(http.StatusUnauthorized, "entry-token-missing")
	invalid := map[string][]with{
		"garbage":                {token("x")},
		"a ticket":               {token(ann)},
		"damaged":                {token(entry[:len(entry)-4] + "AAAA")},
		"beside another ticket":  {token(entry), ticket(bob)},
		"beside a broken ticket": {token(entry), ticket("x")},
		"of a key not ours":      {token(f.foreign(entry))},
		"of a room not ours":     {token(f.elsewhere(entry))},
	}
	var bodies []string
	for what, shown := range invalid {
		a := f.order(oneA, append(shown, header("X-Request-Id", "same"))...)
		require.Equal(t, http.StatusUnauthorized, a.status, what)
		a.refused(http.StatusUnauthorized, "entry-token-invalid")
		bodies = append(bodies, string(a.body))
	}
	for _, b := range bodies {
		require.Equal(t, bodies[0], b, "S1: the answer must not say what is wrong with a token")
	}
	// The token comes first: to strangers nothing else is told.
	f.call("POST", "/v1/orders", body(`{`), token("x")).refused(http.StatusUnauthorized, "entry-token-invalid")
	f.order(oneA, token(entry), ticket(ann)).is(http.StatusCreated)

	late, over := f.ready()
	f.pass(301 * time.Second)
	f.order(oneA, token(over)).refused(http.StatusUnauthorized, "entry-token-invalid") // I17
	require.Equal(t, of(queue.OutcomeExpired), f.serve().poll(late).LastOutcome)
}

// bound is a ticket that says who somebody is, and nothing of a place.
func (f *fixture) bound(member string) string {
	f.t.Helper()
	t, err := f.ring.SignTicket(credential.Ticket{Room: f.room, Member: member, IssuedAt: f.now()})
	require.NoError(f.t, err)
	return t.Reveal()
}

// foreign is the same grant, signed by a key of the same name.
func (f *fixture) foreign(entry string) string {
	f.t.Helper()
	g := f.grant(entry)
	other := ringOf(f.t, g.KeyID+":"+strings.Repeat("QUFB", 16))
	t, err := other.SignGrant(g)
	require.NoError(f.t, err)
	return t.Reveal()
}

// elsewhere is a grant for a room that does not exist (any more).
func (f *fixture) elsewhere(entry string) string {
	f.t.Helper()
	g := f.grant(entry)
	g.ID, g.Room = credential.NewGrantID(), "deleted"
	t, err := f.ring.SignGrant(g)
	require.NoError(f.t, err)
	return t.Reveal()
}

func TestAnIdempotencyKeyIsOneSaneValue(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, entry := f.ready()
	for what, shown := range map[string][]with{
		"empty":       {key("")},
		"too long":    {key(strings.Repeat("k", 256))},
		"a space":     {key("a b")},
		"not ASCII":   {key("schlüssel")},
		"a control":   {key("a\tb")},
		"two of them": {key("a"), key("b")},
	} {
		a := f.order(oneA, append(shown, token(entry))...)
		require.Equal(t, http.StatusBadRequest, a.status, what)
		a.refused(http.StatusBadRequest, "bad-request")
	}
	longest := key(strings.Repeat("~", 255))
	f.order(oneA, token(entry), longest).is(http.StatusCreated)
	f.order(oneA, token(entry), longest).is(http.StatusOK)
	f.order(oneB, token(entry), longest).refused(http.StatusUnprocessableEntity, "idempotency-mismatch")
}

func TestAnIdempotencyKeyOutlivesTheToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	first := f.order(oneA, token(entry), key("k")).is(http.StatusCreated).order()
	g := f.grant(entry)
	_, err := f.line.Consume(t.Context(), f.room, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: first.ID}})
	require.NoError(t, err)
	require.Equal(t, &first.ID, f.poll(ann).OrderID)

	again := f.post(ticket(f.bound(g.Member))).is(http.StatusCreated).position()
	require.Equal(t, queue.Waiting, again.Status, "a new place, in a room that allows more orders than one")
	f.pass(time.Second)
	require.Equal(t, 1, f.tick())
	next := *f.poll(*again.QueueTicket).EntryToken
	a := f.order(oneA, token(next), key("k")).is(http.StatusOK)
	require.Equal(t, "true", a.header.Get("Idempotency-Replayed"))
	require.Equal(t, first, a.order())
	require.Equal(t, queue.Ready, f.poll(*again.QueueTicket).Status, "the new token has paid for nothing")
	_, bobs := f.ready()
	f.order(oneB, token(bobs), key("k")).is(http.StatusCreated) // S21: another member's key is another key
}

func TestAnOrderWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.MaxInFlightOrders, s.OneOrderPerMember = 1, true }))
	ann, entry := f.ready()
	_, bobs := f.ready()
	g := f.grant(entry)
	require.NoError(t, f.line.Claim(t.Context(), g, "another", 7*time.Second))
	f.order(oneA, token(entry)).refused(http.StatusConflict, "order-in-progress").after("2")
	f.order(oneA, token(bobs)).refused(http.StatusTooManyRequests, "order-limit").after("1")
	f.leave(ticket(ann)).refused(http.StatusConflict, "order-in-progress").after("2")

	f.pass(7 * time.Second) // the lease is over
	placed := f.order(oneA, token(entry)).is(http.StatusCreated).order()
	_, err := f.line.Consume(t.Context(), f.room, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: placed.ID}})
	require.NoError(t, err)
	f.post(ticket(f.bound(g.Member))).refused(http.StatusConflict, "already-ordered")
	f.serve().post(ticket(ann)).refused(http.StatusConflict, "already-ordered")

	// The same where Redis does not know: Postgres has the last word.
	f.relive()
	f.pass(f.life.Rules.Settle)
	again := f.serve().post(ticket(ann)).is(http.StatusCreated).position()
	require.Equal(t, 1, f.tick())
	site := f.serve()
	site.order(oneA, token(*site.poll(*again.QueueTicket).EntryToken)).refused(http.StatusConflict, "already-ordered")
}

func TestWhoHasOrderedMayEnterAgainWhereTheRoomAllowsIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	g := f.grant(entry)
	_, err := f.line.Consume(t.Context(), f.room, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: uuid.NewString()}})
	require.NoError(t, err)
	again := f.serve().post(ticket(ann)).is(http.StatusCreated).position()
	require.Equal(t, queue.Waiting, again.Status)
	require.Greater(t, *again.Score, g.Place.Score)
	require.NotNil(t, again.QueueTicket, "a new place has a ticket of its own")
}

// TestADeletedRoomTakesNoOrdersAndKeepsThoseItHas is about whoever asks again
// because the answer got lost.
func TestADeletedRoomTakesNoOrdersAndKeepsThoseItHas(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, entry := f.ready()
	_, unused := f.ready()
	o := f.order(oneA, token(entry)).is(http.StatusCreated).order()
	require.NoError(t, f.rooms.Delete(t.Context(), f.room, operator))
	site := f.serve()
	require.Equal(t, o, site.order(oneA, token(entry)).is(http.StatusOK).order())
	site.order(oneA, token(unused)).refused(http.StatusUnauthorized, "entry-token-invalid")
	require.Equal(t, o, site.call("GET", "/v1/orders/"+o.ID, token(entry)).is(http.StatusOK).order())
}

func TestSoldOutIsToldByProduct(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, entry := f.ready()
	f.order(oneB, token(entry)).is(http.StatusCreated)
	bob, bobs := f.ready()
	a := f.order(`[{"sku":"a","quantity":1},{"sku":"b","quantity":1}]`, token(bobs)).refused(http.StatusConflict, "sold-out")
	require.Contains(t, string(a.body), "fewer of b left")
	require.Equal(t, queue.Ready, f.poll(bob).Status)
	o, err := f.orders.ByGrant(t.Context(), f.grant(bobs).ID)
	require.ErrorIs(t, err, order.ErrNotFound, "%v", o)
}

// grant is what an entry token stands for.
func (f *fixture) grant(entry string) queue.Grant {
	f.t.Helper()
	g, err := f.ring.Grant(entry)
	require.NoError(f.t, err)
	return g
}
