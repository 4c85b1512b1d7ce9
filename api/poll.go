package api

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/linekeeper/linekeeper/queue"
)

// poll is GET /v1/rooms/{room}/entries/me.
func (a *API) poll(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "room")
	if d := a.failing.passing(name); d != nil {
		return a.passOpen(w, r, d, false)
	}
	v, err := a.rooms.get(r.Context(), name)
	if err != nil {
		return err
	}
	c, err := a.known(r, name, v)
	if err != nil {
		return err
	}
	if err := a.guard.poll(w, name, c); err != nil {
		return err
	}
	st, err := a.where(r, c, v)
	if err != nil {
		return err
	}
	if st.Status == queue.Waiting && st.InLane < v.Rules.Horizon() {
		a.heard.note(name, c.member)
	}
	return a.answer(w, r, c, v, st)
}

// where says where a known caller stands.
func (a *API) where(r *http.Request, c caller, v *view) (queue.Standing, error) {
	switch {
	case !c.hasTicket || c.ticket.Place.Score == 0:
		return a.Line.Standing(r.Context(), v.Room, c.member)
	case c.ticket.Sale != v.Sale:
		// Of a sale that an operator has ended; unless they have entered again.
		st, err := a.Line.Standing(r.Context(), v.Room, c.member)
		if err == nil && st.Status == queue.NotEntered && st.Outcome == "" {
			st.Outcome = queue.OutcomeReset
		}
		return st, err
	}
	return a.resume(r, c, v)
}

// pollLine asks the line where the holder of a ticket stands, in the way that fits
// the room: where its lanes are one line, a rank counts over all of them.
func (a *API) pollLine(ctx context.Context, c caller, v *view) (queue.Standing, error) {
	if v.Rules.OneLine {
		return a.Line.PollLine(ctx, v.Room, c.member, c.ticket.Place, len(v.Lanes))
	}
	return a.Line.Poll(ctx, v.Room, c.member, c.ticket.Place)
}

// known is caller for those who must be somebody.
func (a *API) known(r *http.Request, name string, v *view) (caller, error) {
	c, err := a.caller(r, name, v)
	if err == nil && c.member == "" {
		err = errTicketInvalid
	}
	return c, err
}

// leave is DELETE /v1/rooms/{room}/entries/me. It gives up the place of the
// ticket and no other: a copy that arrives after the member has entered again
// changes nothing.
func (a *API) leave(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "room")
	v, err := a.rooms.get(r.Context(), name)
	if err != nil {
		return err
	}
	c, err := a.known(r, name, v)
	if err != nil {
		return err
	}
	left, err := a.Line.Leave(r.Context(), name, c.member, c.ticket.Place.Score, queue.OutcomeLeft)
	if err != nil {
		return err
	}
	if left {
		a.moved(r.Context(), Move{Room: name, Member: c.member, Lane: v.lane(c.ticket.Place.Lane), To: string(queue.OutcomeLeft),
			From: "ANY", Score: c.ticket.Place.Score, Waiting: v.waiting(c.ticket.Place.Lane)})
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
