package api

import (
	"net/http"
	"time"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/clientip"
)

// Headers that carry credentials.
const (
	ticketHeader = "X-Queue-Ticket"
	memberHeader = "X-Member-Id"
	tokenHeader  = "X-Entry-Token"
)

// caller is who asks, as far as verified credentials say. Without a ticket the
// ticket is the zero one.
type caller struct {
	member    string // empty: nobody yet
	ticket    credential.Ticket
	hasTicket bool
	lane      int       // to enter by, where the call is one to enter
	ended     time.Time // when their last stay did, where that was asked
}

// caller verifies the request's credentials for a room. It returns
// errTicketInvalid for a ticket that is shown and is not good, except that a
// bad cookie counts as none: a browser can't take it back.
func (a *API) caller(r *http.Request, room string, v *view) (caller, error) {
	var c caller
	shown := r.Header.Get(ticketHeader)
	if t, err := a.Ring.Ticket(shown); err == nil {
		c.ticket, c.hasTicket = t, true
	} else if shown != "" {
		return caller{}, errTicketInvalid
	} else if k, err := r.Cookie(a.cookieName(room)); err == nil {
		c.ticket, err = a.Ring.Ticket(k.Value)
		c.hasTicket = err == nil && c.ticket.Room == room && !c.ticket.Expired(v.now())
	}
	if !c.hasTicket {
		c.ticket = credential.Ticket{}
	} else if c.ticket.Room != room || c.ticket.Expired(v.now()) {
		return caller{}, errTicketInvalid
	}
	c.member = c.ticket.Member
	if a.MemberHeader {
		return a.named(r, c)
	}
	return c, nil
}

// named takes the member from the header of a trusted proxy. Two of them are
// no choice for us to make: a proxy that adds its own leaves the client's in
// front. A ticket shown beside it must be that member's own; a cookie of
// somebody else counts as none.
func (a *API) named(r *http.Request, c caller) (caller, error) {
	members := r.Header.Values(memberHeader)
	if !a.Trusted.Has(clientip.Peer(r)) || len(members) != 1 || !credential.ValidMember(members[0]) {
		return caller{}, errNoMember
	}
	if c.hasTicket && c.ticket.Member != members[0] {
		if r.Header.Get(ticketHeader) != "" {
			return caller{}, errTicketInvalid
		}
		c = caller{} // the cookie of who used this browser before
	}
	c.member = members[0]
	return c, nil
}

// cookieName has the prefix with which browsers see to it that the cookie is
// ours alone; they accept it over https only.
func (a *API) cookieName(room string) string {
	if a.CookieSecure {
		return "__Host-linekeeper_" + room
	}
	return "linekeeper_" + room
}

func (a *API) setCookie(w http.ResponseWriter, room string, ticket credential.Token) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookieName(room), Value: ticket.Reveal(), Path: "/",
		MaxAge: int(credential.TicketTTL.Seconds()), HttpOnly: true, Secure: a.CookieSecure, SameSite: http.SameSiteLaxMode,
	})
}
