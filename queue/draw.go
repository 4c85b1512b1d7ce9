package queue

import "time"

// Beyond is above all scores that a draw or a lottery gives, which are no times.
// In rooms that have one, every other score is Beyond or more. (Package draw has
// the rules of these scores.)
const Beyond = 1<<49 + 1<<50

// DrawState is how far the draw of a room has come. It never goes back within a
// sale.
type DrawState int

// The states of a draw. The scripts use the same numbers.
const (
	DrawNone   DrawState = iota // the room has no draw
	DrawOpen                    // places are given by lot; nobody sees a rank
	DrawClosed                  // admitsAt was seen: whoever comes now stands behind
	DrawListed                  // the list of entrants is kept, the seed public; members are taken
)

// String is the state as it is shown.
func (d DrawState) String() string {
	return [...]string{"none", "open", "closed", "listed"}[d]
}

// Undecided tells that members may not know yet where they stand.
func (d DrawState) Undecided() bool { return d == DrawOpen || d == DrawClosed }

// DrawState is that of a room which has noted the given state, at now: a draw is
// over at admitsAt, whether anything has run by then or not.
func (r Rules) DrawState(noted DrawState, now time.Time) DrawState {
	switch {
	case !r.Draw:
		return DrawNone
	case now.Before(r.AdmitsAt):
		return max(noted, DrawOpen)
	default:
		return max(noted, DrawClosed)
	}
}

// Lot is where the draw or the lottery of a sale puts a member: at a score from
// First on, which of these is the room's to say. The zero Lot is none.
type Lot struct {
	Sale  int64
	First int64
}

// Drawn tells that a draw or a lottery gave the place, if the room has one. Its
// score is no time then.
func (p Place) Drawn() bool { return p.Score < Beyond }
