package credential

import (
	"errors"
	"fmt"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// TicketTTL is how long a ticket is good. It is part of the format: tickets of
// another length are refused, so a change of it ends all that are out.
const TicketTTL = 24 * time.Hour

// Ticket says who somebody is and where they stand, so that they can poll,
// leave, and get back a place that Redis has lost.
type Ticket struct {
	Room       string
	Sale       int64
	Generation int64
	Member     string
	Place      queue.Place // Score 0: no place, the ticket only binds a member
	Granted    bool        // the place had been let through: by itself the ticket brings it back no more
	Work       int         // bits of a proof of work that were asked of a member without a place; 0: none
	Binding    string      // to the network in which it was given, by Ring.Bind; empty: to none
	IssuedAt   time.Time   // in Redis time; a signed ticket has whole seconds
	KeyID      string      // of the key that signed it; signing ignores it
}

// Expired tells whether the ticket has ended at now, a time from Redis.
func (t Ticket) Expired(now time.Time) bool {
	return !now.Before(t.IssuedAt.Add(TicketTTL))
}

// Renew tells whether a member who shows t at now should get a new ticket: in
// its second half, or when its key is no longer the first of r. So whoever polls
// never sees a ticket end, and holds a new key's ticket before the old key goes.
func (t Ticket) Renew(now time.Time, r *Ring) bool {
	return t.KeyID != r.SigningKeyID() || !now.Before(t.IssuedAt.Add(TicketTTL/2))
}

// SignTicket signs t with the first key. Fractions of a second are cut off
// IssuedAt. It refuses what Ticket would refuse to read.
func (r *Ring) SignTicket(t Ticket) (Token, error) {
	c := &claims{
		Audience:   ticketAudience,
		Room:       t.Room,
		Sale:       t.Sale,
		Generation: t.Generation,
		Member:     t.Member,
		Lane:       t.Place.Lane,
		Score:      t.Place.Score,
		IssuedAt:   t.IssuedAt.Unix(),
		Expiry:     t.IssuedAt.Add(TicketTTL).Unix(),
		Granted:    t.Granted,
		Work:       t.Work,
		Network:    t.Binding,
	}
	if err := c.checkTicket(); err != nil {
		return Token{}, fmt.Errorf("sign ticket of room %q: %w", t.Room, err)
	}
	s, err := r.sign(r.SigningKeyID(), c)
	if err != nil {
		return Token{}, fmt.Errorf("sign ticket of room %q: %w", t.Room, err)
	}
	return s, nil
}

// Ticket reads a ticket that a key of the ring has signed; any other text is
// ErrInvalid. It doesn't judge the time: ask Expired with a time from Redis.
func (r *Ring) Ticket(s string) (Ticket, error) {
	c, kid, err := r.verify(s, r.tickets)
	if err != nil || c.checkTicket() != nil {
		return Ticket{}, ErrInvalid
	}
	return Ticket{
		Room:       c.Room,
		Sale:       c.Sale,
		Generation: c.Generation,
		Member:     c.Member,
		Place:      c.place(),
		Granted:    c.Granted,
		Work:       c.Work,
		Binding:    c.Network,
		IssuedAt:   time.Unix(c.IssuedAt, 0).UTC(),
		KeyID:      kid,
	}, nil
}

// checkTicket says what keeps the claims from being a ticket.
func (c *claims) checkTicket() error {
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case c.ID != "" || c.Open:
		return errors.New("a ticket has no grant")
	case c.Score == 0 && (c.Lane != 0 || c.Granted):
		return errors.New("a lane or a grant without a place")
	case !within(int64(c.Work), 0, maxWork) || c.Work > 0 && (c.Score > 0 || c.Sale == 0):
		return errors.New("work of nobody who is to enter a sale")
	case c.Expiry-c.IssuedAt != int64(TicketTTL/time.Second):
		return errors.New("not the lifetime of a ticket")
	}
	return nil
}
