package api

import (
	"errors"
	"net/http"
	"net/netip"

	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// How wide the network is, in bits, that a credential is bound to: what one
// provider gives to neighbours, so that a new address at home is the same place.
const boundV4, boundV6 = 24, 48

// network is where a request comes from, as far as a room wants to know.
func (a *API) network(r *http.Request, v *view) netip.Prefix {
	if v.settings.Binding == room.BindingOff {
		return netip.Prefix{}
	}
	return clientip.Network(a.Trusted.Of(r), boundV4, boundV6)
}

// proof is a verified credential, as far as it matters where it is shown.
type proof struct {
	kind    string // ticket or token
	member  string
	binding string
}

// atHome tells whether a credential may be shown from where the request comes
// from. One that is bound to no network, as those are from before the room wanted
// it, may be shown from everywhere.
func (a *API) atHome(r *http.Request, v *view, p proof) bool {
	if v.settings.Binding == room.BindingOff || a.Ring.BoundTo(p.binding, p.member, a.network(r, v)) {
		return true
	}
	passes := v.settings.Binding != room.BindingStrict
	if a.Observer.OtherNetwork != nil {
		a.Observer.OtherNetwork(v.Room, p.kind, passes)
	}
	return passes
}

// allAtHome is order.ErrTokenInvalid where one of these may not be shown from where
// the request comes from.
func (a *API) allAtHome(r *http.Request, v *view, shown []proof) error {
	for _, p := range shown {
		if !a.atHome(r, v, p) {
			return order.ErrTokenInvalid
		}
	}
	return nil
}

// mayShow is atHome where the room has not been looked at. Of a room that is no
// more nobody says any longer where its credentials may be shown.
func (a *API) mayShow(r *http.Request, name string, p proof) (bool, error) {
	if p.binding == "" {
		return true, nil
	}
	if d := a.failing.open(name); d != nil {
		return a.atHome(r, d.view, p), nil
	}
	v, err := a.rooms.get(r.Context(), name)
	if errors.Is(err, errRoomNotFound) || errors.Is(err, queue.ErrNoRoom) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return a.atHome(r, v, p), nil
}
