package history

import (
	"fmt"
	"slices"
)

// bought are the rows that are orders, in the order of their making.
func (j *judge) bought() []*OrderRow {
	var out []*OrderRow
	for i := range j.Final.Orders {
		if o := &j.Final.Orders[i]; !o.Void {
			out = append(out, o)
		}
	}
	return out
}

// attempts are the calls that asked for an order with a grant.
func (j *judge) attempts(grant string) []*call {
	return j.byGrant[grant]
}

// I1. A void row counts: it says that there is no order.
func oneOrderPerGrant(j *judge) {
	first := map[string]*OrderRow{}
	for i := range j.Final.Orders {
		o := &j.Final.Orders[i]
		if other := first[o.Grant]; other != nil {
			j.violate(fmt.Sprintf("grant %s has two rows", o.Grant), row(other), row(o))
			continue
		}
		first[o.Grant] = o
	}
	told := map[string]*call{}
	for _, c := range j.orders {
		// An answer to an Idempotency-Key is the order of another grant, rightly.
		if c.class != OK || c.Grant == "" || c.Replayed && c.Key != "" {
			continue
		}
		if other := told[c.Grant]; other != nil && other.OrderID != c.OrderID {
			j.violate(fmt.Sprintf("grant %s is told to have paid for two orders", c.Grant), j.call(other), j.call(c))
			continue
		}
		told[c.Grant] = c
	}
}

// I2. The row says whether the room allowed one order when it was placed; the
// run knows it of all its time.
func oneOrderPerMember(j *judge) {
	type who struct {
		room, member string
		sale         int64
	}
	first := map[who]*OrderRow{}
	for _, o := range j.bought() {
		if !o.Once && !j.Facts.OneOrder {
			continue
		}
		w := who{o.Room, o.Member, o.Sale}
		if other := first[w]; other != nil {
			j.violate(fmt.Sprintf("%s has two orders in sale %d", o.Member, o.Sale), row(other), row(o))
			continue
		}
		first[w] = o
	}
}

// I3. A grant that was issued and undone by a loss has been issued.
func issuedToItsMember(j *judge) {
	if !j.journaled() {
		return
	}
	for _, o := range j.bought() {
		made := j.issued[o.Grant]
		if slices.ContainsFunc(made, func(i issue) bool { return i.member == o.Member }) {
			continue
		}
		if len(made) > 0 {
			j.violate(fmt.Sprintf("order %s of %s was paid for with a grant of %s", o.ID, o.Member, made[0].member),
				row(o), j.step(made[0].m, made[0].member))
			continue
		}
		// The grant may have been issued, handed out and lost between two readings
		// of the journal: then nobody has heard of it before.
		if at, ok := j.heardOf(o.Grant); ok && j.unreadDuring(at.begun, at.over) {
			j.deviate("issue of the grant of an order lost unread: " + row(o))
			continue
		}
		j.violate(fmt.Sprintf("the grant of order %s was never issued", o.ID), append([]string{row(o)}, j.told(j.attempts(o.Grant))...)...)
	}
}

// heardOf is the first call that knew of a grant.
func (j *judge) heardOf(grant string) (*call, bool) {
	c := j.known[grant]
	return c, c != nil
}

// I4. What a member was told to have ordered is there, and is what was asked
// for. CONSUMED with an order's id is such an answer too.
func acknowledgedIsThere(j *judge) {
	for i := range j.calls {
		c := &j.calls[i]
		if c.class != OK || c.OrderID == "" && c.F != Order {
			continue
		}
		o := j.rows[c.OrderID]
		switch {
		case o == nil:
			j.violate(fmt.Sprintf("order %q was acknowledged and is not there", c.OrderID), j.call(c))
		case o.Void:
			j.violate(fmt.Sprintf("order %s was acknowledged and is void", c.OrderID), j.call(c), row(o))
		case c.F == Order && c.Content != "" && c.Content != o.Content:
			j.violate(fmt.Sprintf("order %s was acknowledged for other content than it has", c.OrderID), j.call(c), row(o))
		}
	}
}

// I4. Somebody must have asked for each order, with this content and key, whose
// call did not definitely fail and was not told that the order had been there.
//
// One call is one request: a client that repeats by itself (as net/http does
// with an Idempotency-Key) hides from its caller which of the two had the effect.
func failedLeftNothing(j *judge) {
	for _, o := range j.bought() {
		all := j.attempts(o.Grant)
		if slices.ContainsFunc(all, func(c *call) bool { return mayHaveMade(c, o) }) {
			continue
		}
		text := fmt.Sprintf("order %s is there, and every attempt with its grant failed or found it", o.ID)
		if len(all) == 0 {
			text = fmt.Sprintf("order %s is there, and nobody has asked for it", o.ID)
		}
		j.violate(text, append([]string{row(o)}, j.told(all)...)...)
	}
}

