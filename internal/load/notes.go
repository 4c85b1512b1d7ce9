package load

import (
	"fmt"
	"slices"
)

// notes are what a reader of the report should know before the figures, each
// with what to do.
func (r *Report) notes(j *judge, w *watch) (notes []string) {
	note := func(when bool, format string, args ...any) {
		if when {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	limited := r.sum(func(p Problem) bool { return p.Code == "rate-limited" && p.Call == kindNames[enterCall] })
	note(limited > 0 && r.Plan.Forwarded, "%d enters were put off by a limit of the server per address: it does not believe X-Forwarded-For from here. "+
		"Add this machine to LINEKEEPER_TRUSTED_PROXIES there, or raise LINEKEEPER_LIMIT_ENTER_ADDRESS for the time of the test", limited)
	note(limited > 0 && !r.Plan.Forwarded, "%d enters were put off by a limit of the server per address, since all come from one: "+
		"see --forwarded, or raise LINEKEEPER_LIMIT_ENTER_ADDRESS for the time of the test", limited)
	full := r.sum(func(p Problem) bool { return p.Code == "room-full" })
	note(full > 0, "%d enters found the room full: maxWaiting is too small for so many", full)
	sold := r.sum(func(p Problem) bool { return p.Code == "sold-out" || p.Code == "room-sold-out" })
	note(sold > 0, "%d calls found the product sold out: `linekeeper product set` puts more in stock", sold)
	note(slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Status == 200 }), "some answers were none that this tool can follow; see the problems below")
	note(r.SendLag.P99 > 100, "calls were sent late: one in a hundred by %.0f ms or more, because all %d connections were waiting for answers, or this machine is too busy. "+
		"What was late counts in the latencies \"from due\". More --connections help only if the server has time", r.SendLag.P99, r.Plan.Connections)
	note(j.risen.times > 0 && r.unseen(rankFalls), "ranks grew %d times, by %d at most; whether by people who came back to places ahead, only an admin token lets one see", j.risen.times, j.risen.most)
	note(w.missed.Load() > 0, "%d looks at the operators' API came to nothing; the windows judged are longer by them", w.missed.Load())
	note(len(r.RoomStates) > 1 || len(r.RoomStates) == 1 && r.RoomStates[0] != "OPEN", "the room was %v", r.RoomStates)
	note(r.People.InLine+r.People.WithToken+r.People.NotEntered > 0, "%d were not done when the time was over; --tail gives them more", r.People.InLine+r.People.WithToken+r.People.NotEntered)
	note(r.LeftInRoom > 0, "%d could not be taken out of the line at the end: they are silent in it now, and will be passed over", r.LeftInRoom)
	return notes
}

func (r *Report) unseen(p promise) bool { return r.Promises[p].Unseen != "" }
