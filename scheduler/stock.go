package scheduler

import (
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// staleStock is how old a reading of stock may be when it is told to a room. A
// tick that hung meanwhile leaves it to the next one.
const staleStock = 2 * time.Second

// counted is how many grants a generation of a room had consumed when we last
// heard of it. The zero counted is of no generation: nothing was heard.
type counted struct{ generation, consumed int64 }

// stock is what a term knows of the product that bounds who is let into a room.
type stock struct {
	heard      counted
	last       queue.StockReading // with what had been heard before it; zero: none yet
	generation int64              // of the room that last is of
	asked      time.Time          // when it was begun
	untold     *queue.StockReading
	urgent     bool // what is untold should not wait for the next tick
}

// counts is what each room with a stock has been heard to have consumed. It is
// taken before a reading begins: an answer that comes during the reading may
// count orders that the reading still has in stock, and so hide them.
func (t *term) counts() map[string]counted {
	heard := map[string]counted{}
	for name, r := range t.rooms {
		if r.life.Rules.Stock != "" {
			heard[name] = r.stock.heard
		}
	}
	return heard
}

// restock takes over a reading that was begun at a time asked, when the room had
// been heard to have consumed so many. It tells whether the room should be
// ticked at once: it waits for its first reading, or has just sold out, or sells
// again.
func (t *term) restock(r *room, life queue.Life, before counted, asked time.Time) bool {
	sku := life.Rules.Stock
	if sku == "" || before.generation == 0 || before.generation != life.Generation {
		return false
	}
	old, first := r.stock.last, r.stock.last.SKU != sku || r.stock.generation != life.Generation
	r.stock.last = queue.StockReading{SKU: sku, Left: life.StockLeft, Consumed: before.consumed}
	next := r.stock.last
	r.stock.untold, r.stock.generation, r.stock.asked = &next, life.Generation, asked
	turned := !first && (old.Left == 0) != (next.Left == 0)
	if turned && next.Left == 0 {
		t.Log.Info("room sold out", "room", r.name, "sku", sku)
	} else if turned {
		t.Log.Info("room has stock again", "room", r.name, "sku", sku, "left", next.Left)
	}
	r.stock.urgent = r.stock.urgent || first || turned
	return first || turned
}

// awaitsStock tells that nobody can be let in before a reading is begun: the
// room has been heard of, and that is what the first reading waits for.
func (r *room) awaitsStock() bool {
	s, sku := &r.stock, r.life.Rules.Stock
	return sku != "" && s.heard.generation == r.life.Generation && (s.last.SKU != sku || s.generation != r.life.Generation)
}

// toTell is the reading that the next call of Reserve brings; nil: none.
func (r *room) toTell() *queue.StockReading {
	s := &r.stock
	if s.untold == nil || s.generation != r.life.Generation || s.untold.SKU != r.life.Rules.Stock || time.Since(s.asked) > staleStock {
		return nil
	}
	return s.untold
}

// told notes what a call of Reserve that was answered has brought and taught.
func (s *stock) told(v *visit) {
	if s.untold == v.stock {
		s.untold, s.urgent = nil, false
	}
	s.heard = counted{v.life.Generation, v.reserved.Consumed}
}

// readForStock reads again soon where a room waits for its first reading, and
// has been heard of only since the last one began.
func (t *term) readForStock() {
	for _, r := range t.rooms {
		if r.awaitsStock() {
			t.agenda.hasten(t.read, time.Now().Add(shortestSleep))
			return
		}
	}
}
