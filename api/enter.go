package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/linekeeper/linekeeper/api/jsonbody"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// enter is POST /v1/rooms/{room}/entries. It takes nothing from a body: what
// decides a place is a verified credential and the clock of Redis.
func (a *API) enter(w http.ResponseWriter, r *http.Request) error {
	if err := emptyBody(w, r); err != nil {
		return err
	}
	name := chi.URLParam(r, "room")
	if d := a.failing.passing(name); d != nil {
		return a.passOpen(w, r, d, true)
	}
	v, err := a.rooms.get(r.Context(), name)
	if err != nil {
		return err
	}
	c, err := a.caller(r, name, v)
	if err != nil {
		return err
	}
	if c.lane, err = laneOf(c, v); err != nil {
		return err
	}
	// Nor is a code used up for somebody whom a lost answer would make a stranger.
	asksFirst := v.settings.EnterNeedsTicket || c.member == "" && showsCode(r)
	if asksFirst && !c.hasTicket && len(a.screens(v)) == 0 {
		return a.ticketFirst(w, r, c, v)
	}
	// Who brings what they were asked for was counted as a newcomer when they asked.
	counted := len(a.screens(v)) > 0 && a.newcomer(r, c, v).asked()
	wait, err := a.guard.enter(w, r, c, v, counted)
	if err != nil {
		return err
	}
	return later(a.enterAs(w, r, c, v), wait)
}

// enterAs is enter for a caller who may.
func (a *API) enterAs(w http.ResponseWriter, r *http.Request, c caller, v *view) error {
	name := v.Room
	st, err := a.take(r, &c, v)
	if a.Observer.Entered != nil {
		a.Observer.Entered(name, entered(st, err))
	}
	if errors.Is(err, errMustShow) {
		return a.mustShow(w, r, c, v)
	}
	if err != nil {
		return err
	}
	if st.New {
		a.moved(r.Context(), Move{Room: name, Member: c.member, Lane: v.lane(st.Place.Lane), From: string(queue.NotEntered),
			To: string(st.Status), Grant: st.Grant.ID, Score: st.Place.Score, Waiting: st.Total})
	}
	if straightIn(st) && a.Observer.StraightIn != nil {
		a.Observer.StraightIn(name, v.lane(st.Place.Lane))
	}
	return a.answer(w, r, c, v, st)
}

// take finds the caller's place: the one they have, the one they lost, or a
// new one.
func (a *API) take(r *http.Request, c *caller, v *view) (queue.Standing, error) {
	known := c.member != ""
	if !known {
		c.member = credential.NewMember()
	} else if c.ticket.Place.Score > 0 && c.ticket.Sale == v.Sale {
		st, err := a.resume(r, *c, v)
		// Whoever has ordered may enter again, where the room allows it; not with a
		// place that was lost and turns out to have been used (of no generation).
		over := st.Status == queue.NotEntered || st.Status == queue.Consumed && st.Generation > 0
		if err != nil || !over {
			return st, err
		}
	}
	// First what costs nobody anything: nobody is to work, or to use up a code, for
	// a room that keeps them out.
	if err := a.mayEnter(r, *c, v, known); err != nil {
		return queue.Standing{}, err
	}
	if st, err := a.screened(r, c, v, known); err != nil || st.Status != "" {
		return st, err
	}
	if v.settings.InvitedOnly || showsCode(r) {
		st, err := a.byRight(r, c, v)
		if err != nil || st.Status != "" {
			return st, err
		}
	}
	return a.enterLine(r.Context(), v, c.member, c.lane)
}

// mayEnter refuses whom an operator keeps out, and a stranger who is not invited.
func (a *API) mayEnter(r *http.Request, c caller, v *view, known bool) error {
	out, err := a.kept.bars(r.Context(), v.Room, c.member, v.Sale)
	switch {
	case err != nil:
		return err
	case out:
		return errBlocked
	case v.settings.InvitedOnly && !known && !showsCode(r) && c.lanes == nil:
		return errNotInvited
	}
	return nil
}

// ticketFirst hands out a ticket that makes somebody a member and nothing
// more: until it is shown, the room keeps nothing of them.
func (a *API) ticketFirst(w http.ResponseWriter, r *http.Request, c caller, v *view) error {
	if c.member == "" {
		c.member = credential.NewMember()
	}
	return a.answer(w, r, c, v, queue.Standing{Status: queue.NotEntered})
}

