package api_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

func code(text string) with { return header("X-Access-Code", text) }

// twoLanes is a room with a vip lane that members enter by name.
func twoLanes(s *room.Settings) {
	s.Lanes = []room.Lane{{Name: "standard", Weight: 1}, {Name: "vip", Weight: 3}}
}

// codes makes access codes as an operator does.
func (f *fixture) codes(want room.NewCodes) []string {
	f.t.Helper()
	codes, _, err := f.rooms.MakeCodes(f.t.Context(), f.room, want, operator)
	require.NoError(f.t, err)
	require.Len(f.t, codes, want.Count)
	return codes
}

// used is how many uses of its codes the room has counted in this sale.
func (f *fixture) used() (n int) {
	f.t.Helper()
	all, err := f.rooms.Codes(f.t.Context(), f.room, 0, 100)
	require.NoError(f.t, err)
	for _, c := range all {
		n += c.Used
	}
	return n
}

func TestACodeGivesItsLaneAndCostsOneUseHoweverOftenItsMemberEnters(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName), settings(twoLanes))
	vip := f.codes(room.NewCodes{Lane: "vip", Uses: 1, Count: 1})[0]
	p := f.post(member("ann"), code(strings.ToLower(vip))).is(http.StatusCreated).position()
	require.Equal(t, "vip", *p.Lane)
	require.Equal(t, 1, f.used())
	f.post(member("ann"), code(vip)).is(http.StatusOK)
	f.leave(member("ann")).is(http.StatusNoContent)
	require.Equal(t, "vip", *f.post(member("ann"), code(vip)).is(http.StatusCreated).position().Lane, "again, in the same sale")
	require.Equal(t, 1, f.used())
	f.post(member("bob"), code(vip)).refused(http.StatusForbidden, "access-code-refused")
	require.Equal(t, queue.NotEntered, f.get(member("bob")).is(http.StatusOK).position().Status)
}

func TestWhoHasAPlaceSpendsNoCode(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName), settings(twoLanes))
	vip := f.codes(room.NewCodes{Lane: "vip", Uses: 1, Count: 1})[0]
	f.post(member("ann")).is(http.StatusCreated)
	require.Equal(t, "standard", *f.post(member("ann"), code(vip)).is(http.StatusOK).position().Lane)
	require.Equal(t, "standard", *f.post(member("ann"), code("nonsense")).is(http.StatusOK).position().Lane)
	require.Zero(t, f.used())
}

func TestCodesThatDoNotCountAreAnsweredAlikeAndChangeNothing(t *testing.T) {
	t.Parallel()
	f, other := setUp(t, options(byName), settings(twoLanes)), setUp(t, settings(twoLanes))
	codes := f.codes(room.NewCodes{Lane: "vip", Uses: 1, Count: 3})
	foreign := other.codes(room.NewCodes{Lane: "vip", Uses: 1, Count: 1})[0]
	f.post(member("ann"), code(codes[0])).is(http.StatusCreated)
	all, err := f.rooms.Codes(t.Context(), f.room, 0, 10)
	require.NoError(t, err)
	_, err = f.rooms.RevokeCodes(t.Context(), f.room, room.Revocation{ID: all[1].ID}, operator)
	require.NoError(t, err)
	before, bodies := f.dump(), map[string]bool{}
	for what, shown := range map[string][]with{
		"wrong": {code(room.NewCode())}, "used up": {code(codes[0])}, "revoked": {code(codes[1])}, "of another room": {code(foreign)},
		"no code": {code("'; DROP TABLE access_codes; --")}, "empty": {code("")}, "two": {code(codes[2]), code(codes[2])},
	} {
		a := f.post(append(shown, member("eve"), header("X-Request-Id", "the-same"))...).refused(http.StatusForbidden, "access-code-refused")
		bodies[string(a.body)] = true
		require.NotContains(t, string(a.body), codes[0], what)
	}
	require.Len(t, bodies, 1, "byte for byte")
	require.Equal(t, before, f.dump())
	require.Equal(t, 1, f.used())
}

func TestOfFiftyAtOnceExactlyAsManyEnterAsACodeHasUses(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName), settings(func(s *room.Settings) { s.InvitedOnly = true }))
	shared := f.codes(room.NewCodes{Uses: 7, Count: 1})[0]
	one := f.codes(room.NewCodes{Uses: 1, Count: 1})[0]
	var entered, refused, mine, others atomic.Int64
	var wg sync.WaitGroup
	try := func(name, typed string, ok, no *atomic.Int64) {
		a, err := f.try(t.Context(), "POST", f.entries, member(name), code(typed), from("192.0.2."+name[1:]))
		switch {
		case err != nil:
			t.Error(err)
		case a.status == http.StatusCreated || a.status == http.StatusOK:
			ok.Add(1)
		case a.status == http.StatusForbidden:
			no.Add(1)
		default:
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	for i := range 50 {
		wg.Go(func() { try("m"+strconv.Itoa(i), shared, &entered, &refused) })
		wg.Go(func() { try("a200", one, &mine, &others) })
	}
	wg.Wait()
	require.EqualValues(t, 7, entered.Load())
	require.EqualValues(t, 43, refused.Load())
	require.Zero(t, others.Load(), "whose use it is, is never refused")
	require.Equal(t, 7+1, f.used())
	require.EqualValues(t, 8, f.rdb.ZCard(t.Context(), f.key("lane0")).Val())
}

func TestInAnInvitedRoomAClaimOrACodeIsTheRightToEnter(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName), settings(twoLanes), settings(func(s *room.Settings) { s.InvitedOnly = true }))
	f.post(member("ann")).refused(http.StatusForbidden, "not-invited")
	require.Equal(t, "vip", *f.post(member("bob"), header("X-Member-Lane", "vip")).is(http.StatusCreated).position().Lane)
	open := f.codes(room.NewCodes{Uses: 1, Count: 1})[0]
	require.Equal(t, "standard", *f.post(member("ann"), code(open)).is(http.StatusCreated).position().Lane, "a code without a lane is a right alone")
	f.post(member("ann")).is(http.StatusOK)
	f.get(member("ann")).is(http.StatusOK)
}

