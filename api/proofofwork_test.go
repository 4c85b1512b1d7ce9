package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/work"
)

// easy is what these tests have to work for.
const easy = 8

func working(bits int) func(*plan) {
	return settings(func(s *room.Settings) { s.ProofOfWorkBits = bits })
}

// asked is what a newcomer is told to show, and their ticket.
func (a answer) asked() (ticket string, puzzle spec.ProofOfWork) {
	a.t.Helper()
	p := a.is(http.StatusOK).position()
	require.Equal(a.t, queue.NotEntered, p.Status)
	require.NotNil(a.t, p.QueueTicket)
	require.NotNil(a.t, p.MustShow)
	require.NotNil(a.t, p.MustShow.ProofOfWork)
	return *p.QueueTicket, *p.MustShow.ProofOfWork
}

func solved(t *testing.T, p spec.ProofOfWork) with {
	t.Helper()
	nonce, err := work.Solve(t.Context(), p.Challenge, p.Bits)
	require.NoError(t, err)
	return proof(nonce)
}

func proof(nonce string) with { return header("X-Proof-Of-Work", nonce) }

// unsolved is a number that solves nothing.
func unsolved(p spec.ProofOfWork) with {
	for n := range 1000 {
		if nonce := strconv.Itoa(n); !work.Done(p.Challenge, nonce, p.Bits) {
			return proof(nonce)
		}
	}
	panic("every number solves it")
}

func TestAProofOfWorkMakesOnePlaceAndNothingIsKeptBefore(t *testing.T) {
	t.Parallel()
	f := setUp(t, working(easy))
	before := f.dump()
	var text string
	var puzzle spec.ProofOfWork
	for range 5 {
		text, puzzle = f.post().asked()
		require.Equal(t, easy, puzzle.Bits)
	}
	again := f.post(ticket(text)).is(http.StatusOK).position()
	require.Nil(t, again.QueueTicket, "the ticket is as good as before")
	require.Equal(t, puzzle, *again.MustShow.ProofOfWork, "who asks again does not begin again")
	require.False(t, again.MustShow.ChallengeResponse)
	require.Equal(t, before, f.dump(), "S5: the room keeps something of who has shown nothing")

	right := solved(t, puzzle)
	entered := f.post(ticket(text), right).is(http.StatusCreated).position()
	require.Equal(t, queue.Waiting, entered.Status)
	require.Nil(t, entered.MustShow)
	require.EqualValues(t, 1, *entered.CurrentTotalWaitingCount)
	for range 3 {
		p := f.post(ticket(text), right).is(http.StatusOK).position()
		require.Equal(t, entered.Score, p.Score, "one solution is one place, however often it is shown")
	}
	bound, err := f.ring.Ticket(text)
	require.NoError(t, err)
	placed, err := f.ring.Ticket(*entered.QueueTicket)
	require.NoError(t, err)
	require.Equal(t, bound.Member, placed.Member)
	require.Zero(t, placed.Work, "a ticket of a place asks for nothing")
}

func TestATicketAndWorkAreAskedForInOneAnswer(t *testing.T) {
	t.Parallel()
	f := setUp(t, working(easy), settings(func(s *room.Settings) { s.EnterNeedsTicket = true }))
	text, puzzle := f.post().asked()
	f.post(ticket(text), solved(t, puzzle)).is(http.StatusCreated)
}

func TestABrowserWorksForItsCookie(t *testing.T) {
	t.Parallel()
	f := setUp(t, working(easy))
	first := f.post()
	text, puzzle := first.asked()
	require.Equal(t, text, first.setCookie().Value)
	f.post(cookie("linekeeper_"+f.room, text), solved(t, puzzle)).is(http.StatusCreated)
}

// deaf is a process whose line does not answer: what gets as far as the line is 503.
func (f *fixture) deaf(changes ...func(*api.Options)) *site {
	return f.serve(append(changes, func(o *api.Options) { o.Line = brokenLine{queue.ErrUnavailable} })...)
}

func TestAProofThatIsNotGoodIsRefusedBeforeRedisIsAsked(t *testing.T) {
	t.Parallel()
	f := setUp(t, working(easy))
	text, puzzle := f.post().asked()
	foreign, other := f.post().asked()
	right, before, deaf := solved(t, puzzle), f.dump(), f.deaf()
	deaf.post(ticket(text), right).refused(http.StatusServiceUnavailable, "unavailable") // the way to the line
	for what, shown := range map[string][]with{
		"no solution":           {ticket(text), unsolved(puzzle)},
		"no number":             {ticket(text), proof("abc")},
		"a second spelling":     {ticket(text), proof("007")},
		"nothing":               {ticket(text), proof("")},
		"a long one":            {ticket(text), proof("1234567890123")},
		"two of them":           {ticket(text), right, right},
		"without the ticket":    {right},
		"with another's ticket": {ticket(foreign), unsolved(other)},
	} {
		deaf.post(shown...).refused(http.StatusForbidden, "proof-of-work-invalid")
		require.Equal(t, before, f.dump(), what)
	}
	deaf.post().asked() // nor is it asked about who shows nothing and is nobody
	require.Equal(t, before, f.dump())
}

