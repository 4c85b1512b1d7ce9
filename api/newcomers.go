package api

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
)

// askedTTL is how long what was asked of a newcomer stays as it was asked: long
// enough for a slow phone at the most bits, short enough that puzzles can't be
// collected for later. It is less where the end of a stay is forgotten sooner, or
// what was shown for that stay could be shown again for the next.
const askedTTL = 3 * time.Minute

// screen is one thing that a newcomer must show before a place is made for them.
// What it was asked for is bound to the newcomer's ticket, which names room, sale
// and member: so nothing need be kept, and it makes one place.
type screen interface {
	// wanted tells whether the room asks for it.
	wanted(v *view) bool
	// shown judges what the request carries, and asks nobody. It returns
	// errMustShow where that is nothing; errShownLate where it may have been good,
	// so that whoever shows it may have a place.
	shown(n newcomer) error
	// confirmed asks whoever else must say that it is good.
	confirmed(n newcomer) error
	// ask adds to what the newcomer is told to show, with the ticket.
	ask(n newcomer, m *spec.MustShow)
}

// newcomer is who asks for a place that they have not.
type newcomer struct {
	caller
	request *http.Request
	view    *view
	text    string // of the ticket
}

func (a *API) newcomer(r *http.Request, c caller, v *view) newcomer {
	n := newcomer{caller: c, request: r, view: v, text: r.Header.Get(ticketHeader)}
	if k, err := r.Cookie(a.cookieName(v.Room)); n.text == "" && err == nil {
		n.text = k.Value
	}
	return n
}

// errMustShow is nobody's error: the answer says what to show.
var errMustShow = errors.New("api: a newcomer must show more")

// errShownLate is errProofOfWork of somebody who may have a place by now.
var errShownLate = errors.New("late")

// screens are those that the room wants; none as a rule.
func (a *API) screens(v *view) []screen {
	var wanted []screen
	for _, s := range a.all {
		if s.wanted(v) {
			wanted = append(wanted, s)
		}
	}
	return wanted
}

// screened lets a newcomer pass who shows all that the room asks for. Whoever may
// be known has only to show it if the line has no place of theirs. What is plainly
// wrong, and who shows nothing and is nobody yet, ends here without a question to
// Redis.
func (a *API) screened(r *http.Request, c *caller, v *view, known bool) (queue.Standing, error) {
	screens := a.screens(v)
	if len(screens) == 0 {
		return queue.Standing{}, nil
	}
	n := a.newcomer(r, *c, v)
	shown := all(screens, func(s screen) error { return s.shown(n) })
	if shown != nil && !errors.Is(shown, errMustShow) && !errors.Is(shown, errShownLate) {
		return queue.Standing{}, shown
	}
	if known {
		st, err := a.Line.Standing(r.Context(), v.Room, c.member)
		if err != nil || st.Status != queue.NotEntered && st.Status != queue.Consumed {
			return st, err
		}
		if st.Status == queue.Consumed && v.Rules.OneOrder {
			return st, queue.ErrOrdered
		}
		c.ended = time.UnixMicro(st.Ended)
		if n.ended = c.ended; shown == nil && !n.asked() {
			shown = errMustShow // it was good for the stay that has ended
		}
	}
	// Nobody is to work for a room that takes nobody, nor before it opens.
	if err := cmp.Or(v.takesNobody(), shown); err != nil {
		return queue.Standing{}, err
	}
	return queue.Standing{}, all(screens, func(s screen) error { return s.confirmed(n) })
}

// all stops at the first that refuses: what comes later costs more.
func all(screens []screen, check func(screen) error) error {
	for _, s := range screens {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

// mustShow answers a newcomer who has shown nothing, or not enough: it is signed
// into a ticket what they are asked for. Who holds one that has just been asked
// keeps it, and so does not begin again.
func (a *API) mustShow(w http.ResponseWriter, r *http.Request, c caller, v *view) error {
	p := position(v, queue.Standing{Status: queue.NotEntered}, 1)
	n := a.newcomer(r, c, v)
	if bits := v.workBits(); !n.asked() || (n.ticket.Work > 0) != (bits > 0) {
		issued := v.now().Truncate(time.Second) // as tickets have it
		if !issued.After(c.ended) {
			issued = c.ended.Add(time.Second).Truncate(time.Second) // of after that stay
		}
		n.ticket = credential.Ticket{Room: v.Room, Sale: v.Sale, Generation: v.Generation, Member: c.member, Work: bits, IssuedAt: issued,
			Binding: a.Ring.Bind(a.Ring.SigningKeyID(), c.member, a.network(r, v))}
		signed, err := a.Ring.SignTicket(n.ticket)
		if err != nil {
			return err
		}
		n.text = signed.Reveal()
		p.QueueTicket = &n.text
		a.setCookie(w, v.Room, signed)
	}
	p.MustShow = &spec.MustShow{}
	for _, s := range a.screens(v) {
		s.ask(n, p.MustShow)
	}
	return writeJSON(w, http.StatusOK, p)
}

// asked tells whether the newcomer's ticket was given out to ask them, in this
// generation of this sale, not long ago, and since their last stay has ended, as far as that is known.
func (n newcomer) asked() bool {
	t, v := n.ticket, n.view
	return n.hasTicket && t.Place.Score == 0 && t.Generation == v.Generation &&
		t.IssuedAt.After(n.ended) && v.now().Before(n.until())
}

// until is when what the newcomer's ticket asks for is asked no more.
func (n newcomer) until() time.Time {
	return n.ticket.IssuedAt.Add(min(askedTTL, n.view.Rules.DoneTTL))
}

// takesNobody says why a newcomer would be refused, as far as the view shows.
func (v *view) takesNobody() error {
	switch state := v.State(v.now()); {
	case state == queue.NotOpen:
		return queue.ErrNotOpen
	case state == queue.Draining, state == queue.Closed:
		return queue.ErrClosed
	case state == queue.SoldOut:
		return queue.ErrSoldOut
	case v.MemoryFull, v.Waiting()+v.Processing >= int64(v.Rules.MaxWaiting):
		return queue.ErrFull
	}
	return nil
}
