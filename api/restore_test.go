package api_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// relive makes Redis lose the room, and a scheduler begin it again.
func (f *fixture) relive() {
	f.t.Helper()
	f.lose()
	f.pass(time.Second)
	f.begin(f.life.Generation)
}

func TestALostPlaceComesBackHoweverItIsAskedFor(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, bob, eve := f.enter(), f.enter(), f.enter()
	places := map[string]int64{ann: start.UnixMicro(), bob: start.UnixMicro() + 1, eve: start.UnixMicro() + 2}
	f.lose()
	gap := f.serve()
	gap.get(ticket(ann)).refused(http.StatusServiceUnavailable, "unavailable").after("1")
	gap.post(ticket(ann)).refused(http.StatusServiceUnavailable, "unavailable").after("1")
	gap.post().refused(http.StatusServiceUnavailable, "unavailable").after("1")
	gap.call("GET", "/v1/rooms/"+f.room).refused(http.StatusServiceUnavailable, "unavailable").after("1")

	f.pass(time.Second)
	f.begin(f.life.Generation)
	site := f.serve()
	newcomer := site.post().is(http.StatusCreated).position()
	require.EqualValues(t, 0, *newcomer.Rank, "nobody has come back yet")
	for i, text := range []string{eve, ann, bob} {
		var a answer
		if i%2 == 0 {
			a = site.get(ticket(text))
		} else {
			a = site.post(ticket(text))
		}
		p := a.is(http.StatusOK).position()
		require.Equal(t, queue.Waiting, p.Status)
		require.Equal(t, queue.Restoring, p.RoomState)
		require.Equal(t, places[text], *p.Score)
		require.NotNil(t, p.QueueTicket, "a ticket of the generation that the place is in now")
		c, err := f.ring.Ticket(*p.QueueTicket)
		require.NoError(t, err)
		require.Equal(t, f.life.Generation, c.Generation)
		require.Nil(t, site.poll(*p.QueueTicket).QueueTicket)
	}
	site = f.serve()
	for text, rank := range map[string]int64{ann: 0, bob: 1, eve: 2, *newcomer.QueueTicket: 3} {
		require.Equal(t, rank, *site.poll(text).Rank, "I7: places are those of before")
	}
}

func TestAUsedPlaceDoesNotComeBack(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, _ := f.ready()
	f.relive()
	site := f.serve()
	p := site.poll(ann)
	require.Equal(t, queue.NotEntered, p.Status, "S4: a ticket of who was let through is worth nothing")
	require.Nil(t, p.LastOutcome)
	behind := site.post().is(http.StatusCreated).position()
	again := site.post(ticket(ann)).is(http.StatusCreated).position()
	require.Greater(t, *again.Score, *behind.Score, "to enter is to be last")
}

// TestALostTokenIsVoidedAndTheMemberIsFirstAgain is about who was let through
// before the loss and has not ordered.
func TestALostTokenIsVoidedAndTheMemberIsFirstAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	bob, bobs := f.ready()
	f.relive()
	site := f.serve()
	site.order(`[{"sku":"a","quantity":1}]`, token("x")).refused(http.StatusUnauthorized, "entry-token-invalid")
	require.Equal(t, queue.NotEntered, site.get(ticket(ann), token(bobs)).is(http.StatusOK).position().Status, "S3: somebody else's token")
	require.Equal(t, queue.NotEntered, site.get(ticket(ann), token("x")).is(http.StatusOK).position().Status)

	p := site.get(ticket(ann), token(entry)).is(http.StatusOK).position()
	require.Equal(t, queue.Waiting, p.Status)
	require.Equal(t, start.UnixMicro(), *p.Score)
	var void bool
	require.NoError(t, f.db.QueryRow(t.Context(), "SELECT void FROM orders WHERE member = (SELECT member FROM orders)").Scan(&void))
	require.True(t, void, "whoever is back in line must not pay with the old token")
	site.order(`[{"sku":"a","quantity":1}]`, token(entry)).refused(http.StatusUnauthorized, "entry-token-invalid")
	require.Equal(t, queue.Waiting, site.post(ticket(bob), token(bobs)).is(http.StatusOK).position().Status, "the same by POST")
}

func TestATokenThatHadExpiredBringsNothingBack(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	f.pass(f.life.Rules.TokenTTL)
	require.Equal(t, of(queue.OutcomeExpired), f.poll(ann).LastOutcome)
	f.relive()
	p := f.serve().get(ticket(ann), token(entry)).is(http.StatusOK).position()
	require.Equal(t, queue.NotEntered, p.Status, "S4: who let a turn go by is not first again for it")
}

func TestATokenBringsBackNoEarlierPlaceThanItsOwn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first, _ := f.ready()
	f.pass(f.life.Rules.TokenTTL)
	second := *f.post(ticket(first)).is(http.StatusCreated).position().QueueTicket
	require.Equal(t, 1, f.tick())
	entry := *f.poll(second).EntryToken
	f.relive()
	site := f.serve()
	require.Equal(t, queue.NotEntered, site.get(ticket(first), token(entry)).is(http.StatusOK).position().Status)
	require.Equal(t, queue.Waiting, site.get(ticket(second), token(entry)).is(http.StatusOK).position().Status)
}

func TestALostTokenThatHasPaidIsAnsweredWithItsOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	var placed spec.Order
	f.order(`[{"sku":"a","quantity":1}]`, token(entry)).is(http.StatusCreated).decode(&placed)
	f.pass(f.life.Rules.TokenTTL) // also after it has expired
	f.relive()
	for _, a := range []answer{f.serve().get(ticket(ann), token(entry)), f.serve().post(ticket(ann), token(entry))} {
		p := a.is(http.StatusOK).position()
		require.Equal(t, queue.Consumed, p.Status)
		require.Equal(t, placed.ID, *p.OrderID)
	}
	f.serve().order(`[{"sku":"a","quantity":1}]`, token(entry)).is(http.StatusOK) // I5: the order that exists
}

