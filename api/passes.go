package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/ratelimit"
)

// passes bounds whom a process lets through a room that fails open: the batch of the
// room per interval, as a scheduler would; with n processes n times that. It
// remembers who has been let through, no more than that rate allows, so that asking
// again takes nobody's turn.
type passes struct {
	mu         sync.Mutex
	limit      ratelimit.Limit
	bucket     *ratelimit.Local[string]
	young, old map[string]struct{} // grants
	turned     time.Time
}

// passesKept bounds the memory of a room that lets very many through. Who is
// forgotten takes a turn anew, and gets the same token.
const passesKept = 200_000

// allow takes a turn for a grant, and tells when to come again where there is none.
func (p *passes) allow(v *view) (bool, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit := (ratelimit.Limit{Algorithm: ratelimit.Token, N: v.Rules.Batch, Per: v.Rules.Interval}); p.bucket == nil || p.limit != limit {
		p.limit, p.bucket = limit, ratelimit.NewLocal[string](limit, 1, time.Now)
	}
	r := p.bucket.Allow(v.Room)
	return r.Allowed, r.RetryAfter
}

// given remembers a grant that its member has been given.
func (p *passes) given(v *view, grant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.young == nil || time.Since(p.turned) > v.Rules.TokenTTL || len(p.young) >= passesKept {
		p.old, p.young, p.turned = p.young, map[string]struct{}{}, time.Now()
	}
	p.young[grant] = struct{}{}
}

func (p *passes) has(grant string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, young := p.young[grant]
	_, old := p.old[grant]
	return young || old
}

// notNowError is queue.ErrUnavailable for who is to come back when others have passed.
type notNowError struct{ after time.Duration }

// Error says what it is.
func (e notNowError) Error() string {
	return fmt.Sprintf("api: as many pass as the room allows, for %v", e.after)
}

// Is makes errors.Is(err, queue.ErrUnavailable) hold.
func (e notNowError) Is(target error) bool { return target == queue.ErrUnavailable }

// RetryAfter is when to come back: spread, because all who wait are told so.
func (e notNowError) RetryAfter() time.Duration { return max(e.after, spread) + rand.N(spread) }

// spread is how long, and over how long, those are put off who can't pass yet.
const spread = 5 * time.Second

// passOpen answers enter or poll in a room that fails open: with an entry token of
// this process's own, for whoever would have been let into the line.
func (a *API) passOpen(w http.ResponseWriter, r *http.Request, d *door, entering bool) error {
	v := d.view
	c, err := a.caller(r, v.Room, v)
	if err != nil {
		return err
	}
	switch {
	case entering && v.settings.EnterNeedsTicket && !c.hasTicket:
		return a.ticketFirst(w, r, c, v)
	case c.member == "" && !entering:
		return errTicketInvalid
	case c.member == "":
		c.member = credential.NewMember()
	}
	if c.lane, err = laneOf(c, v); err != nil {
		return err
	}
	if err := a.guard.poll(w, v.Room, c); err != nil {
		return err
	}
	if st, in := stands(c, v); !in && !entering {
		return a.answer(w, r, c, v, st)
	}
	g, st, err := a.passGrant(r.Context(), d, c)
	if entering && a.Observer.Entered != nil {
		a.Observer.Entered(v.Room, passed(st, err))
	}
	if err != nil {
		return err
	}
	if st.Status == queue.NotEntered {
		return a.answer(w, r, c, v, st)
	}
	return a.answerOpen(w, r, c, v, g)
}

// stands tells whether somebody who polls was in line, as far as the ticket says; a
// member whom a proxy names may have been. Otherwise it says why not.
func stands(c caller, v *view) (queue.Standing, bool) {
	st := queue.Standing{Status: queue.NotEntered}
	switch {
	case !c.hasTicket:
		return st, true
	case c.ticket.Place.Score > 0 && c.ticket.Sale != v.Sale:
		st.Outcome = queue.OutcomeReset
		return st, false
	}
	return st, c.ticket.Place.Score > 0
}

// passed is the result of an enter, as metrics know it.
func passed(st queue.Standing, err error) string {
	switch {
	case err == nil && st.Status == queue.Ready:
		return "passed_open"
	case err == nil && st.Outcome == queue.OutcomeConsumed:
		return "ordered"
	}
	return entered(st, err)
}

// passGrant is the grant of a member who may pass, with READY; or NOT_ENTERED, for
// somebody whom Postgres bars. Without a word of Postgres nobody passes.
func (a *API) passGrant(ctx context.Context, d *door, c caller) (queue.Grant, queue.Standing, error) {
	v, none := d.view, queue.Standing{Status: queue.NotEntered}
	g, err := a.Ring.OpenGrant(queue.Grant{Room: v.Room, Sale: v.Sale, Generation: v.Generation, Member: c.member}, v.now(), v.Rules.TokenTTL)
	if err != nil {
		return g, none, err
	}
	if d.passes.has(g.ID) { // whoever is barred since, the order's transaction refuses
		return g, queue.Standing{Status: queue.Ready, Grant: g}, nil
	}
	if out, err := a.kept.bars(ctx, v.Room, c.member, v.Sale); err != nil || out {
		none.Outcome = queue.OutcomeEvicted
		return g, none, err
	}
	if ok, after := d.passes.allow(v); !ok {
		return g, none, notNowError{after}
	}
	ctx, cancel := context.WithTimeout(ctx, booksTimeout)
	defer cancel()
	if err := a.gate.slots.Acquire(ctx, 1); err != nil { // the watch of this room needs those connections too
		return g, none, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	defer a.gate.slots.Release(1)
	barred, err := a.Books.Barred(ctx, v.Room, v.Sale, []string{c.member}, v.Rules.OneOrder)
	if err == nil && barred[c.member] {
		none.Outcome, err = a.barredBy(ctx, v, c.member)
	}
	if err != nil {
		return g, none, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	if none.Outcome != "" {
		return g, none, nil
	}
	d.passes.given(v, g.ID)
	return g, queue.Standing{Status: queue.Ready, Grant: g}, nil
}

// barredBy says what bars a member: an operator, or the order that they have.
func (a *API) barredBy(ctx context.Context, v *view, member string) (queue.Outcome, error) {
	excluded, err := a.Books.Barred(ctx, v.Room, v.Sale, []string{member}, false)
	if excluded[member] {
		return queue.OutcomeEvicted, err
	}
	return queue.OutcomeConsumed, err
}

// answerOpen hands out the token. The place that a ticket says stays what it is:
// Redis may still know it.
func (a *API) answerOpen(w http.ResponseWriter, r *http.Request, c caller, v *view, g queue.Grant) error {
	network := a.network(r, v)
	token, err := a.Ring.SignBound(g, a.Ring.Bind(g.KeyID, g.Member, network))
	if err != nil {
		return err
	}
	p := position(v, queue.Standing{Status: queue.Ready}, 1)
	text, expiry, lane := token.Reveal(), g.Expiry, v.lane(c.lane)
	p.EntryToken, p.EntryTokenExpiresAt, p.Lane = &text, &expiry, &lane
	ticket, err := a.renewed(c, v, queue.Standing{}, network)
	if err != nil {
		return err
	}
	if ticket != nil {
		text := ticket.Reveal()
		p.QueueTicket = &text
		a.setCookie(w, v.Room, *ticket)
	}
	if a.Observer.PassedOpen != nil {
		a.Observer.PassedOpen(v.Room)
	}
	return writePosition(w, http.StatusOK, &p)
}