func TestASolutionOfAnotherRoomSaleOrMemberIsRefused(t *testing.T) {
	t.Parallel()
	keys := func(p *plan) { p.keys = oneKey }
	f, other := setUp(t, keys, working(easy)), setUp(t, keys, working(easy))
	text, puzzle := other.post().asked()
	right := solved(t, puzzle)
	f.post(ticket(text), right).refused(http.StatusUnauthorized, "ticket-invalid")
	own, mine := f.post().asked()
	for work.Done(mine.Challenge, nonceOf(right), mine.Bits) { // by chance
		own, mine = f.post().asked()
	}
	f.post(ticket(own), right).refused(http.StatusForbidden, "proof-of-work-invalid")

	right = solved(t, mine)
	_, err := f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	f.pass(time.Second)
	f.begin(f.written().Generation)
	next := f.serve()
	next.post(ticket(own), right).refused(http.StatusForbidden, "proof-of-work-invalid")
	fresh, _ := next.post(ticket(own)).asked()
	require.NotEqual(t, own, fresh, "of the new sale")
	require.Zero(t, f.rdb.ZCard(t.Context(), f.key("lane0")).Val())

	named := setUp(t, working(easy), options(byName))
	text, puzzle = named.post(member("ann")).asked()
	right = solved(t, puzzle)
	named.post(member("bob"), ticket(text), right).refused(http.StatusUnauthorized, "ticket-invalid")
	named.post(member("bob"), right).refused(http.StatusForbidden, "proof-of-work-invalid")
	named.post(member("ann"), ticket(text), right).is(http.StatusCreated)
}

func nonceOf(w with) string {
	r := &http.Request{Header: http.Header{}}
	w(r)
	return r.Header.Get("X-Proof-Of-Work")
}

func TestASolutionComesTooLateByTheClockOfRedis(t *testing.T) {
	t.Parallel()
	f := setUp(t, working(easy))
	text, puzzle := f.post().asked()
	right := solved(t, puzzle)
	require.WithinDuration(t, f.now().Add(3*time.Minute), puzzle.ExpiresAt, 5*time.Second)
	f.pass(3*time.Minute - 10*time.Second)
	f.serve().post(ticket(text)).is(http.StatusOK)
	f.pass(11 * time.Second)
	late := f.serve()
	late.post(ticket(text), right).refused(http.StatusForbidden, "proof-of-work-invalid")
	fresh, another := late.post(ticket(text)).asked()
	require.NotEqual(t, puzzle.Challenge, another.Challenge)
	late.post(ticket(fresh), solved(t, another)).is(http.StatusCreated)
}

func TestWhoHasAPlaceNeedsNoProof(t *testing.T) {
	t.Parallel()
	f := setUp(t, working(easy))
	text, puzzle := f.post().asked()
	right := solved(t, puzzle)
	entered := f.post(ticket(text), right).is(http.StatusCreated).position()
	same := func(a answer) {
		t.Helper()
		require.Equal(t, entered.Score, a.is(http.StatusOK).position().Score)
	}
	same(f.post(ticket(*entered.QueueTicket)))
	same(f.post(ticket(text))) // the answer with the new ticket got lost
	readOnly := f.serve(func(o *api.Options) { o.Line = failsToEnter{o.Line} })
	same(readOnly.post(ticket(text))) // nor is it tried to make another
	f.pass(time.Hour)
	late := f.serve()
	same(late.post(ticket(text)))
	same(late.post(ticket(text), right)) // a repeat that comes too late to count
	f.relive()
	same(f.serve().post(ticket(*entered.QueueTicket)))

	named := setUp(t, options(byName))
	named.post(member("ann")).is(http.StatusCreated)
	named.change(func(s *room.Settings) { s.ProofOfWorkBits = easy })
	named.serve(byName).post(member("ann")).is(http.StatusOK).position()
	require.Equal(t, queue.Waiting, named.serve(byName).post(member("ann")).position().Status, "also without a ticket")
}

