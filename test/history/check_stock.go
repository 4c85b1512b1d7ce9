package history

import "fmt"

// staleReading is how long a room believes a reading of stock.
const staleReading = 10 * second

// I11: a step that raises what is inside leaves it within what the room was told
// of its stock, less what has been consumed since that was read.
func withinStock(j *judge) {
	j.eachRise(func(m *moment, inside int64) {
		if m.conf.stock == "" || m.conf.isOff() { // who is off passes everybody
			return
		}
		told, consumed := m.State.Stock, m.Stats["consumed"]
		switch age := m.Now - told.At; {
		case told.SKU != m.conf.stock:
			j.violate(fmt.Sprintf("somebody is let in, and what is left of %s is not known", m.conf.stock), j.step(m, m.names()...))
		case age < 0 || age > staleReading:
			j.violate(fmt.Sprintf("somebody is let in by a reading of stock that is %d ms old", age/1000), j.step(m, m.names()...))
		case consumed < told.Consumed:
			j.violate(fmt.Sprintf("somebody is let in by a reading that had counted %d as consumed, of %d", told.Consumed, consumed), j.step(m, m.names()...))
		default:
			allowed := told.Left*m.conf.overbook/1000 - (consumed - told.Consumed)
			if inside > allowed {
				j.violate(fmt.Sprintf("%d are let in at once; %d left, times %.3f, less %d consumed since, allow %d", inside, told.Left,
					float64(m.conf.overbook)/1000, consumed-told.Consumed, allowed), j.step(m, m.names()...))
			}
		}
	})
}

// I11, to the end: in a room that has a product to itself, lets in as many as
// there are pieces, and sells them one at a time, whoever holds a grant finds a
// piece. What takes that promise back is listed in stockDisturbed.
func holderFindsPiece(j *judge) {
	sku := j.boundBy()
	if sku == "" || !j.journaled() {
		return
	}
	for _, c := range j.orders {
		if c.Content != "1x"+sku {
			j.deviate("not judged: orders of several pieces, or of something else")
			return
		}
	}
	for _, c := range j.orders {
		if c.class != Fail || c.code != "sold-out" {
			continue
		}
		if why := j.stockDisturbed(c); why != "" {
			j.deviate("told sold-out with a grant in hand: " + why)
			continue
		}
		j.violate(fmt.Sprintf("%s holds a grant and is told that nothing is left", c.Member), j.call(c))
	}
}

// boundBy is the product that bounds the room during the whole run, with as
// many let in as there are pieces; empty where there is none.
func (j *judge) boundBy() string {
	sku := ""
	for _, l := range j.lines {
		for _, m := range l.moments {
			if m.Script != "configure" || len(m.Conf) == 0 {
				continue
			}
			c := confOf(m.Conf)
			if c.stock == "" || c.overbook != 1000 || sku != "" && c.stock != sku {
				return ""
			}
			sku = c.stock
		}
	}
	return sku
}

// stockDisturbed is why the holder of a grant may be told sold-out: what takes
// from the stock, or makes grants, past what the room can count.
func (j *judge) stockDisturbed(c *call) string {
	for _, f := range j.Facts.Losses {
		if f.Mono <= c.over {
			return "after a loss of data, or a flush"
		}
	}
	for _, s := range j.Facts.Supplies {
		if s.N < 0 && s.Mono <= c.over {
			return "after an operator took stock away"
		}
	}
	why := ""
	j.eachMove(func(m *moment, v move) {
		if why != "" || m.surelyAfter(c.over) {
			return
		}
		// Its own lease has ended, or that of somebody whose order came after all.
		id := v.before.grantID()
		lapsed := id != "" && v.before.claimID() != "" && v.after.claimID() == "" && m.Script != "release" && m.Script != "consume"
		if lapsed && (id == c.Grant || j.paid[id] != nil) {
			why = "an order took longer than its lease"
		}
	})
	j.eachMoment(func(m *moment) {
		if m.conf != nil && m.conf.isOff() && !m.surelyAfter(c.over) {
			why = "after the room was off, and let everybody through"
		}
		if m.accepted() && !m.surelyAfter(c.over) {
			why = "after a step of the clock back, which makes grants that had expired good again"
		}
	})
	return why
}
