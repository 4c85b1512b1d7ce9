package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/draw"
	"github.com/linekeeper/linekeeper/draw/closing"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// doors is when the draws of these tests end.
var doors = start.Add(10 * time.Minute)

// byName is a process that is told by a proxy on this machine who asks.
var byName = named("127.0.0.0/8")

// drawing is a room that draws until the doors open, whose members a proxy names.
func drawing(t *testing.T, changes ...func(*plan)) *fixture {
	t.Helper()
	return setUp(t, append([]func(*plan){
		settings(func(s *room.Settings) { s.Draw, s.AdmitsAt, s.BatchSize, s.MaxWaiting = true, &doors, 1000, 100_000 }),
		options(byName),
	}, changes...)...)
}

// open moves the clock to when the draw ends, and lets a scheduler come by.
func (f *fixture) open() {
	f.t.Helper()
	f.pass(doors.Sub(f.now()))
	require.Empty(f.t, f.reserve(), "nobody is taken before the list is kept")
}

// list makes the list, as the leader does.
func (f *fixture) list() {
	f.t.Helper()
	require.NoError(f.t, closing.Closer{Line: f.line, Books: f.rooms}.End(f.t.Context(), f.life))
}

func (s *site) draw() (d spec.Draw) {
	s.t.Helper()
	s.call("GET", strings.TrimSuffix(s.entries, "entries")+"draw").is(http.StatusOK).decode(&d)
	return d
}

func (s *site) document(more ...with) answer {
	s.t.Helper()
	return s.call("GET", strings.TrimSuffix(s.entries, "entries")+"draw/entrants", more...)
}

func (s *site) proof(more ...with) answer {
	s.t.Helper()
	return s.call("GET", strings.TrimSuffix(s.entries, "entries")+"draw/proof", more...)
}

func verified(t *testing.T, document []byte, want draw.Expect) {
	t.Helper()
	report, err := draw.Verify(bytes.NewReader(document), want)
	require.NoError(t, err)
	require.True(t, report.Valid, "%+v", report.Checks)
}

func TestADrawOfTenThousandIsVerifiedFromWhatIsPublic(t *testing.T) {
	t.Parallel()
	const n = 10_000
	f := drawing(t)
	promised := f.draw()
	require.Equal(t, spec.DrawState("open"), promised.State)
	commitment, err := draw.ParseHash(promised.Commitment)
	require.NoError(t, err)
	rec, err := f.rooms.Draw(t.Context(), f.room, 1)
	require.NoError(t, err)
	for i := range n - 1 {
		m := fmt.Sprint("member-", i)
		lot := queue.Lot{Sale: 1, First: rec.First(m, 0)}
		_, err := f.line.EnterWith(t.Context(), f.room, m, queue.Entry{Lot: lot})
		require.NoError(t, err)
	}
	f.post(member("ann")).is(http.StatusCreated)
	f.open()
	f.list()
	f.site = f.serve(byName)

	known := f.draw()
	require.Equal(t, spec.DrawState("listed"), known.State)
	require.EqualValues(t, n, *known.Entrants)
	root, err := draw.ParseHash(*known.Root)
	require.NoError(t, err)
	document := f.document().is(http.StatusOK).body
	verified(t, document, draw.Expect{Commitment: commitment, Root: root, Member: "ann"})
	for _, m := range []string{"ann", "member-0", "member-777", "member-9998"} {
		proof := f.proof(member(m)).is(http.StatusOK).body
		verified(t, proof, draw.Expect{Commitment: commitment, Root: root, Member: m})
	}
	f.proof(member("bob")).refused(http.StatusNotFound, "not-drawn")

	changed := bytes.Replace(document, []byte(`,"rank":5}`), []byte(`,"rank":6}`), 1)
	require.NotEqual(t, document, changed)
	report, err := draw.Verify(bytes.NewReader(changed), draw.Expect{Commitment: commitment, Root: root})
	require.NoError(t, err)
	require.False(t, report.Valid, "a changed list is caught")
	other := draw.NewSeed().Commitment()
	report, err = draw.Verify(bytes.NewReader(document), draw.Expect{Commitment: other})
	require.NoError(t, err)
	require.False(t, report.Valid, "another seed than the one promised is caught")
}

