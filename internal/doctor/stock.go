package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/linekeeper/linekeeper/room"
)

// lateStock is how long the scripts believe a reading of stock.
const lateStock = 10 * time.Second

// roomStock looks at the product that bounds who is let into a room.
func roomStock(ctx context.Context, e *exam, w *ward) Finding {
	switch {
	case w.err != nil:
		return skipped("not looked at: the room can't be read from Postgres")
	case w.room.Settings.Stock == nil:
		return good("no product bounds who is let in")
	}
	sku := *w.room.Settings.Stock
	put := "`linekeeper product set " + sku + " stock=N`"
	p, err := e.store.Product(ctx, sku)
	switch {
	case errors.Is(err, room.ErrNotFound):
		return fail(put+" with a price and a currency, or `linekeeper room set "+w.name+" stock=`", "there is no product %s any more: that counts as sold out", sku)
	case err != nil:
		return unreadable("products", err)
	case p.Stock == 0:
		return warn("if that is not meant: "+put, "%s is sold out: nobody enters, nobody is let through, unless the room is off", sku)
	}
	if other := e.alsoBoundBy(sku, w); len(other) > 0 {
		return warn("give each room a product of its own, or expect people with a token to find nothing left",
			"%d of %s left, and it bounds %s too: each room lets in as many as if it had all to itself", p.Stock, sku, list(other))
	}
	if w.agrees() && w.snap.Now.Sub(w.snap.Stock.Told) > lateStock {
		return fail("see that a scheduler leads (check \"leader\"), and look at its log",
			"the room was not told of the stock of %s for %v: nobody is let through, unless the room is off", sku, lateStock)
	}
	return good("%d of %s left, times %v", p.Stock, sku, w.room.Settings.Overbook)
}

// alsoBoundBy lists the other rooms that a product bounds.
func (e *exam) alsoBoundBy(sku string, w *ward) []string {
	var names []string
	for _, o := range e.wards {
		if o != w && o.err == nil && o.room.Settings.Stock != nil && *o.room.Settings.Stock == sku {
			names = append(names, o.name)
		}
	}
	return names
}
