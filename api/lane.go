package api

// laneHeader is where a trusted proxy says to which lane a member belongs.
const laneHeader = "X-Member-Lane"

// laneOf is the lane that the caller's credential gives, by its index: what is
// asked for in any other way counts for nothing. Whoever has a place already
// keeps its lane. A credential that names none gives the first lane, which is
// the ordinary one; a ticket of our own never does.
func laneOf(c caller, v *view) (int, error) {
	if c.lanes == nil {
		return 0, nil
	}
	for i, lane := range v.settings.Lanes {
		// Two values are no choice for us to make, as with X-Member-Id.
		if len(c.lanes) == 1 && lane.Name == c.lanes[0] && i < len(v.Lanes) {
			return i, nil
		}
	}
	return 0, errNoLane
}
