package draw

import "slices"

// Plan is a draw with all that is fixed before anybody enters: the seed, the
// order, and the lanes with their weights.
type Plan struct {
	Draw
	Order Order
	Lanes []Lane
}

// First is the lowest score of a member's key in a lane, by index: what the room
// needs to give them their place. A lane that the plan does not have counts with
// weight 1.
func (p Plan) First(member string, lane int) int64 {
	h, weight := p.hasher(), 1
	if lane >= 0 && lane < len(p.Lanes) {
		weight = p.Lanes[lane].Weight
	}
	return h.key(h.entrant(member), p.Order, weight).First()
}

// Record is the draw of a sale as it is kept.
type Record struct {
	Plan
	Listed bool
	Header Header // of the list, once Listed
	Roots  []Hash // of its pieces, in order
}

// ListHeader is the header of a list by this plan.
func (p Plan) ListHeader(entrants int64, root Hash) Header {
	return Header{
		Kind: KindEntrants, Version: Version, Room: p.Room, Sale: p.Sale, Order: p.Order, Lanes: slices.Clone(p.Lanes),
		Commitment: p.Seed.Commitment(), Seed: p.Seed.Reveal(), Entrants: entrants, Root: root,
	}
}

// List is Draw.List by this plan.
func (p Plan) List(placed []Placed) (*List, error) {
	return p.Draw.List(p.Order, p.Lanes, placed)
}