// resume says where the holder of a ticket stands. Somebody whom the room does
// not know at all, because Redis has lost them, gets the old place back, if
// nothing has become of it.
func (a *API) resume(r *http.Request, c caller, v *view) (queue.Standing, error) {
	ctx := r.Context()
	st, err := a.pollLine(ctx, c, v)
	if err != nil || st.Status != queue.NotEntered || st.Outcome != "" || !v.mayHaveLost(c.ticket, st.Generation) {
		return st, err
	}
	ctx, cancel := context.WithTimeout(ctx, booksTimeout)
	defer cancel()
	r = r.WithContext(ctx)
	lost := queue.Lost{Generation: st.Generation, Member: c.member, Ticket: c.ticket.Generation, Place: c.ticket.Place, Issued: c.ticket.IssuedAt}
	var may bool
	lost.Floor, may, err = a.Books.Restorable(ctx, v.Room, v.Sale, c.member, c.ticket.Place.Lane)
	if err != nil {
		return queue.Standing{}, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	if !may {
		return queue.Standing{Status: queue.NotEntered, Outcome: queue.OutcomeEvicted}, nil
	}
	bought, err := a.voidLostToken(r, c, v, &lost)
	if err != nil || bought.Status == queue.Consumed {
		return bought, err
	}
	if c.ticket.Granted && !lost.LostToken {
		a.restored(v.Room, "refused")
		return st, nil // the place had been let through: it was of no use but for the token
	}
	back, err := a.Returns.Restore(ctx, v.Room, lost)
	if errors.Is(err, queue.ErrGone) {
		a.restored(v.Room, "refused")
		return st, nil
	}
	if err == nil && back.New {
		a.broughtBack(ctx, c, v, back)
		back.New = false // an old place is not a new entry
	}
	return back, err
}

// broughtBack tells of a place that has been restored. That others have been let
// through first is a broken promise, and said aloud.
func (a *API) broughtBack(ctx context.Context, c caller, v *view, back queue.Standing) {
	result := "restored"
	if back.Passed {
		result = "passed"
		a.Log.WarnContext(ctx, "place restored behind others who were let through", "room", v.Room,
			"lane", v.lane(back.Place.Lane), "score", back.Place.Score)
	}
	a.restored(v.Room, result)
	a.moved(ctx, Move{Room: v.Room, Member: c.member, Lane: v.lane(back.Place.Lane), From: "LOST",
		To: string(back.Status), Score: back.Place.Score, Waiting: back.Total})
}

// voidLostToken lets a member whose grant was lost back in line although they
// were admitted already: the token they show is voided first, so that it can
// never pay for an order. Where it has paid for one, that is the answer, if it is
// of this very place. One that has expired, or was of a later place, was no right to this one before the loss.
func (a *API) voidLostToken(r *http.Request, c caller, v *view, lost *queue.Lost) (queue.Standing, error) {
	g, err := a.Ring.Grant(r.Header.Get(tokenHeader))
	if err != nil || g.Open || g.Member != c.member || g.Room != c.ticket.Room || g.Generation != c.ticket.Generation || g.Generation >= lost.Generation {
		return queue.Standing{}, nil
	}
	o, err := a.OrderBook.Void(r.Context(), g)
	switch {
	case errors.Is(err, order.ErrTokenInvalid):
		lost.LostToken = g.Place == c.ticket.Place && v.now().Before(g.Expiry)
		return queue.Standing{}, nil
	case err != nil:
		return queue.Standing{}, err
	}
	if g.Place != c.ticket.Place {
		return queue.Standing{}, nil // it paid for an order of an earlier stay
	}
	return queue.Standing{Status: queue.Consumed, OrderID: o.ID}, nil
}

// entered is the result of an enter, as metrics know it.
func entered(st queue.Standing, err error) string {
	switch {
	case err == nil && st.New:
		return "new"
	case err == nil:
		return "known"
	case errors.Is(err, queue.ErrFull):
		return "full"
	case errors.Is(err, queue.ErrNotOpen), errors.Is(err, queue.ErrClosed):
		return "closed"
	case errors.Is(err, queue.ErrSoldOut):
		return "sold_out"
	case errors.Is(err, queue.ErrOrdered):
		return "ordered"
	case errors.Is(err, errBlocked):
		return "blocked"
	case errors.Is(err, errMustShow):
		return "asked"
	case errors.Is(err, errProofOfWork), errors.Is(err, errChallenge):
		return "refused"
	case errors.Is(err, room.ErrCode), errors.Is(err, errNotInvited), errors.Is(err, errGuesses):
		return "not_invited"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return "failed"
	}
}

// emptyBody accepts no body, or an object without fields.
func emptyBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	var nothing struct{}
	if err := jsonbody.Read(w, r, &nothing); !errors.Is(err, jsonbody.ErrEmpty) {
		return err
	}
	return nil
}