func TestThePlacesOfARoomAreThoseThatItsSeedGives(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	for i := range 50 {
		f.post(member(fmt.Sprint("m", i))).is(http.StatusCreated)
	}
	rec, err := f.rooms.Draw(t.Context(), f.room, 1)
	require.NoError(t, err)
	scores := f.rdb.ZRangeWithScores(t.Context(), f.key("lane0"), 0, -1).Val()
	require.Len(t, scores, 50)
	for _, z := range scores {
		key := rec.Key(rec.Entrant(z.Member.(string)), draw.Uniform, 1)
		require.True(t, key.Holds(int64(z.Score)), "%v at %.0f", z.Member, z.Score)
	}
}

func TestNobodySeesARankBeforeTheDrawIsListed(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	var ticketOf string
	hidden := func(p spec.Position) {
		t.Helper()
		require.Equal(t, queue.Waiting, p.Status)
		require.Nil(t, p.Rank)
		require.Nil(t, p.Score)
		require.Nil(t, p.CurrentTotalWaitingCount)
		require.Nil(t, p.EstimatedWaitSeconds)
		require.Equal(t, 5, p.PollingIntervalSeconds, "how often to ask says nothing of the rank")
	}
	for i := range 20 {
		p := f.post(member(fmt.Sprint("m", i))).is(http.StatusCreated).position()
		hidden(p)
		ticketOf = *p.QueueTicket
	}
	poll := func() spec.Position {
		return f.serve(byName).get(member("m19"), ticket(ticketOf)).is(http.StatusOK).position()
	}
	hidden(poll())
	var status spec.RoomStatus
	f.call("GET", strings.TrimSuffix(f.entries, "/entries")).decode(&status)
	require.Empty(t, status.Lanes[0].Marks, "from which anybody could tell the rank of a score")
	f.open()
	hidden(poll())
	f.list()
	p := poll()
	require.NotNil(t, p.Rank)
	require.NotNil(t, p.Score)
	require.Nil(t, p.EnteredAt, "a drawn place says no time")
}

func TestTheSeedIsReadByNobodyBeforeTheDrawIsListed(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	rec, err := f.rooms.Draw(t.Context(), f.room, 1)
	require.NoError(t, err)
	seed := rec.Seed.Reveal()
	secret := func(what, text string) {
		t.Helper()
		require.NotContains(t, text, seed, what)
	}
	check := func() {
		t.Helper()
		base := strings.TrimSuffix(f.entries, "/entries")
		for _, path := range []string{base, base + "/draw", base + "/draw?sale=1", base + "/entries/me"} {
			a := f.call("GET", path, member("ann"))
			secret(path, string(a.body)+fmt.Sprint(a.header))
		}
		secret("enter", string(f.post(member("ann")).body))
		f.document().refused(http.StatusConflict, "draw-not-over")
		f.proof(member("ann")).refused(http.StatusConflict, "draw-not-over")
		for key, value := range f.dump() {
			secret(key, fmt.Sprint(value))
		}
		changes, err := f.rooms.Changes(t.Context(), f.room, 0, 100)
		require.NoError(t, err)
		for _, c := range changes {
			secret("the audit", string(c.Before)+string(c.After))
		}
	}
	check()
	f.open()
	check()
	f.list()
	f.eventually("the seed is public", func() bool { return f.draw().Seed != nil && *f.draw().Seed == seed })
}

func TestLateComersOfADrawStandBehindInOrder(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	for i := range 20 {
		f.post(member(fmt.Sprint("m", i))).is(http.StatusCreated)
	}
	f.open()
	f.post(member("late")).is(http.StatusCreated)
	f.pass(time.Millisecond)
	f.post(member("later")).is(http.StatusCreated)
	f.list()
	f.pass(2 * time.Second)
	taken := f.reserve()
	require.Len(t, taken, 22)
	require.True(t, slices.IsSortedFunc(taken, func(a, b queue.Candidate) int { return int(a.Place.Score - b.Place.Score) }))
	require.Equal(t, []string{"late", "later"}, []string{taken[20].Member, taken[21].Member})
	f.eventually("they are no entrants", func() bool { d := f.draw(); return d.Entrants != nil && *d.Entrants == 20 })
}

