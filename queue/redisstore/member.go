package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/queue"
)

// Enter gives member a place at the end of the lane, or says where they stand
// already. It returns queue.ErrNotOpen, ErrClosed, ErrFull, ErrOrdered or
// ErrNoRoom where there is no place to be had.
func (s *Store) Enter(ctx context.Context, room, member string, lane int) (queue.Standing, error) {
	return s.EnterWith(ctx, room, member, queue.Entry{Lane: lane})
}

// EnterWith is Enter with all that an entry can have. It returns
// queue.ErrGeneration if the place would go by lot and the lot given is none of
// the room's sale.
//
// A new member is given the entry's grant in the same step, if nobody is in line
// and the room is off or lets people straight in, as rate and capacity allow: the
// standing is then READY, and New. It does not know who is barred, so that is to
// be asked before; a grant that was asked for before the member's last stay ended
// is not given.
func (s *Store) EnterWith(ctx context.Context, room, member string, e queue.Entry) (queue.Standing, error) {
	r, err := s.runTogether(ctx, enterScript, room, member, e.Lane, e.Lot.Sale, e.Lot.First, e.Grant, unixMicro(e.Asked))
	if errors.Is(err, queue.ErrFull) && r.word == "" {
		// Refused unrun by a Redis without memory, also for those who have a place:
		// they keep it.
		if st, again := s.Standing(ctx, room, member); again == nil && st.Status != queue.NotEntered {
			return st, nil
		}
	}
	if err != nil {
		return queue.Standing{}, err
	}
	return standing(room, member, r), nil
}

// Standing says where member is, and hears one who was AWAY.
func (s *Store) Standing(ctx context.Context, room, member string) (queue.Standing, error) {
	r, err := s.runTogether(ctx, standingScript, room, member)
	if err != nil {
		return queue.Standing{}, err
	}
	return standing(room, member, r), nil
}

// Poll is Standing for the hot path: plain reads, in the direction in which
// members move, so that one who moves meanwhile is never missed. It answers by
// itself only that somebody waits (Total is left 0: room totals come from a
// snapshot); everybody else is for the script, which has Redis time. place is
// what the member's ticket says, and tells in which lane to look; at which place
// they stand there, the line says: they may have entered again since.
func (s *Store) Poll(ctx context.Context, room, member string, place queue.Place) (queue.Standing, error) {
	st, err := s.ranked(ctx, room, member, place.Lane)
	return s.polled(ctx, room, member, st, err)
}

// polled goes on with a poll that has looked for a member in a lane.
func (s *Store) polled(ctx context.Context, room, member string, st queue.Standing, err error) (queue.Standing, error) {
	if errors.Is(err, redis.Nil) {
		st, err = s.taken(ctx, room, member)
	}
	if errors.Is(err, redis.Nil) {
		return s.Standing(ctx, room, member)
	}
	if err != nil {
		return queue.Standing{}, fmt.Errorf("poll in room %s: %w", room, mapError(err))
	}
	return st, nil
}

// ranked finds a member in a lane, with one round trip that others share. Who
// moves between its two reads is not there any more, or not yet: redis.Nil either way.
func (s *Store) ranked(ctx context.Context, room, member string, lane int) (queue.Standing, error) {
	at, err := s.calls(room).lanes[lane].Ask(ctx, member)
	if err != nil {
		return queue.Standing{}, err
	}
	if !at.found {
		return queue.Standing{}, redis.Nil
	}
	return queue.Standing{
		Status: queue.Waiting, Place: queue.Place{Lane: lane, Score: at.score}, Rank: at.ahead, InLane: at.ahead,
	}, nil
}