// Whoever has ordered may enter again: the order of the first stay is no answer
// to what became of the second.
func TestAPaidTokenOfAnEarlierStayDoesNotCostTheNewPlace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	var placed spec.Order
	f.order(`[{"sku":"a","quantity":1}]`, token(entry)).is(http.StatusCreated).decode(&placed)
	g := f.grant(entry)
	_, err := f.line.Consume(t.Context(), f.room, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: placed.ID}})
	require.NoError(t, err)
	f.pass(time.Second)
	again := f.post(ticket(ann)).is(http.StatusCreated).position()
	f.relive()
	back := f.serve().get(ticket(*again.QueueTicket), token(entry)).is(http.StatusOK).position()
	require.Equal(t, queue.Waiting, back.Status)
	require.Equal(t, again.Score, back.Score)
}

func TestAFlushEndsTicketsAndSaysSo(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	bob := f.enter()
	_, err := f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	f.pass(time.Second)
	f.adopt(f.written())
	site := f.serve()
	for _, text := range []string{ann, bob} {
		p := site.poll(text)
		require.Equal(t, queue.NotEntered, p.Status)
		require.Equal(t, of(queue.OutcomeReset), p.LastOutcome)
	}
	site.order(`[{"sku":"a","quantity":1}]`, token(entry)).refused(http.StatusUnauthorized, "entry-token-invalid")
	again := site.post(ticket(bob)).is(http.StatusCreated).position()
	require.EqualValues(t, 0, *again.Rank)
	require.Equal(t, queue.Open, again.RoomState, "nothing is to come back")
	require.Equal(t, queue.Waiting, site.poll(bob).Status, "the old ticket still says who they are")
	p := site.poll(*again.QueueTicket)
	require.Equal(t, queue.Waiting, p.Status)
	require.Nil(t, p.QueueTicket)
}

func TestWhoIsKeptOutDoesNotComeBack(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	blocked, evicted, ann := f.enter(), f.enter(), f.enter()
	member := func(text string) string {
		c, err := f.ring.Ticket(text)
		require.NoError(t, err)
		return c.Member
	}
	require.NoError(t, f.rooms.Block(t.Context(), f.room, room.Subject{Member: member(blocked)}, operator))
	require.NoError(t, f.rooms.Evict(t.Context(), f.room, room.Subject{Member: member(evicted)}, operator))
	f.relive()
	site := f.serve()
	for _, text := range []string{blocked, evicted} {
		p := site.poll(text)
		require.Equal(t, queue.NotEntered, p.Status)
		require.Equal(t, of(queue.OutcomeEvicted), p.LastOutcome)
	}
	require.Equal(t, queue.Waiting, site.poll(ann).Status)
}

func TestAPlaceLeftIsNotLost(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, bob := f.enter(), f.enter()
	f.relive()
	site := f.serve()
	require.Equal(t, queue.Waiting, site.poll(ann).Status)
	site.leave(ticket(ann)).is(http.StatusNoContent)
	require.Equal(t, of(queue.OutcomeLeft), site.poll(ann).LastOutcome, "an outcome ends every older ticket")
	f.pass(f.life.Rules.ForgetAfter)
	require.Equal(t, queue.NotEntered, f.serve().poll(bob).Status, "who does not ask for so long has gone")
}

func TestDeviationsOfARestoreAreToldAndLogged(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	used, _ := f.ready()
	first, second := f.enter(), f.enter()
	f.relive()
	var told []string
	var log bytes.Buffer
	site := f.serve(func(o *api.Options) {
		o.Observer.Restored = func(_, result string) { told = append(told, result) }
		o.Log = slog.New(slog.NewJSONHandler(&log, nil))
	})
	require.Equal(t, queue.NotEntered, site.poll(used).Status)
	require.Equal(t, queue.Waiting, site.poll(second).Status)
	require.Equal(t, []string{"refused", "restored"}, told)
	require.Empty(t, log.String(), "nothing has gone out of order so far")
	f.pass(f.life.Rules.Settle)
	require.Equal(t, 1, f.tick())
	require.Equal(t, queue.Waiting, site.poll(first).Status)
	require.Equal(t, []string{"refused", "restored", "passed"}, told)
	require.Contains(t, log.String(), "place restored behind others who were let through")
	require.Equal(t, queue.Waiting, site.poll(first).Status)
	require.Len(t, told, 3, "told once, not at each poll")
}

// A process that has not yet looked at the room again knows it as it was. Who is
// told to have no place goes and enters at the end.
func TestAProcessWithAViewOfBeforeTheLossBringsBackAllTheSame(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	bob, paid := f.ready()
	f.order(`[{"sku":"a","quantity":1}]`, token(paid)).is(http.StatusCreated)
	before, err := f.line.Snapshot(t.Context(), f.room)
	require.NoError(t, err)
	f.relive()
	site := f.serve(func(o *api.Options) {
		o.Snapshots, o.Books = frozen{o.Snapshots, before}, behind{o.Books, map[string]int64{f.room: before.Generation}}
	})
	require.Equal(t, queue.Consumed, site.get(ticket(bob), token(paid)).is(http.StatusOK).position().Status)
	require.Equal(t, queue.Waiting, site.get(ticket(ann), token(entry)).is(http.StatusOK).position().Status)
}