func TestWhoLeavesADrawHasNoSecondTry(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	var scores []int64
	for range 3 {
		p := f.post(member("ann")).is(http.StatusCreated).position()
		scores = append(scores, int64(f.rdb.ZScore(t.Context(), f.key("lane0"), "ann").Val()))
		f.leave(member("ann"), ticket(*p.QueueTicket)).is(http.StatusNoContent)
	}
	for i, s := range scores {
		require.Equal(t, scores[0]/draw.Slots, s/draw.Slots, "the key is the same")
		require.Equal(t, scores[0]+int64(i), s, "and a late copy of the leaving does not find the new place")
	}
}

func TestWithoutItsSeedADrawTakesNobodyNew(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	f.post(member("ann")).is(http.StatusCreated)
	f.site = f.serve(byName, func(o *api.Options) { o.Draws = nil })
	f.post(member("bob")).refused(http.StatusServiceUnavailable, "unavailable")
	f.post(member("ann")).is(http.StatusOK)
	f.open()
	f.site = f.serve(byName, func(o *api.Options) { o.Draws = nil })
	f.post(member("bob")).is(http.StatusCreated)
}

func TestOnceOverADrawIsNotOpenedByMovingItsEnd(t *testing.T) {
	t.Parallel()
	f := drawing(t)
	f.post(member("ann")).is(http.StatusCreated)
	earlier, later := doors.Add(-5*time.Minute), doors.Add(time.Hour)
	f.change(func(s *room.Settings) { s.AdmitsAt = &earlier })
	f.pass(5*time.Minute - time.Second)
	require.Empty(t, f.reserve())
	f.post(member("bob")).is(http.StatusCreated)
	f.change(func(s *room.Settings) { s.AdmitsAt = &doors })
	f.pass(4 * time.Minute)
	f.post(member("cy")).is(http.StatusCreated)
	f.open()
	f.change(func(s *room.Settings) { s.AdmitsAt = &later })
	f.site = f.serve(byName)
	f.post(member("late")).is(http.StatusCreated)
	f.list()
	f.eventually("the draw is of those who came before its end", func() bool { d := f.draw(); return d.Entrants != nil && *d.Entrants == 3 })
	require.Empty(t, f.reserve(), "nobody is let through before the new time")
}

func TestARoomWithoutADrawHasNoneToShow(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, path := range []string{"draw", "draw/entrants", "draw/proof", "draw?sale=7"} {
		f.call("GET", strings.TrimSuffix(f.entries, "entries")+path).refused(http.StatusNotFound, "draw-not-found")
	}
	f.call("GET", strings.TrimSuffix(f.entries, "entries")+"draw?sale=x").refused(http.StatusBadRequest, "bad-request")
}

func TestALostDrawComesBackByItsTickets(t *testing.T) {
	t.Parallel()
	f := drawing(t, settings(func(s *room.Settings) { s.SettleSeconds = 0 }))
	tickets := map[string]string{}
	scores := map[string]float64{}
	for i := range 10 {
		m := fmt.Sprint("m", i)
		tickets[m] = *f.post(member(m)).is(http.StatusCreated).position().QueueTicket
		scores[m] = f.rdb.ZScore(t.Context(), f.key("lane0"), m).Val()
	}
	back := func() {
		t.Helper()
		f.lose()
		f.begin(f.life.Generation)
		f.site = f.serve(byName)
	}
	back()
	for m, text := range tickets {
		f.get(member(m), ticket(text)).is(http.StatusOK)
		require.Equal(t, scores[m], f.rdb.ZScore(t.Context(), f.key("lane0"), m).Val())
	}
	f.open()
	f.list()
	back()
	for m, text := range tickets {
		p := f.get(member(m), ticket(text)).is(http.StatusOK).position()
		require.NotNil(t, p.Rank, "the new generation knows that the draw is over")
		require.Equal(t, scores[m], f.rdb.ZScore(t.Context(), f.key("lane0"), m).Val())
	}
	f.post(member("late")).is(http.StatusCreated)
	f.pass(2 * time.Second)
	taken := f.reserve()
	require.Len(t, taken, 11)
	require.Equal(t, "late", taken[10].Member)
}

