package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// straightIn is a room that lets people straight in and has been ticked once, of
// members who are named.
func straightIn(t *testing.T, changes ...func(*plan)) *fixture {
	t.Helper()
	f := setUp(t, append([]func(*plan){
		settings(func(s *room.Settings) { s.DirectAdmission = true }), options(named("127.0.0.0/8")),
	}, changes...)...)
	f.tick()
	return f
}

func TestWhoNeedNotWaitGetsATokenByEntering(t *testing.T) {
	t.Parallel()
	f := straightIn(t)
	var in []string
	var moves []api.Move
	site := f.serve(named("127.0.0.0/8"), func(o *api.Options) {
		o.Observer.StraightIn = func(room, lane string) { in = append(in, lane) }
		o.Observer.Moved = func(_ context.Context, m api.Move) { moves = append(moves, m) }
	})
	p := site.post(member("ann")).is(http.StatusCreated).position()
	require.Equal(t, queue.Ready, p.Status)
	require.Equal(t, []string{"standard"}, in)
	require.Equal(t, "READY", moves[0].To)
	require.Equal(t, f.grant(*p.EntryToken).ID, moves[0].Grant)
	again := site.post(member("ann")).is(http.StatusOK).position()
	require.Equal(t, p.EntryToken, again.EntryToken, "the same grant, the same bytes")
	require.Len(t, in, 1)
	site.order(oneA, token(*p.EntryToken), member("ann")).is(http.StatusCreated)
}

func TestWhoIsBarredIsNotLetStraightInByAProcessThatDoesNotKnowYet(t *testing.T) {
	t.Parallel()
	f := straightIn(t)
	f.site = f.serve(named("127.0.0.0/8"), func(o *api.Options) { o.KeptOut = nil })
	require.NoError(t, f.rooms.Evict(t.Context(), f.room, room.Subject{Member: "eve"}, operator))
	require.NoError(t, f.rooms.Block(t.Context(), f.room, room.Subject{Member: "mal"}, operator))
	require.Equal(t, queue.Waiting, f.post(member("eve")).is(http.StatusCreated).position().Status)
	require.Equal(t, queue.Waiting, f.post(member("mal")).is(http.StatusCreated).position().Status)
}

// mute fails or holds up the question who is barred.
type mute struct {
	api.Books
	hangs bool
}

func (m mute) Barred(ctx context.Context, _ string, _ int64, _ []string, _ bool) (map[string]bool, error) {
	if m.hangs {
		<-ctx.Done()
	}
	return nil, errors.New("connection refused")
}

func TestWithoutTheWordOfPostgresNobodyIsLetStraightIn(t *testing.T) {
	t.Parallel()
	f := straightIn(t)
	for _, hangs := range []bool{false, true} {
		site := f.serve(named("127.0.0.0/8"), func(o *api.Options) { o.Books = mute{o.Books, hangs} })
		begun := time.Now()
		p := site.post(member("ann")).position()
		require.Equal(t, queue.Waiting, p.Status)
		require.Less(t, time.Since(begun), 2*time.Second, "nobody hangs on it")
	}
	require.Equal(t, 1, f.tick(), "a tick asks again")
}

