package api

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
)

// answer writes a member's position, with an entry token if they hold a grant
// and a new ticket if theirs does not say where they stand, or ages.
func (a *API) answer(w http.ResponseWriter, r *http.Request, c caller, v *view, st queue.Standing) error {
	p := position(v, st, a.polls.Stretch())
	a.guard.pace(&p)
	a.booked(v, st, &p)
	if p.EstimatedWaitSeconds != nil {
		a.waits.promised(v.Room, st.Place.Score, p.ServerTime, time.Duration(*p.EstimatedWaitSeconds)*time.Second)
	}
	status := http.StatusOK
	if st.New {
		status = http.StatusCreated
	}
	network := a.network(r, v)
	if st.Status == queue.Ready || st.Status == queue.Claimed {
		if err := a.handOver(r.Context(), &p, st.Grant, network); errors.Is(err, queue.ErrGone) {
			return a.answerAgain(w, r, c, v) // it ended in between
		} else if err != nil {
			return err
		}
	}
	ticket, err := a.renewed(c, v, st, network)
	if err != nil {
		return err
	}
	if ticket != nil {
		text := ticket.Reveal()
		p.QueueTicket = &text
		a.setCookie(w, v.Room, *ticket)
	}
	if a.Observer.Polled != nil && !st.New {
		a.Observer.Polled(v.Room, st.Status)
	}
	return writePosition(w, status, &p)
}

// answerAgain asks the line anew, for the one answer that changed meanwhile.
func (a *API) answerAgain(w http.ResponseWriter, r *http.Request, c caller, v *view) error {
	st, err := a.Line.Standing(r.Context(), v.Room, c.member)
	if err != nil {
		return err
	}
	return a.answer(w, r, c, v, st)
}

// handOver picks the grant up for its member and signs the entry token. The
// same grant gives the same bytes, at every poll and on every process; in a room
// that binds tokens, at every poll from one network.
func (a *API) handOver(ctx context.Context, p *spec.Position, g queue.Grant, network netip.Prefix) error {
	first := !g.Picked
	g, err := a.Returns.PickUp(ctx, g, a.Ring.SigningKeyID())
	if err != nil {
		return err
	}
	token, err := a.Ring.SignBound(g, a.Ring.Bind(g.KeyID, g.Member, network))
	if err != nil {
		return err
	}
	text, expiry := token.Reveal(), g.Expiry.UTC()
	p.EntryToken, p.EntryTokenExpiresAt = &text, &expiry
	if first {
		a.waits.came(g)
		a.moved(ctx, Move{Room: g.Room, Member: g.Member, From: "READY", To: "READY", Grant: g.ID, Score: g.Place.Score})
	}
	return nil
}

// renewed returns a fresh ticket where the caller's is missing, of another
// place, or due for renewal; else nil.
func (a *API) renewed(c caller, v *view, st queue.Standing, network netip.Prefix) (*credential.Token, error) {
	t := credential.Ticket{Room: v.Room, Sale: v.Sale, Generation: v.Generation, Member: c.member, Place: st.Place, IssuedAt: v.now()}
	// Postgres does not know the place of somebody who was let straight in, so the
	// ticket has to say by itself that it is used.
	t.Granted = st.Status == queue.Ready || st.Status == queue.Claimed
	if st.Generation > 0 {
		t.Sale, t.Generation = st.Sale, st.Generation // the line's own word is newer than the view
	}
	if st.Place.Score == 0 {
		// Nobody's place: the ticket goes on saying who they are, and is renewed
		// with nothing else.
		t.Place, t.Sale, t.Generation, t.Granted = c.ticket.Place, c.ticket.Sale, c.ticket.Generation, c.ticket.Granted
	}
	same := c.hasTicket && c.ticket.Place == t.Place && c.ticket.Generation == t.Generation && c.ticket.Sale == t.Sale
	if st.Status == queue.Waiting && c.ticket.Granted {
		same = false // the grant was never fetched: the place is good again
	}
	if same && !c.ticket.Renew(v.now(), a.Ring) {
		return nil, nil
	}
	t.Binding = a.Ring.Bind(a.Ring.SigningKeyID(), t.Member, network)
	token, err := a.Ring.SignTicket(t)
	if err != nil {
		return nil, err
	}
	return &token, nil
}

// shown is what a position points to, in one piece.
type shown struct {
	lane                     string
	entered                  time.Time
	score, rank, total, wait int64
	waitRange                [2]int64
	lifted, overtakable      bool
}

// position fills in all that a standing and a room's view tell. Fields that
// belong to what a room does not do are null. stretch is by how much longer than
// usual people who wait are to wait between polls.
func position(v *view, st queue.Standing, stretch float64) spec.Position {
	now := v.now()
	p := spec.Position{
		Room: v.Room, RoomState: v.State(now), Status: st.Status, ServerTime: now.UTC(),
		Message: message(v),
	}
	var s shown
	if st.Place.Score > 0 {
		s.lane, s.entered, s.score = v.lane(st.Place.Lane), v.enteredAt(st.Place, now), st.Place.Score
		s.lifted, s.overtakable = st.Lifted, v.Rules.Overtakable(st.Place.Lane)
		p.Lane, p.EnteredAt, p.Score, p.Lifted, p.Overtakable = &s.lane, &s.entered, &s.score, &s.lifted, &s.overtakable
		if v.drawn(st.Place) {
			p.EnteredAt = nil
		}
	}
	if st.Outcome != "" {
		outcome := st.Outcome
		p.LastOutcome = &outcome
	}
	if st.OrderID != "" {
		id := st.OrderID
		p.OrderID = &id
	}
	pause := queue.PollInterval(0) * 5
	switch st.Status {
	case queue.Waiting:
		s.rank, s.total = st.Rank, max(st.Total, v.inLine(st.Place.Lane), st.Rank+1)
		p.Rank, p.CurrentTotalWaitingCount = &s.rank, &s.total
		if wait, ok := v.estimate(st.Place.Lane, st.Rank, now); ok {
			s.wait = int64(math.Ceil(wait.Likely.Seconds()))
			s.waitRange = [2]int64{int64(wait.Least.Seconds()), int64(math.Ceil(wait.Most.Seconds()))}
			p.EstimatedWaitSeconds, p.EstimatedWaitRange = &s.wait, s.waitRange[:]
		}
		pause = v.Rules.PollAfter(st.Rank, stretch)
	case queue.Claimed:
		pause = queue.PollInterval(0)
	}
	if st.Status == queue.Waiting && v.Draw.Undecided() {
		st, pause = undecided(v, &p, st, stretch)
	}
	p.PollingIntervalSeconds = int(math.Ceil(pause.Seconds()))
	ahead := int64(math.MaxInt64) // who does not wait in line is near no front
	if st.Status == queue.Waiting {
		ahead = st.Rank
	}
	p.NextPollAfterMs = int(v.Rules.Spread(pause, ahead, rand.Float64()).Milliseconds())
	return p
}

func message(v *view) spec.Message {
	if len(v.settings.Message) == 0 {
		return nil
	}
	return v.settings.Message
}

func (a *API) restored(room, result string) {
	if a.Observer.Restored != nil {
		a.Observer.Restored(room, result)
	}
}

func (a *API) moved(ctx context.Context, m Move) {
	if a.Observer.Moved != nil {
		a.Observer.Moved(ctx, m)
	}
}
