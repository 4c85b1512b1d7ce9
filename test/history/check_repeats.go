package history

import "fmt"

// I5. Same member and Idempotency-Key, or same grant: the same order, if any.
func sameKeySameOrder(j *judge) {
	byKey := map[scope]*call{}
	for _, c := range j.orders {
		if c.class != OK || c.Key == "" || j.answeredByGrant(c) {
			continue
		}
		s := scope{c.Member, c.Key}
		if other := byKey[s]; other != nil && other.OrderID != c.OrderID {
			j.violate(fmt.Sprintf("%s got two orders for the key %s", c.Member, c.Key), j.call(other), j.call(c))
			continue
		}
		byKey[s] = c
	}
	for _, o := range j.bought() {
		j.afterwards(o)
	}
}

// answeredByGrant tells that a call showed a token that had paid for an order
// under another key, or none, and was answered with that.
func (j *judge) answeredByGrant(c *call) bool {
	o := j.rows[c.OrderID]
	return c.Replayed && o != nil && o.Grant == c.Grant && o.Key != c.Key
}

// afterwards judges what was answered, with an order's own grant, once somebody
// knew that the order was there.
func (j *judge) afterwards(o *OrderRow) {
	all := j.attempts(o.Grant)
	var first *call
	for _, c := range all {
		if c.class == OK && c.OrderID == o.ID && (first == nil || c.over < first.over) {
			first = c
		}
	}
	if first == nil {
		return
	}
	for _, c := range all {
		if c.begun <= first.over || c.Forged || c.Content == "" {
			continue
		}
		if want := repeat(c, o); want != "" && !j.otherKey(c, o) {
			j.violate(fmt.Sprintf("a call with the grant of order %s, which was there, should have been answered with %s", o.ID, want),
				row(o), j.call(first), j.call(c))
		}
	}
}

// repeat says what c should have been told, if what it was told contradicts the
// order that there is. That a part is out of order contradicts nothing.
func repeat(c *call, o *OrderRow) string {
	want := "that order"
	if c.Content != o.Content {
		want = "entry-token-consumed"
		if c.Key != "" && c.Key == o.Key {
			want = "idempotency-mismatch"
		}
	}
	switch {
	case c.class == Unknown:
		return ""
	case c.class == OK:
		if c.Content == o.Content && c.OrderID == o.ID {
			return ""
		}
		return want
	}
	switch c.code {
	case want:
		return ""
	case "entry-token-invalid", "entry-token-consumed", "idempotency-mismatch", "sold-out", "already-ordered", "order-in-progress":
		return want
	}
	return ""
}

// otherKey tells that a call's key belongs to another order of its member: then
// that order may be the answer too.
func (j *judge) otherKey(c *call, o *OrderRow) bool {
	if c.Key == "" || c.Key == o.Key {
		return false
	}
	p := j.ofKey(c.Member, c.Key)
	return p != nil && p != o
}

// ofKey is the order that a member has for a key.
func (j *judge) ofKey(member, key string) *OrderRow { return j.keyed[scope{member, key}] }

// I5. Of several at once, and of all ever, one made the order; the others were
// told that it was there.
func oneExecutes(j *judge) {
	made := map[string]*call{}
	for _, c := range j.orders {
		if c.class != OK || c.Replayed {
			continue
		}
		if other := made[c.OrderID]; other != nil {
			j.violate(fmt.Sprintf("two calls made the one order %s", c.OrderID), j.call(other), j.call(c))
			continue
		}
		made[c.OrderID] = c
	}
}

// I5. A refused attempt is not remembered: who is refused because of an order
// is refused because of one that is there.
func refusedBecauseOfAnOrder(j *judge) {
	ordered := map[string]bool{}
	for _, o := range j.bought() {
		ordered[o.Member] = true
	}
	for _, c := range j.orders {
		if c.class != Fail || c.Forged {
			continue
		}
		switch c.code {
		case "entry-token-consumed":
			j.because(c, j.paid[c.Grant])
		case "idempotency-mismatch":
			j.because(c, j.ofKey(c.Member, c.Key))
		case "already-ordered":
			if !ordered[c.Member] {
				j.violate(fmt.Sprintf("%s was refused because of an order, and has none", c.Member), j.call(c))
			}
		}
	}
}

