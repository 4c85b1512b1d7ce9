package api

import (
	"context"
	"net/http"
	"strings"
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

// Users verifies the user tokens of an application.
type Users interface {
	// User returns the member that a token names and, if it speaks of a lane, what
	// it calls it: any other number of names than one is no lane. The errors are
	// identity.ErrInvalid and, while nothing can be said, identity.ErrUnavailable.
	User(ctx context.Context, token string) (member string, lanes []string, err error)
}

// caller is who asks, as far as verified credentials say. Without a ticket the
// ticket is the zero one.
type caller struct {
	member    string // empty: nobody yet
	ticket    credential.Ticket
	hasTicket bool
	lanes     []string  // what the credential calls the lane; nil: it does not say
	lane      int       // to enter by, where the call is one to enter
	ended     time.Time // when their last stay did, where that was asked
}

// caller verifies the request's credentials for a room. It returns
// errTicketInvalid for a ticket that is shown and is not good, except that a
// bad cookie counts as none: a browser can't take it back.
func (a *API) caller(r *http.Request, room string, v *view) (caller, error) {
	shown := r.Header.Get(ticketHeader)
	text := shown
	if shown == "" {
		if k, err := r.Cookie(a.cookieName(room)); err == nil {
			text = k.Value
		}
	}
	t, err := a.Ring.Ticket(text)
	var c caller
	if err == nil && t.Room == room && !t.Expired(v.now()) && a.atHome(r, v, proof{"ticket", t.Member, t.Binding}) {
		c.ticket, c.hasTicket = t, true
	} else if shown != "" {
		return caller{}, errTicketInvalid
	}
	c.member = c.ticket.Member
	if a.namesMembers() {
		return a.named(r, c)
	}
	return c, nil
}

// namesMembers tells whether somebody else says who the member is, so that a
// ticket alone is nobody's.
func (a *API) namesMembers() bool { return a.MemberHeader || a.Users != nil }

// named takes the member from a user token or from the header of a trusted
// proxy. A ticket shown beside it must be that member's own; a cookie of somebody
// else counts as none.
func (a *API) named(r *http.Request, c caller) (caller, error) {
	say := a.fromProxy
	if a.Users != nil {
		say = a.fromToken
	}
	member, lanes, err := say(r)
	if err != nil {
		return caller{}, err
	}
	if c.hasTicket && c.ticket.Member != member {
		if r.Header.Get(ticketHeader) != "" {
			return caller{}, errTicketInvalid
		}
		c = caller{} // the cookie of who used this browser before
	}
	c.member, c.lanes = member, lanes
	return c, nil
}

// fromProxy believes one header. Two of them are no choice for us to make: a
// proxy that adds its own leaves the client's in front.
func (a *API) fromProxy(r *http.Request) (member string, lanes []string, err error) {
	members := r.Header.Values(memberHeader)
	if !a.Trusted.Has(clientip.Peer(r)) || len(members) != 1 || !credential.ValidMember(members[0]) {
		return "", nil, errNoMember
	}
	return members[0], r.Header.Values(laneHeader), nil
}

// fromToken believes the one Authorization header, if its token is good.
func (a *API) fromToken(r *http.Request) (member string, lanes []string, err error) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return "", nil, errNoMember
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", nil, errNoMember
	}
	member, lanes, err = a.Users.User(r.Context(), token)
	if err == nil && !credential.ValidMember(member) {
		err = errNoMember
	}
	return member, lanes, err
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