// TestThreeProcessesThatLetPeopleStraightInKeepRateAndOrder has three times as
// many come as the rate allows, to three processes at once, each with a view of
// the room that is older than what the others have just done.
func TestThreeProcessesThatLetPeopleStraightInKeepRateAndOrder(t *testing.T) {
	t.Parallel()
	const batch = 10
	f := straightIn(t, settings(func(s *room.Settings) { s.BatchSize = batch }))
	sites := []*site{f.serve(named("127.0.0.0/8")), f.serve(named("127.0.0.0/8")), f.serve(named("127.0.0.0/8"))}
	type entry struct {
		at    time.Time
		score int64
		in    bool
	}
	var mu sync.Mutex
	var all []entry
	for step := range 40 { // 4 s, 30 a second
		f.pass(100 * time.Millisecond)
		waitedBefore := int64(0)
		if snap, err := f.line.Snapshot(t.Context(), f.room); err == nil {
			waitedBefore = snap.Waiting()
		}
		var g errgroup.Group
		for i, s := range sites {
			g.Go(func() error {
				a, err := s.try(t.Context(), "POST", s.entries, member(fmt.Sprint("m", i, "-", step)))
				if err != nil {
					return err
				}
				p := a.position()
				mu.Lock()
				defer mu.Unlock()
				all = append(all, entry{f.now(), *p.Score, p.Status == queue.Ready})
				if p.Status == queue.Ready && waitedBefore > 0 {
					return errors.New("let straight in past those who wait")
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		if step%5 == 4 {
			taken := f.reserve()
			f.issue(taken)
			for _, c := range taken {
				all = append(all, entry{f.now(), c.Place.Score, true})
			}
		}
	}
	var times []time.Time
	straight := 0
	for _, e := range all {
		if e.in {
			times = append(times, e.at)
		}
	}
	snap, err := f.line.Snapshot(t.Context(), f.room)
	require.NoError(t, err)
	require.EqualValues(t, len(times), snap.Lanes[0].Admitted)
	for _, e := range all[:9] {
		if e.in {
			straight++
		}
	}
	require.Equal(t, 9, straight, "while the bucket lasts nobody need wait")
	slices.SortFunc(times, time.Time.Compare)
	for i := range times {
		for k := i; k < len(times); k++ {
			window := times[k].Sub(times[i]).Seconds()
			require.LessOrEqual(t, float64(k-i+1), batch*window+batch+1e-9, "I10")
		}
	}
	require.GreaterOrEqual(t, len(times), 45, "the rate is used: 40 in 4 s, and the first batch")
}

// crowded counts how many ask at once who is barred.
type crowded struct {
	api.Books
	mu        *sync.Mutex
	now, most *int
}

func (c crowded) Barred(context.Context, string, int64, []string, bool) (map[string]bool, error) {
	c.mu.Lock()
	*c.now++
	*c.most = max(*c.most, *c.now)
	c.mu.Unlock()
	time.Sleep(5 * time.Millisecond) // how long Postgres takes
	c.mu.Lock()
	*c.now--
	c.mu.Unlock()
	return nil, nil
}

func TestACrowdAsksPostgresAFewAtATime(t *testing.T) {
	t.Parallel()
	f := straightIn(t)
	c := crowded{mu: &sync.Mutex{}, now: new(int), most: new(int)}
	site := f.serve(named("127.0.0.0/8"), func(o *api.Options) { c.Books = o.Books; o.Books = c })
	site.status(f.room)
	var g errgroup.Group
	for i := range 40 {
		g.Go(func() error {
			_, err := site.try(t.Context(), "POST", site.entries, member(fmt.Sprint("m", i)))
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Positive(t, *c.most)
	require.LessOrEqual(t, *c.most, 3, "the scheduler uses the same connections")
}

func TestATicketOfAPlaceLetThroughBringsNothingBackByItself(t *testing.T) {
	t.Parallel()
	f := straightIn(t)
	p := f.post(member("ann")).is(http.StatusCreated).position()
	text, entry := *p.QueueTicket, *p.EntryToken
	c, err := f.ring.Ticket(text)
	require.NoError(t, err)
	require.True(t, c.Granted)
	written := f.written()
	require.Zero(t, written.Floors[0], "Postgres has never heard of the place")
	f.relive()
	site := f.serve(named("127.0.0.0/8"))
	require.Equal(t, queue.NotEntered, site.get(member("ann"), ticket(text)).is(http.StatusOK).position().Status,
		"a second turn for one place")
	require.NotEqual(t, p.Score, site.post(member("ann"), ticket(text)).is(http.StatusCreated).position().Score)
	site.order(oneA, token(entry), member("ann")).refused(http.StatusUnauthorized, "entry-token-invalid")

	// With the token, which is voided first, it is one turn all the same.
	f.relive()
	f.pass(f.life.Rules.Settle)
	bob := f.serve(named("127.0.0.0/8"))
	f.tick()
	got := bob.post(member("bob")).is(http.StatusCreated).position()
	require.Equal(t, queue.Ready, got.Status)
	f.relive()
	bob = f.serve(named("127.0.0.0/8"))
	back := bob.get(member("bob"), ticket(*got.QueueTicket), token(*got.EntryToken)).is(http.StatusOK).position()
	require.Equal(t, queue.Waiting, back.Status)
	require.Equal(t, got.Score, back.Score)
	bob.order(oneA, token(*got.EntryToken), member("bob")).refused(http.StatusUnauthorized, "entry-token-invalid")
}

func TestAGrantThatNobodyFetchedLeavesTheTicketAsGoodAsBefore(t *testing.T) {
	t.Parallel()
	f := straightIn(t)
	st, err := f.line.EnterWith(t.Context(), f.room, "ann", queue.Entry{Grant: credential.NewGrantID(), Asked: f.now()})
	require.NoError(t, err)
	require.Equal(t, queue.Ready, st.Status)
	old, err := f.ring.SignTicket(credential.Ticket{Room: f.room, Sale: st.Sale, Generation: st.Generation, Member: "ann",
		Place: st.Place, Granted: true, IssuedAt: f.now()})
	require.NoError(t, err)
	f.pass(f.life.Rules.PickupTTL)
	p := f.get(member("ann"), ticket(old.Reveal())).is(http.StatusOK).position()
	require.Equal(t, queue.Waiting, p.Status)
	require.NotNil(t, p.QueueTicket, "the old one says that the place is used")
	c, err := f.ring.Ticket(*p.QueueTicket)
	require.NoError(t, err)
	require.False(t, c.Granted)
	f.relive()
	site := f.serve(named("127.0.0.0/8"))
	require.Equal(t, queue.Waiting, site.get(member("ann"), ticket(*p.QueueTicket)).is(http.StatusOK).position().Status)
}

func TestARoomThatIsOffPassesEverybodyWithARealToken(t *testing.T) {
	t.Parallel()
	f := setUp(t, options(named("127.0.0.0/8")), settings(func(s *room.Settings) {
		s.Off, s.BatchSize, s.Capacity, s.OneOrderPerMember = true, 1, 1, true
	}))
	for _, name := range []string{"ann", "bob", "cy"} {
		p := f.post(member(name)).is(http.StatusCreated).position()
		require.Equal(t, queue.Ready, p.Status)
		require.Equal(t, queue.Off, p.RoomState)
		f.order(oneA, token(*p.EntryToken), member(name)).is(http.StatusCreated)
	}
	status, _ := f.status(f.room)
	require.Equal(t, queue.Off, status.RoomState)
	// Redis may forget who has ordered; Postgres does not.
	f.relive()
	site := f.serve(named("127.0.0.0/8"))
	require.Equal(t, queue.Waiting, site.post(member("ann")).is(http.StatusCreated).position().Status)
	require.Equal(t, queue.Waiting, f.serve(named("127.0.0.0/8")).post(member("dan")).position().Status, "not past who is in line")
}

func TestAMessageReachesThoseWaitingAtTheirNextPoll(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann := f.enter()
	require.Nil(t, f.poll(ann).Message)
	f.change(func(s *room.Settings) { s.Message = map[string]string{"en": "Back at nine", "de": "Um neun zurück"} })
	f.eventually("the message is told", func() bool { return f.poll(ann).Message != nil })
	require.Equal(t, spec.Message{"en": "Back at nine", "de": "Um neun zurück"}, f.poll(ann).Message)
	status, _ := f.serve().status(f.room)
	require.Equal(t, spec.Message{"en": "Back at nine", "de": "Um neun zurück"}, status.Message)
}

func TestThePositionShowsTheStateOfTheRoom(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann := f.enter()
	past, later := start.Add(-time.Minute), start.Add(time.Hour)
	for _, step := range []struct {
		want   queue.RoomState
		change func(s *room.Settings)
	}{
		{queue.NotOpen, func(s *room.Settings) { s.OpensAt = &later }},
		{queue.PreQueue, func(s *room.Settings) { s.OpensAt, s.AdmitsAt = nil, &later }},
		{queue.Open, func(s *room.Settings) { s.AdmitsAt = nil }},
		{queue.Paused, func(s *room.Settings) { s.Paused = true }},
		{queue.Draining, func(s *room.Settings) { s.Paused, s.Draining = false, true }},
		{queue.Closed, func(s *room.Settings) { s.Draining, s.ClosesAt = false, &past }},
		{queue.Off, func(s *room.Settings) { s.Off = true }},
	} {
		f.change(step.change)
		site := f.serve()
		p := site.poll(ann)
		require.Equal(t, step.want, p.RoomState)
		require.Equal(t, queue.Waiting, p.Status, "%s takes nobody's place", step.want)
		status, _ := site.status(f.room)
		require.Equal(t, step.want, status.RoomState)
	}
}