func TestAnAnonymousMemberGetsATicketBeforeACodeIsUsed(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(twoLanes))
	vip := f.codes(room.NewCodes{Lane: "vip", Uses: 1, Count: 1})[0]
	before := f.dump()
	first := f.post(code(vip)).is(http.StatusOK).position()
	require.Equal(t, queue.NotEntered, first.Status)
	require.Equal(t, before, f.dump())
	require.Zero(t, f.used())
	p := f.post(code(vip), ticket(*first.QueueTicket)).is(http.StatusCreated).position()
	require.Equal(t, "vip", *p.Lane)
	require.Equal(t, *p.Score, *f.post(code(vip), ticket(*first.QueueTicket)).is(http.StatusOK).position().Score, "the answer got lost")
	require.Equal(t, 1, f.used())
}

// shut is a line that closes just before somebody enters.
type shut struct{ api.Line }

func (shut) EnterWith(context.Context, string, string, queue.Entry) (queue.Standing, error) {
	return queue.Standing{}, queue.ErrClosed
}

func TestAnEnterThatFailsAfterAUseIsFreeTheNextTime(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName))
	once := f.codes(room.NewCodes{Uses: 1, Count: 1})[0]
	closed := f.serve(byName, func(o *api.Options) { o.Line = shut{o.Line} })
	closed.post(member("ann"), code(once)).refused(http.StatusForbidden, "room-closed")
	require.Equal(t, 1, f.used())
	f.post(member("ann"), code(once)).is(http.StatusCreated)
	require.Equal(t, 1, f.used())
}

func TestWhatTheRoomWouldRefuseUsesUpNoCode(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName), settings(func(s *room.Settings) { s.OneOrderPerMember = true }))
	once := f.codes(room.NewCodes{Uses: 1, Count: 1})[0]
	f.post(member("ann")).is(http.StatusCreated)
	require.Equal(t, 1, f.tick())
	g, err := f.ring.Grant(*f.get(member("ann")).is(http.StatusOK).position().EntryToken)
	require.NoError(t, err)
	require.NoError(t, f.line.Claim(t.Context(), g, "attempt", 15*time.Second))
	_, err = f.line.Consume(t.Context(), f.room, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: uuid.NewString()}})
	require.NoError(t, err)
	f.post(member("ann"), code(once)).refused(http.StatusConflict, "already-ordered")

	require.NoError(t, f.rooms.Block(t.Context(), f.room, room.Subject{Member: "mal"}, operator))
	f.serve(byName).post(member("mal"), code(once)).refused(http.StatusForbidden, "member-blocked")

	later := start.Add(time.Hour)
	for problem, change := range map[string]func(*room.Settings){
		"room-not-open": func(s *room.Settings) { s.OpensAt = &later },
		"room-closed":   func(s *room.Settings) { s.OpensAt, s.Draining = nil, true },
	} {
		f.change(change)
		f.serve(byName).post(member("bob"), code(once)).refused(http.StatusForbidden, problem)
	}
	require.Zero(t, f.used())
}

func TestWhoIsNotInvitedHasNothingToWorkFor(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.InvitedOnly, s.ProofOfWorkBits = true, 8 }))
	f.deaf().post().refused(http.StatusForbidden, "not-invited")
}

func TestANewSaleFreesTheUsesOfCodes(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName))
	once := f.codes(room.NewCodes{Uses: 1, Count: 1})[0]
	f.post(member("ann"), code(once)).is(http.StatusCreated)
	flushed, err := f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	require.Zero(t, f.used())
	f.begin(flushed.Generation)
	again := f.serve(byName)
	again.post(member("bob"), code(once)).is(http.StatusCreated)
	require.Equal(t, 1, f.used(), "counted from the beginning")
	again.post(member("ann"), code(once)).refused(http.StatusForbidden, "access-code-refused")
}

func TestAFloodOfGuessesIsNotLookedUp(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName))
	var late atomic.Int64
	f.site = f.serve(byName, func(o *api.Options) {
		o.Limits.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	})
	good := f.codes(room.NewCodes{Uses: 9, Count: 1})[0]
	before := f.dump()
	guess := func(address string) answer {
		return f.post(member("eve"), from(address), code(room.NewCode()))
	}
	for range 20 {
		guess("192.0.2.1").refused(http.StatusForbidden, "access-code-refused")
	}
	a := guess("192.0.2.1").refused(http.StatusTooManyRequests, "rate-limited")
	require.NotEmpty(t, a.header.Get("Retry-After"))
	f.post(member("ann"), from("192.0.2.1"), code(good)).refused(http.StatusTooManyRequests, "rate-limited")
	require.Equal(t, before, f.dump(), "Redis has been told of none of it")
	require.Zero(t, f.used())
	f.post(member("bob"), from("192.0.2.2"), code(good)).is(http.StatusCreated)
	f.pass(time.Hour) // the clock of one room forgives nothing
	f.post(member("ann"), from("192.0.2.1"), code(good)).refused(http.StatusTooManyRequests, "rate-limited")
	late.Store(int64(time.Minute))
	f.post(member("ann"), from("192.0.2.1"), code(good)).is(http.StatusCreated)
}