func mayHaveMade(c *call, o *OrderRow) bool {
	if c.Content != "" && c.Content != o.Content || c.Key != o.Key {
		return false
	}
	return c.class == Unknown || c.class == OK && c.OrderID == o.ID && !c.Replayed
}

// I4. "The entry token is not valid" means that there is no order and never
// will be. Only a void row can say that: a transaction may be on its way.
func refusedNeverPays(j *judge) {
	for _, c := range j.orders {
		if c.class != Fail || c.code != "entry-token-invalid" || c.Forged || c.Grant == "" {
			continue
		}
		if o := j.paid[c.Grant]; o != nil {
			j.violate(fmt.Sprintf("grant %s was refused for good and has paid for an order", c.Grant), j.call(c), row(o))
		} else if j.voided[c.Grant] == nil {
			j.violate(fmt.Sprintf("grant %s was refused for good, and no void row keeps a late order out", c.Grant), j.call(c))
		}
	}
}

// I4. What failed has taken no stock, and what is there has.
func stockAddsUp(j *judge) {
	if j.Facts.Stock == nil || !j.Facts.Quiesced {
		return
	}
	sold := map[string]int64{}
	for _, o := range j.bought() {
		for _, it := range o.Items {
			sold[it.SKU] += it.Quantity
		}
	}
	for _, p := range j.Final.Products {
		begun, known := j.Facts.Stock[p.SKU]
		for _, s := range j.Facts.Supplies {
			if s.SKU == p.SKU {
				begun += s.N
			}
		}
		if known && begun-sold[p.SKU] != p.Stock {
			j.violate(fmt.Sprintf("of %d %s, %d were sold and %d are left", begun, p.SKU, sold[p.SKU], p.Stock))
		}
	}
}

// I18. An order's row agrees with the token that paid for it, and a token that
// was tampered with, or shown by another, pays for nothing.
func exactTokenAlone(j *judge) {
	for _, c := range j.orders {
		if c.class != OK {
			continue
		}
		if c.Forged {
			j.violate("a token that is not the exact one was taken", j.call(c))
			continue
		}
		o := j.rows[c.OrderID]
		if o == nil {
			continue // I4 says so
		}
		byKey := c.Replayed && c.Key != "" && c.Key == o.Key
		if o.Member != c.Member || c.Grant != "" && o.Grant != c.Grant && !byKey {
			j.violate(fmt.Sprintf("%s was answered with the order of another member or grant", c.Member), j.call(c), row(o))
		}
	}
	for _, o := range j.bought() {
		if j.Room.Name != "" && o.Room != j.Room.Name {
			j.violate("an order is of another room", row(o))
		}
		for _, i := range j.issued[o.Grant] {
			if i.m.Generation != o.Generation {
				j.violate("an order is of another generation than its grant", row(o), j.step(i.m, i.member))
			}
		}
	}
}

// I20. The claim of an attempt has the id of the order that it may become.
func noOrderWithoutClaim(j *judge) {
	if !j.journaled() {
		return
	}
	claims := map[string]*moment{}
	j.eachMoment(func(m *moment) {
		if m.Script == "claim" && m.Word() == "OK" {
			claims[m.arg(2)] = m
		}
	})
	for _, o := range j.bought() {
		m := claims[o.ID]
		if m != nil && m.arg(0) == o.Member && m.arg(1) == o.Grant {
			continue
		}
		all := j.attempts(o.Grant)
		switch {
		case m != nil:
			j.violate(fmt.Sprintf("order %s was claimed for another member or grant", o.ID), row(o), j.step(m, m.arg(0)))
		case j.Facts.FailOpen:
			j.deviate("order without a claim in a room that fails open: " + row(o))
		case slices.ContainsFunc(all, func(c *call) bool { return mayHaveMade(c, o) && j.unreadDuring(c.begun, c.over) }):
			j.deviate("claim of an order lost unread: " + row(o))
		default:
			j.violate(fmt.Sprintf("order %s was placed without a claim", o.ID), append([]string{row(o)}, j.told(all)...)...)
		}
	}
}
