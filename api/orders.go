package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/linekeeper/linekeeper/api/jsonbody"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/identity"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
)

// maxIdempotencyKey is the longest Idempotency-Key, in bytes.
const maxIdempotencyKey = 255

// booksTimeout bounds what waits for Postgres alone and has no deadline of its
// own. It is above lock_timeout, so that Postgres speaks first if it can.
const booksTimeout = 3 * time.Second

// placeOrder is POST /v1/orders. The token comes first: without a good one
// nothing is read, looked up or told.
func (a *API) placeOrder(w http.ResponseWriter, r *http.Request) error {
	g, shown, err := a.grant(r)
	if err != nil {
		return err
	}
	req, v, err := a.orderRequest(r, g, shown)
	if err != nil {
		return err
	}
	var body spec.OrderRequest
	if err := jsonbody.Read(w, r, &body); err != nil {
		return err
	}
	req.Items = items(body.Items)
	wait, err := a.guard.place(w, r, g)
	if err != nil {
		return err
	}
	return later(a.placeFor(w, r, req, v), wait)
}

// placeFor is placeOrder for who may order.
func (a *API) placeFor(w http.ResponseWriter, r *http.Request, req order.Request, v *view) error {
	g := req.Grant
	attempt := a.healths.begin(v, g)
	placed, err := a.Orders.Place(r.Context(), req)
	attempt.end(placed, err)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/orders/"+placed.ID)
	if placed.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
		return writeJSON(w, http.StatusOK, orderBody(placed.Order))
	}
	a.moved(r.Context(), Move{Room: g.Room, Member: g.Member, From: string(queue.Ready), To: string(queue.Consumed),
		Grant: g.ID, Score: g.Place.Score})
	return writeJSON(w, http.StatusCreated, orderBody(placed.Order))
}

// orderRequest is what the token, with all that is shown beside it, and the room
// decide about an order. The view is nil where there is no room.
func (a *API) orderRequest(r *http.Request, g queue.Grant, shown []proof) (order.Request, *view, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return order.Request{}, nil, err
	}
	req := order.Request{Grant: g, IdempotencyKey: key, Unclaimed: g.Open}
	if req.Barred, err = a.kept.bars(r.Context(), g.Room, g.Member, g.Sale); err != nil {
		return order.Request{}, nil, err
	}
	if v := a.failing.unclaimed(g); v != nil {
		req.Unclaimed, req.Once = true, v.settings.OneOrderPerMember
		return req, nil, a.allAtHome(r, v, shown) // of no view: the batch does not follow orders that the line knows nothing of
	}
	v, err := a.rooms.get(r.Context(), g.Room)
	switch {
	case errors.Is(err, errRoomNotFound):
		req.RoomGone = true
	case errors.Is(err, queue.ErrNoRoom) && !g.Open:
		req.Lease = lostRoomLease // no claim can be had; an order may be found
	case err != nil:
		return order.Request{}, nil, err
	default:
		req.Once, req.Lease = v.settings.OneOrderPerMember, v.Rules.ClaimLease
		if err := a.allAtHome(r, v, shown); err != nil || g.Open { // of no view either
			return req, nil, err
		}
	}
	return req, v, nil
}

// lostRoomLease stands in for a setting that Redis has lost with its room.
const lostRoomLease = 15 * time.Second

// grant verifies the entry token, and that an identity shown beside it is its
// member's. The answer does not say what is wrong with it.
func (a *API) grant(r *http.Request) (queue.Grant, []proof, error) {
	text := r.Header.Get(tokenHeader)
	if text == "" {
		return queue.Grant{}, nil, errTokenMissing
	}
	g, binding, err := a.Ring.Bound(text)
	if err != nil {
		return queue.Grant{}, nil, order.ErrTokenInvalid
	}
	shown := []proof{{"token", g.Member, binding}}
	if text := r.Header.Get(ticketHeader); text != "" {
		t, err := a.Ring.Ticket(text)
		if err != nil || t.Member != g.Member || t.Room != g.Room {
			return queue.Grant{}, nil, order.ErrTokenInvalid
		}
		shown = append(shown, proof{"ticket", t.Member, t.Binding})
	}
	if a.namesMembers() {
		c, err := a.named(r, caller{})
		if errors.Is(err, identity.ErrUnavailable) {
			return queue.Grant{}, nil, err
		}
		if err != nil || c.member != g.Member {
			return queue.Grant{}, nil, order.ErrTokenInvalid
		}
	}
	return g, shown, nil
}

