package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// memberView is one member of a room. What the state does not have is null.
type memberView struct {
	Room        string         `json:"room"`
	Member      string         `json:"member"`
	State       queue.State    `json:"state"`
	Lane        *string        `json:"lane"`
	Score       *int64         `json:"score"`
	Rank        *int64         `json:"rank"`
	InLine      *int64         `json:"inLine"` // who stands in that line
	AwaySince   *time.Time     `json:"awaySince"`
	ExpiresAt   *time.Time     `json:"expiresAt"`   // of the grant
	ClaimEndsAt *time.Time     `json:"claimEndsAt"` // when the running order lets go at the latest
	LastOutcome *queue.Outcome `json:"lastOutcome"`
	OrderID     *string        `json:"orderId"`
	EndedAt     *time.Time     `json:"endedAt"`
	RedisTime   *time.Time     `json:"redisTime"` // null: no scheduler has begun the room
	room.Exclusion
}

// addressed is a member of a room as the path of a call names them.
type addressed struct{ room, member string }

// whom reads the path. The member is in it as it is, escaped: an id may have a
// slash.
func whom(r *http.Request) (addressed, error) {
	name, err := roomName(r)
	if err != nil {
		return addressed{}, err
	}
	member := r.PathValue("member")
	if r.URL.RawPath != "" { // then the router has matched the escaped form
		member, err = url.PathUnescape(member)
	}
	if member == "" {
		return addressed{}, refusal{problem.New("not-found")}
	}
	if err != nil || !credential.ValidMember(member) {
		return addressed{}, refusal{problem.New("bad-request").WithDetail(
			"The id of a member is 1 to 128 printable ASCII characters without spaces, escaped as part of a path.")}
	}
	return addressed{name, member}, nil
}

func (s *server) getMember(w http.ResponseWriter, r *http.Request) error {
	a, err := whom(r)
	if err != nil {
		return err
	}
	v, err := s.member(r.Context(), a)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, v)
}

// evictMember ends the member's stay and keeps them out of the sale that runs.
// While an order of theirs is running nothing is changed: what becomes of it must
// not depend on who was quicker. Repeating it does what is left to do.
func (s *server) evictMember(w http.ResponseWriter, r *http.Request) error {
	v, err := s.confirmedMember(w, r)
	if err != nil {
		return err
	}
	if v.State == queue.StateClaimed {
		left := v.ClaimEndsAt.Sub(*v.RedisTime)
		return refusal{problem.New("order-in-progress").WithRetryAfter(left).WithDetail(
			"An order of this member is running. Nothing was changed; evict again once it has ended, or block the member.")}
	}
	if err := s.Store.Evict(r.Context(), v.Room, v.subject(), actor(r, "member.evict")); err != nil {
		return err
	}
	return s.out(w, r, v)
}

// blockMember keeps the member out for good, at once, also while an order of
// theirs is running: whoever always has one running could never be kept out.
func (s *server) blockMember(w http.ResponseWriter, r *http.Request) error {
	v, err := s.confirmedMember(w, r)
	if err != nil {
		return err
	}
	if err := s.Store.Block(r.Context(), v.Room, v.subject(), actor(r, "member.block")); err != nil {
		return err
	}
	if err := s.out(w, r, v); !errors.Is(err, queue.ErrBusy) {
		return err
	}
	return s.getMember(w, r) // CLAIMED: that order goes on, and there will be no other
}

// unblockMember ends evictions too: whoever is let in again is let in.
func (s *server) unblockMember(w http.ResponseWriter, r *http.Request) error {
	a, err := whom(r)
	if err != nil {
		return err
	}
	if err := noBody(w, r); err != nil {
		return err
	}
	if err := s.Store.Unblock(r.Context(), a.room, room.Subject{Member: a.member}, actor(r, "member.unblock")); err != nil {
		return err
	}
	return s.getMember(w, r)
}

// confirmedMember is for calls that take a place away: it costs the member all
// the time that they have waited, and nothing brings it back.
func (s *server) confirmedMember(w http.ResponseWriter, r *http.Request) (memberView, error) {
	a, err := whom(r)
	if err != nil {
		return memberView{}, err
	}
	if err := readConfirmed(w, r, a.room); err != nil {
		return memberView{}, err
	}
	return s.member(r.Context(), a)
}

// out ends the place of somebody who is kept out by now, and shows what has
// become of them. Postgres comes first: between the two a member who enters anew
// is refused already, and a call that has broken off is repeated.
func (s *server) out(w http.ResponseWriter, r *http.Request, v memberView) error {
	left, err := s.Lines.Leave(r.Context(), v.Room, v.Member, 0, queue.OutcomeEvicted)
	if err != nil {
		return err
	}
	if left && s.Evicted != nil {
		s.Evicted(r.Context(), v.Room, v.subject())
	}
	return s.getMember(w, r)
}

// member puts together what Redis and Postgres know.
func (s *server) member(ctx context.Context, a addressed) (memberView, error) {
	v := memberView{Room: a.room, Member: a.member, State: queue.StateNotEntered}
	in, err := s.Store.Get(ctx, a.room)
	if err != nil {
		return v, err
	}
	if v.Exclusion, err = s.Store.KeptOut(ctx, a.room, a.member); err != nil {
		return v, err
	}
	sight, err := s.Lines.Look(ctx, a.room, a.member)
	if errors.Is(err, queue.ErrNoRoom) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.RedisTime = utc(sight.Now)
	if sight.Sale == in.Sale { // else a flush has ended it all
		v.see(sight, in.Settings.Lanes)
	}
	return v, nil
}

func (v *memberView) see(s queue.Sight, lanes []room.Lane) {
	v.State = s.State
	if s.State.Placed() {
		v.Lane, v.Score = laneName(lanes, s.Place.Lane), &s.Place.Score
	}
	if s.State == queue.StateWaiting {
		v.Rank, v.InLine = &s.Rank, &s.Total
	}
	if s.Outcome != "" {
		v.LastOutcome = &s.Outcome
	}
	if s.OrderID != "" {
		v.OrderID = &s.OrderID
	}
	v.AwaySince, v.ExpiresAt, v.ClaimEndsAt, v.EndedAt = utc(s.Since), utc(s.Expiry), utc(s.Lease), utc(s.Ended)
}

// subject is what the audit keeps of where the member stood.
func (v memberView) subject() room.Subject {
	who := room.Subject{Member: v.Member}
	if v.State.Placed() {
		who.State, who.Lane, who.Score = string(v.State), *v.Lane, *v.Score
	}
	return who
}

// utc is nil for the zero time.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
