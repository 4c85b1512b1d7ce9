package room

import (
	"fmt"
	"slices"
)

// lottery is the priority by which every place goes by lot.
const lottery = "lottery"

// ByLot tells whether a sale with these settings has a draw or a lottery, and so
// needs a seed.
func (s Settings) ByLot() bool { return s.Draw || s.Priority == lottery }

// Weighted tells whether lanes of more weight have better chances in it. Else
// everybody in a lane has the same.
func (s Settings) Weighted() bool { return s.Priority == lottery }

// lots has the rules of settings that can't stand beside a draw or a lottery.
func (s Settings) lots() Problems {
	var wrong Problems
	refuse := func(bad bool, field, detail string) {
		if bad {
			wrong = append(wrong, Problem{field, detail})
		}
	}
	refuse(s.Draw && s.AdmitsAt == nil, "admitsAt", "must be given with draw: it is when the draw ends")
	refuse(s.Draw && s.Priority == "boost", "priority", `must not be "boost" with draw: a place that was drawn can't be moved`)
	refuse(s.Draw && s.DirectAdmission, "directAdmission", "must be false where draw is true")
	refuse(s.ByLot() && s.MaxWaitSeconds > 0, "maxWaitSeconds", fmt.Sprintf("must be 0 where places go by lot, which do not say since when somebody waits, got %d", s.MaxWaitSeconds))
	return wrong
}

// FixedInSale returns, as Problems, what next changes that can't change once a
// sale has begun: what decides the places of a draw or a lottery, of which some
// may have been given.
func (s Settings) FixedInSale(next Settings) error {
	const detail = "can't change what decides places by lot in a sale that has begun: delete the room and make it again, which begins the next sale"
	var wrong Problems
	if s.Draw != next.Draw {
		wrong = append(wrong, Problem{"draw", detail})
	}
	if s.Priority != next.Priority && (s.ByLot() || next.ByLot()) {
		wrong = append(wrong, Problem{"priority", detail})
	}
	if s.ByLot() && next.ByLot() && !slices.Equal(s.Lanes, next.Lanes) {
		wrong = append(wrong, Problem{"lanes", detail})
	}
	return wrong.err()
}