// A floor of an earlier sale is a time, and above every drawn place.
func TestFloorsOfAnEarlierSaleDoNotRefuseDrawnPlaces(t *testing.T) {
	t.Parallel()
	f := drawing(t, settings(func(s *room.Settings) { s.SettleSeconds = 0 }))
	f.post(member("ann")).is(http.StatusCreated)
	f.open()
	f.list()
	f.post(member("late")).is(http.StatusCreated)
	f.pass(2 * time.Second)
	require.Equal(t, 2, f.tick())
	_, err := f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	later := doors.Add(time.Hour)
	_, err = f.rooms.Update(t.Context(), f.room, 0, func(s room.Settings) (room.Settings, error) { s.AdmitsAt = &later; return s, nil }, operator)
	require.NoError(t, err)
	f.begin(f.written().Generation)
	f.site = f.serve(byName)
	require.Equal(t, int64(2), f.draw().Sale)
	text := *f.post(member("ann")).is(http.StatusCreated).position().QueueTicket
	score := f.rdb.ZScore(t.Context(), f.key("lane0"), "ann").Val()
	f.lose()
	f.begin(f.life.Generation)
	f.site = f.serve(byName)
	require.Equal(t, queue.Waiting, f.get(member("ann"), ticket(text)).is(http.StatusOK).position().Status)
	require.Equal(t, score, f.rdb.ZScore(t.Context(), f.key("lane0"), "ann").Val())
	verified(t, f.call("GET", strings.TrimSuffix(f.entries, "entries")+"draw/entrants?sale=1").is(http.StatusOK).body, draw.Expect{Member: "ann"})
}

func TestALotteryGoesOnBySecretKeys(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(byName), settings(func(s *room.Settings) { s.Priority, s.SettleSeconds = "lottery", 0 }))
	rec, err := f.rooms.Draw(t.Context(), f.room, 1)
	require.NoError(t, err)
	require.Equal(t, draw.Weighted, rec.Order)
	enterAll := func() (tickets map[string]string) {
		t.Helper()
		tickets = map[string]string{}
		for i := range 40 {
			m := fmt.Sprint("m", i)
			p := f.post(member(m)).is(http.StatusCreated).position()
			require.NotNil(t, p.Rank, "a lottery hides nothing")
			require.True(t, *p.Overtakable)
			require.Nil(t, p.EnteredAt)
			require.True(t, rec.Key(rec.Entrant(m), draw.Weighted, 1).Holds(*p.Score))
			tickets[m] = *p.QueueTicket
		}
		return tickets
	}
	tickets := enterAll()
	f.call("GET", strings.TrimSuffix(f.entries, "entries")+"draw").refused(http.StatusNotFound, "draw-not-found")
	f.lose()
	f.begin(f.life.Generation)
	f.site = f.serve(byName)
	require.Equal(t, queue.NotEntered, f.get(member("m7"), ticket(tickets["m7"])).is(http.StatusOK).position().Status, "no place is restored")
	f.post(member("m7"), ticket(tickets["m7"])).is(http.StatusCreated)
	require.True(t, rec.Key(rec.Entrant("m7"), draw.Weighted, 1).Holds(int64(f.rdb.ZScore(t.Context(), f.key("lane0"), "m7").Val())),
		"entering again gives it")
}

// Near the front people are told to ask sooner than their pick-up time allows for,
// which would say that they are near the front.
func TestHowSoonToAskSaysNothingOfARankBeforeTheDrawIsListed(t *testing.T) {
	t.Parallel()
	f := drawing(t, settings(func(s *room.Settings) { s.PickupTTLSeconds, s.BatchSize = 10, 1 }))
	text := *f.post(member("ann")).is(http.StatusCreated).position().QueueTicket
	ahead := make([]redis.Z, 1500) // beyond the horizon
	for i := range ahead {
		ahead[i] = redis.Z{Score: float64(draw.First - 1 - i), Member: fmt.Sprint("m", i)}
	}
	require.NoError(t, f.rdb.ZAdd(t.Context(), f.key("lane0"), ahead...).Err())
	for range 40 {
		require.LessOrEqual(t, f.get(member("ann"), ticket(text)).is(http.StatusOK).position().NextPollAfterMs, 3334)
	}
}
