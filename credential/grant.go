package credential

import (
	"errors"
	"fmt"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// SignGrant returns the entry token of g, signed by the key that g names since
// its pick-up: so every poll, on every process, hands out the same bytes, and a
// client that compares or caches tokens sees one. It refuses a grant that was
// not picked up, whose expiry is not final yet, and what Grant would not read.
func (r *Ring) SignGrant(g queue.Grant) (Token, error) { return r.SignBound(g, "") }

// SignBound is SignGrant for a token that says in which network it is given, by
// Bind with the key that g names; an empty binding is none.
func (r *Ring) SignBound(g queue.Grant, binding string) (Token, error) {
	if !g.Picked || g.Expiry.Nanosecond() != 0 {
		return Token{}, fmt.Errorf("sign grant %s: not picked up, or no expiry in whole seconds", g.ID)
	}
	c := &claims{
		Audience:   tokenAudience,
		ID:         g.ID,
		Room:       g.Room,
		Sale:       g.Sale,
		Generation: g.Generation,
		Member:     g.Member,
		Lane:       g.Place.Lane,
		Score:      g.Place.Score,
		IssuedAt:   g.IssuedAt.Unix(),
		Expiry:     g.Expiry.Unix(),
		Open:       g.Open,
		Network:    binding,
	}
	if err := c.checkGrant(); err != nil {
		return Token{}, fmt.Errorf("sign grant %s: %w", g.ID, err)
	}
	s, err := r.sign(g.KeyID, c)
	if err != nil {
		return Token{}, fmt.Errorf("sign grant %s: %w", g.ID, err)
	}
	return s, nil
}

// Grant reads an entry token that a key of the ring has signed; any other text
// is ErrInvalid. That the grant was given is all it says: whether it has ended
// or is spent is for a claim to find out. IssuedAt is in whole seconds.
func (r *Ring) Grant(s string) (queue.Grant, error) {
	g, _, err := r.Bound(s)
	return g, err
}

// Bound is Grant with what the token says of the network that it was given in;
// empty where it says nothing.
func (r *Ring) Bound(s string) (g queue.Grant, binding string, err error) {
	c, kid, err := r.verify(s, r.tokens)
	if err != nil || c.checkGrant() != nil {
		return queue.Grant{}, "", ErrInvalid
	}
	return queue.Grant{
		ID:         c.ID,
		Room:       c.Room,
		Member:     c.Member,
		Sale:       c.Sale,
		Generation: c.Generation,
		Place:      c.place(),
		IssuedAt:   time.Unix(c.IssuedAt, 0).UTC(),
		Expiry:     time.Unix(c.Expiry, 0).UTC(),
		Picked:     true, // only those are signed
		KeyID:      kid,
		Open:       c.Open,
	}, c.Network, nil
}

// checkGrant says what keeps the claims from being a grant.
func (c *claims) checkGrant() error {
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case !validGrantID(c.ID):
		return errors.New("malformed grant id")
	case c.Open && (c.Score != 0 || c.Lane != 0 || c.Sale == 0 || c.Generation == 0):
		return errors.New("given without the line, and with a place in it, or of no sale")
	case c.Score == 0 && !c.Open:
		return errors.New("a grant without a place")
	case c.Granted || c.Work != 0:
		return errors.New("of a ticket")
	case c.Expiry <= c.IssuedAt:
		return errors.New("ended before it was issued")
	}
	return nil
}
