package api

import "net/http"

// laneHeader is where a trusted proxy says to which lane a member belongs.
const laneHeader = "X-Member-Lane"

// laneOf is the lane that the caller's credential gives, by its index: what is
// asked for in any other way counts for nothing. Whoever has a place already
// keeps its lane. A credential that names none gives the first lane, which is
// the ordinary one.
//
// The header is part of the credential where a proxy says who the member is;
// named has checked that it is a proxy that we believe. A ticket of our own says
// nothing about a lane. A credential of another kind that carries a claim about
// it would be read here, and nowhere else.
func (a *API) laneOf(r *http.Request, v *view) (int, error) {
	if !a.MemberHeader {
		return 0, nil
	}
	names := r.Header.Values(laneHeader)
	if len(names) == 0 {
		return 0, nil
	}
	for i, lane := range v.settings.Lanes {
		// Two values are no choice for us to make, as with X-Member-Id.
		if len(names) == 1 && lane.Name == names[0] && i < len(v.Lanes) {
			return i, nil
		}
	}
	return 0, errNoLane
}