// taken finds a member who is processing. The record says the place; without one
// that can be read, which reap mends, the script decides.
func (s *Store) taken(ctx context.Context, room, member string) (queue.Standing, error) {
	var record *redis.StringCmd
	var lifted *redis.FloatCmd
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		record, lifted = p.HGet(ctx, processingPlaceKey(s.prefix, room), member), p.ZScore(ctx, liftedKey(s.prefix, room), member)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return queue.Standing{}, err
	}
	st := queue.Standing{Status: queue.Waiting}
	if _, err := fmt.Sscanf(record.Val(), "%d %d ", &st.Place.Lane, &st.Place.Score); err != nil {
		return queue.Standing{}, redis.Nil
	}
	st.Lifted = lifted.Err() == nil && int64(lifted.Val()) >= st.Place.Score
	return st, nil
}

// Heard notes that up to 500 members near the front are still there. With none
// it notes that the room can hear.
func (s *Store) Heard(ctx context.Context, room string, members []string) error {
	args := make([]any, len(members))
	for i, m := range members {
		args[i] = m
	}
	_, err := s.run(ctx, heardScript, room, args...)
	return err
}

// PickUp hands a grant to its member. The first call fixes the expiry and the
// key that signs the entry token; all later ones return the same. It returns
// queue.ErrGone if the grant is not there (any more).
func (s *Store) PickUp(ctx context.Context, g queue.Grant, keyID string) (queue.Grant, error) {
	r, err := s.runTogether(ctx, pickupScript, g.Room, g.Member, g.ID, keyID)
	if err != nil {
		return queue.Grant{}, err
	}
	g.Place = queue.Place{Lane: int(r.int("lane")), Score: r.int("score")}
	g.Sale, g.Generation = r.int("sale"), r.int("generation")
	g.IssuedAt, g.Expiry = r.time("issued"), r.time("expiry")
	g.Picked, g.KeyID = true, r.string("key")
	return g, nil
}

// Leave takes member out of the room, from the place with that score (0: from
// any), with outcome LEFT or EVICTED. It reports whether there was such a
// place, and returns queue.ErrBusy while an order is running.
func (s *Store) Leave(ctx context.Context, room, member string, score int64, outcome queue.Outcome) (bool, error) {
	at := ""
	if score > 0 {
		at = toString(score)
	}
	r, err := s.run(ctx, leaveScript, room, member, at, string(outcome))
	return r.word == "OK" && err == nil, err
}

// Restore puts a member back to the place that a ticket proves. It returns
// queue.ErrGone if that place has been used, given up or is too old.
func (s *Store) Restore(ctx context.Context, room string, l queue.Lost) (queue.Standing, error) {
	lostToken := 0
	if l.LostToken {
		lostToken = 1
	}
	r, err := s.run(ctx, restoreScript, room, l.Generation, l.Member, l.Ticket, l.Place.Lane, l.Place.Score, l.Floor, lostToken, l.Issued.UnixMicro())
	if err != nil {
		return queue.Standing{}, err
	}
	return standing(room, l.Member, r), nil
}

// standing decodes what enter, standing and restore answer.
func standing(room, member string, r reply) queue.Standing {
	st := queue.Standing{
		Status:     queue.Status(r.string("status")),
		Generation: r.int("generation"),
		Sale:       r.int("sale"),
		Place:      queue.Place{Lane: int(r.int("lane")), Score: r.int("score")},
		Rank:       r.int("rank"),
		Total:      r.int("total"),
		InLane:     r.int("in_lane"),
		Lifted:     r.int("lifted") == 1,
		Outcome:    queue.Outcome(r.string("outcome")),
		OrderID:    r.string("order"),
		Ended:      r.int("ended"),
		New:        r.int("new") == 1,
		Passed:     r.int("passed") == 1,
	}
	if id := r.string("grant"); id != "" {
		st.Grant = queue.Grant{
			ID: id, Room: room, Member: member, Sale: st.Sale, Generation: st.Generation, Place: st.Place,
			IssuedAt: r.time("issued"), Expiry: r.time("expiry"), Picked: r.int("picked") == 1,
		}
		if key := r.string("key"); key != "-" {
			st.Grant.KeyID = key
		}
	}
	return st
}