func TestASolutionMakesNoSecondPlaceWhenTheFirstIsOver(t *testing.T) {
	t.Parallel()
	f := setUp(t, working(easy))
	text, puzzle := f.post().asked()
	right := solved(t, puzzle)
	entered := f.post(ticket(text), right).is(http.StatusCreated).position()
	f.leave(ticket(*entered.QueueTicket)).is(http.StatusNoContent)

	anew, _ := f.post(ticket(text), right).asked()
	require.NotEqual(t, text, anew)
	fresh, another := f.post(ticket(*entered.QueueTicket)).asked()
	require.NotEqual(t, puzzle.Challenge, another.Challenge)
	require.Zero(t, f.rdb.ZCard(t.Context(), f.key("lane0")).Val())
	f.pass(time.Second)
	again := f.post(ticket(fresh), solved(t, another)).is(http.StatusCreated).position()
	require.Greater(t, *again.Score, *entered.Score)
}

func TestWhoHasOrderedIsAskedAnewUnlessItIsTheOneOrder(t *testing.T) {
	t.Parallel()
	for _, one := range []bool{false, true} {
		f := setUp(t, working(easy), settings(func(s *room.Settings) { s.OneOrderPerMember = one }))
		text, puzzle := f.post().asked()
		right := solved(t, puzzle)
		entered := *f.post(ticket(text), right).is(http.StatusCreated).position().QueueTicket
		require.Equal(t, 1, f.tick())
		g, err := f.ring.Grant(*f.poll(entered).EntryToken)
		require.NoError(t, err)
		require.NoError(t, f.line.Claim(t.Context(), g, "attempt", 15*time.Second))
		_, err = f.line.Consume(t.Context(), f.room, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: uuid.NewString()}})
		require.NoError(t, err)
		for _, shown := range []with{ticket(text), ticket(entered)} {
			if a := f.serve().post(shown, right); one {
				a.refused(http.StatusConflict, "already-ordered")
			} else if a.status == http.StatusOK {
				a.asked()
			} else {
				a.refused(http.StatusForbidden, "proof-of-work-invalid")
			}
		}
	}
}

// Where the end of a stay is forgotten sooner than a solution, it could be shown again.
func TestASolutionEndsBeforeTheStayItMadeIsForgotten(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.ProofOfWorkBits, s.DoneTTLSeconds = easy, 60 }))
	_, puzzle := f.post().asked()
	require.WithinDuration(t, f.now().Add(time.Minute), puzzle.ExpiresAt, 5*time.Second)
}

func TestBitsRiseWithThePlacesMadeAndFallAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.ProofOfWorkBits, s.ProofOfWorkMaxBits, s.ProofOfWorkRate = easy, easy+3, 10 }))
	text, puzzle := f.post().asked()
	require.Equal(t, easy, puzzle.Bits)
	right := solved(t, puzzle)
	bits := func() int {
		_, puzzle := f.post().asked()
		return puzzle.Bits
	}
	for i := range 600 {
		_, err := f.line.EnterWith(t.Context(), f.room, fmt.Sprint("m", i, rand.Int64()), queue.Entry{})
		require.NoError(t, err)
	}
	f.pass(time.Second)
	f.eventually("more come than are usual, and no more than the most is asked", func() bool { return bits() == easy+3 })
	f.post(ticket(text), right).is(http.StatusCreated) // what was asked is asked
	f.pass(5 * time.Second)
	f.eventually("it falls as fewer come", func() bool { b := bits(); return easy < b && b < easy+3 })
	f.pass(time.Minute)
	f.eventually("nobody comes any more", func() bool { return bits() == easy })
}

// Requests are free: if they counted, anybody could make it dear for everybody.
func TestAskingDoesNotMakeItDearer(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.ProofOfWorkBits, s.ProofOfWorkMaxBits, s.ProofOfWorkRate = easy, 24, 1 }))
	snapshots := &countedSnapshots{Snapshots: f.line}
	site := f.serve(func(o *api.Options) { o.Snapshots = snapshots })
	f.eventually("the room has been looked at again", func() bool {
		f.pass(100 * time.Millisecond)
		_, puzzle := site.post().asked()
		require.Equal(t, easy, puzzle.Bits)
		return snapshots.reads.Load() > 3
	})
}

func TestNobodyWorksForARoomThatTakesNobody(t *testing.T) {
	t.Parallel()
	later := start.Add(time.Hour)
	for code, change := range map[string]func(*room.Settings){
		"room-not-open": func(s *room.Settings) { s.OpensAt = &later },
		"room-closed":   func(s *room.Settings) { s.Draining = true },
		"room-full":     func(s *room.Settings) { s.MaxWaiting = 1 },
	} {
		f := setUp(t, settings(change))
		if code == "room-full" {
			f.enter()
		}
		f.change(func(s *room.Settings) { s.ProofOfWorkBits = easy })
		status := http.StatusForbidden
		if code == "room-full" {
			status = http.StatusTooManyRequests
		}
		f.deaf().post().refused(status, code)
	}
}
