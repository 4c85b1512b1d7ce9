package queue

import "time"

// StockReading is what a scheduler has read of the product that bounds who is
// let into a room, together with what it knew of the room before it read.
//
// The order of the two is what makes the bound safe: every order whose grant
// had been counted in Consumed had left the stock already when Left was read.
// What is counted later can be subtracted, and at worst is subtracted twice.
type StockReading struct {
	SKU      string
	Left     int64 // pieces in Postgres
	Consumed int64 // the room's counter, from an answer that came before the reading began
}

// StockSnapshot is the last reading that a room has been told. The zero
// StockSnapshot knows nothing.
type StockSnapshot struct {
	Left int64
	Told time.Time // by the clock of Redis; zero: no reading of the room's product yet
}

// SoldOut tells whether the last reading of the product that bounds the room
// found nothing left. It is false where none does, and where nothing was read.
func (s Snapshot) SoldOut() bool {
	return s.Rules.Stock != "" && !s.Stock.Told.IsZero() && s.Stock.Left == 0
}

// soldOut is the state of a room with nothing left to sell that would be in
// state otherwise. Before admitsAt nothing was on sale yet, so people line up
// for what an operator may still put in.
func (s Snapshot) soldOut(state RoomState, now time.Time) RoomState {
	switch state {
	case Open, Draining, Paused:
		if !now.Before(s.Rules.AdmitsAt) {
			return SoldOut
		}
	}
	return state
}
