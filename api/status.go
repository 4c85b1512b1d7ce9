package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/api/spec"
)

// status is GET /v1/rooms/{room}: the same for everybody, so that caches can
// answer for us however many ask.
func (a *API) status(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "room")
	var v *view
	if d := a.failing.passing(name); d != nil {
		v = d.view
	} else {
		var err error
		if v, err = a.rooms.withMarks(r.Context(), name); err != nil {
			return err
		}
	}
	s := spec.RoomStatus{
		Room: v.Room, RoomState: v.State(v.now()), Waiting: v.Waiting(), ServerTime: v.now().UTC(), Message: message(v),
		OpensAt: moment(v.Rules.OpensAt), AdmitsAt: moment(v.Rules.AdmitsAt), ClosesAt: moment(v.Rules.ClosesAt),
		Lanes: []spec.LaneStatus{},
	}
	for i, l := range v.Lanes {
		lane := spec.LaneStatus{Name: v.lane(i), Waiting: l.Waiting, Marks: [][]int64{}}
		if !v.Draw.Undecided() {
			for _, m := range l.Marks {
				lane.Marks = append(lane.Marks, []int64{m.Rank, m.Score})
			}
		}
		s.Lanes = append(s.Lanes, lane)
	}
	w.Header().Set("Cache-Control", "public, max-age=1")
	return writeJSON(w, http.StatusOK, s)
}

// moment is null for the zero time: there is no such limit.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (a *API) live(w http.ResponseWriter, _ *http.Request) {
	_ = writeJSON(w, http.StatusOK, spec.Health{Status: "ok"})
}

// ready is GET /readyz. It does not say which part is missing: that is for the
// log and the metrics.
func (a *API) ready(w http.ResponseWriter, r *http.Request) {
	why := a.Ready()
	if a.failing.any() {
		// A room that passes people without Redis needs to be sent them.
		why = slices.DeleteFunc(slices.Clone(why), func(part string) bool { return part == "redis" })
	}
	if len(why) > 0 {
		problem.Write(w, r, problem.New("unavailable").WithRetryAfter(time.Second))
		return
	}
	_ = writeJSON(w, http.StatusOK, spec.Health{Status: "ok"})
}