// because checks the order that a refusal speaks of: it is there, and of other
// content.
func (j *judge) because(c *call, o *OrderRow) {
	switch {
	case o == nil:
		j.violate(fmt.Sprintf("%s was refused because of an order that is not there", c.Member), j.call(c))
	case o.Content == c.Content && c.Content != "":
		j.violate(fmt.Sprintf("%s was refused because of other content, and it is the same", c.Member), j.call(c), row(o))
	}
}

// I16. Each order has its one event, and that is of its member and grant; when
// all is over it is done, or visibly dead.
func oneEventPerOrder(j *judge) {
	type event struct{ order, kind string }
	events := map[event]*OutboxRow{}
	for i := range j.Final.Outbox {
		e := &j.Final.Outbox[i]
		o := j.rows[e.Order]
		switch {
		case events[event{e.Order, e.Kind}] != nil:
			j.violate(fmt.Sprintf("order %s has two events %s", e.Order, e.Kind), outboxRow(events[event{e.Order, e.Kind}]), outboxRow(e))
		case o == nil || o.Void:
			j.violate("an event has no order", outboxRow(e))
		case e.Kind == "consume" && (e.Member != o.Member || e.Grant != o.Grant):
			j.violate("an event is of another member or grant than its order", outboxRow(e), row(o))
		case j.Facts.Quiesced && e.Status == "pending":
			j.violate("all is over, and an event still waits", outboxRow(e), row(o))
		}
		events[event{e.Order, e.Kind}] = e
	}
	for _, o := range j.bought() {
		if events[event{o.ID, "consume"}] == nil {
			j.violate(fmt.Sprintf("order %s has no event", o.ID), row(o))
		}
	}
}

// I16. Done means done: the room was told of the order, and nobody holds the
// grant any more.
func doneIsDelivered(j *judge) {
	told, journaled := map[string]bool{}, j.journaled()
	j.eachMoment(func(m *moment) {
		for i := 0; m.Script == "consume" && m.Err == "" && i+2 < len(m.Args); i += 3 {
			told[m.Args[i]+" "+m.Args[i+1]] = true
		}
	})
	holder := map[string]string{}
	for name, m := range j.Final.Redis.Members {
		if m.Grant != nil {
			holder[m.Grant.ID] = name
		}
	}
	for i := range j.Final.Outbox {
		e := &j.Final.Outbox[i]
		if e.Status != "done" || e.Kind != "consume" {
			continue
		}
		if journaled && !told[e.Member+" "+e.Grant] {
			// In a room without data there is nothing to do, and nothing is written.
			j.excuse(j.anyGap() || j.ended(), "an event is done, and the room was never told", outboxRow(e))
		}
		if who := holder[e.Grant]; who != "" && j.Facts.Quiesced {
			j.excuse(j.anyGap(), fmt.Sprintf("an event is done, and %s holds its grant", who), outboxRow(e))
		}
	}
}

// excuse makes a deviation of what has an excuse, and a violation of what has none.
func (j *judge) excuse(excused bool, text string, slice ...string) {
	if excused {
		j.deviate(text + ": " + slice[0])
		return
	}
	j.violate(text, slice...)
}

// anyGap tells whether anything was lost at all.
func (j *judge) anyGap() bool { return len(j.gaps) > 0 }

// ended tells whether the room has been dropped at some time.
func (j *judge) ended() bool {
	dropped := false
	j.eachMoment(func(m *moment) { dropped = dropped || m.Mode == "drop" })
	return dropped
}

func outboxRow(e *OutboxRow) string {
	return fmt.Sprintf("event %d: %s of order %s, member %s grant %s, %s after %d attempts", e.ID, e.Kind, e.Order, e.Member, e.Grant, e.Status, e.Attempts)
}