// idempotencyKey reads the optional header: printable ASCII.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	valid := len(values) == 1 && key != "" && len(key) <= maxIdempotencyKey
	for i := 0; valid && i < len(key); i++ {
		valid = key[i] > ' ' && key[i] < 0x7f
	}
	if !valid {
		return "", errIdempotencyKey
	}
	return key, nil
}

// order is GET /v1/orders/{id}: to everybody but its member, an order does not
// exist. The member shows the ticket of that room, or the token it was placed
// with; without any credential Postgres is not asked.
func (a *API) order(w http.ResponseWriter, r *http.Request) error {
	shown, err := a.proofs(r)
	if err != nil {
		return err
	}
	if shown.none() {
		return order.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(r.Context(), booksTimeout)
	defer cancel()
	o, err := a.OrderBook.ByID(ctx, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	for _, p := range shown.of(o) {
		if may, err := a.mayShow(r, o.Room, p); err != nil {
			return err
		} else if may {
			return writeJSON(w, http.StatusOK, orderBody(o))
		}
	}
	return order.ErrNotFound
}

// proofs are the verified credentials that a request shows, of any room.
type proofs struct {
	member  string // by a trusted proxy or a user token
	grant   string
	binding string // of the token with that grant
	tickets []credential.Ticket
}

func (a *API) proofs(r *http.Request) (proofs, error) {
	var p proofs
	if a.namesMembers() {
		c, err := a.named(r, caller{})
		if !errors.Is(err, identity.ErrUnavailable) {
			err = nil // who shows nothing good sees no order
		}
		p.member = c.member
		return p, err
	}
	if g, binding, err := a.Ring.Bound(r.Header.Get(tokenHeader)); err == nil {
		p.grant, p.binding = g.ID, binding
	}
	texts := []string{r.Header.Get(ticketHeader)}
	for _, k := range r.Cookies() {
		if strings.HasPrefix(k.Name, a.cookieName("")) {
			texts = append(texts, k.Value)
		}
	}
	for _, text := range texts {
		if t, err := a.Ring.Ticket(text); err == nil {
			p.tickets = append(p.tickets, t)
		}
	}
	return p, nil
}

func (p proofs) none() bool { return p.member == "" && p.grant == "" && len(p.tickets) == 0 }

// of are those that an order may be shown to.
func (p proofs) of(o order.Order) []proof {
	var fit []proof
	if p.member != "" && p.member == o.Member {
		fit = append(fit, proof{kind: "member", member: p.member})
	}
	if p.grant != "" && p.grant == o.Grant {
		fit = append(fit, proof{"token", o.Member, p.binding})
	}
	for _, t := range p.tickets {
		if t.Room == o.Room && t.Member == o.Member {
			fit = append(fit, proof{"ticket", t.Member, t.Binding})
		}
	}
	return fit
}

func items(in []spec.Item) []order.Item {
	out := make([]order.Item, len(in))
	for i, it := range in {
		out[i] = order.Item{SKU: it.SKU, Quantity: it.Quantity}
	}
	return out
}

func orderBody(o order.Order) spec.Order {
	out := spec.Order{
		ID: o.ID, Room: o.Room, Member: o.Member, TotalCents: o.TotalCents, Currency: o.Currency,
		CreatedAt: o.CreatedAt.UTC(), Items: make([]spec.Item, len(o.Items)),
	}
	for i, it := range o.Items {
		out.Items[i] = spec.Item{SKU: it.SKU, Quantity: it.Quantity}
	}
	return out
}
