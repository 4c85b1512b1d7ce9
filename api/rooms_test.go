package api_test

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/contract"
)

func (s *site) status(room string) (spec.RoomStatus, http.Header) {
	s.t.Helper()
	a := s.call("GET", "/v1/rooms/"+room).is(http.StatusOK)
	var status spec.RoomStatus
	a.decode(&status)
	return status, a.header
}

func TestThePublicStatusIsTheSameForEverybodyAndMayBeKept(t *testing.T) {
	t.Parallel()
	opens, admits, closes := start.Add(-time.Hour).UTC(), start.Add(time.Minute).UTC(), start.Add(time.Hour).UTC()
	f := setUp(t, settings(func(s *room.Settings) {
		s.OpensAt, s.AdmitsAt, s.ClosesAt, s.Message = &opens, &admits, &closes, map[string]string{"de": "gleich"}
	}))
	empty, header := f.status(f.room)
	require.Equal(t, "public, max-age=1", header.Get("Cache-Control"))
	require.Empty(t, header.Values("Set-Cookie"))
	want := spec.RoomStatus{Room: f.room, RoomState: queue.PreQueue, OpensAt: &opens, AdmitsAt: &admits, ClosesAt: &closes,
		Message: spec.Message{"de": "gleich"}, Lanes: []spec.LaneStatus{{Name: "standard", Marks: [][]int64{}}}}
	moment := cmpopts.IgnoreFields(spec.RoomStatus{}, "ServerTime")
	require.Empty(t, cmp.Diff(want, empty, moment))
	require.WithinDuration(t, start, empty.ServerTime, 10*time.Second)

	f.enter()
	f.enter()
	again, _ := f.status(f.room)
	require.EqualValues(t, 0, again.Waiting, "read once a second at most, however many ask")
	score := start.UnixMicro()
	want.Waiting, want.Lanes[0].Waiting, want.Lanes[0].Marks = 2, 2, [][]int64{{0, score}, {1, score + 1}}
	full, _ := f.serve().status(f.room)
	require.Empty(t, cmp.Diff(want, full, moment))
}

func TestTheStateOfTheRoomIsTold(t *testing.T) {
	t.Parallel()
	opens, admits, closes := start.Add(time.Hour), start.Add(2*time.Hour), start.Add(3*time.Hour)
	f := setUp(t, settings(func(s *room.Settings) { s.OpensAt, s.AdmitsAt, s.ClosesAt = &opens, &admits, &closes }))
	states := func(want queue.RoomState) *site {
		t.Helper()
		site := f.serve()
		got, _ := site.status(f.room)
		require.Equal(t, want, got.RoomState)
		return site
	}
	states(queue.NotOpen).post().refused(http.StatusForbidden, "room-not-open")
	f.pass(time.Hour)
	ann := states(queue.PreQueue).enter()
	f.pass(time.Hour)
	states(queue.Open)
	f.change(func(s *room.Settings) { s.Paused = true })
	states(queue.Paused).enter()
	f.change(func(s *room.Settings) { s.Paused, s.Draining = false, true })
	draining := states(queue.Draining)
	draining.post().refused(http.StatusForbidden, "room-closed")
	draining.post(ticket(ann)).is(http.StatusOK)
	f.change(func(s *room.Settings) { s.Draining = false })
	f.pass(time.Hour)
	states(queue.Closed).post().refused(http.StatusForbidden, "room-closed")
}

// TestWhoKnowsTheirScoreFindsTheirRankInTheMarks is how a crowd can be served by
// a cache.
func TestWhoKnowsTheirScoreFindsTheirRankInTheMarks(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const n = 20_000
	f.crowd(n)
	status, _ := f.status(f.room)
	marks := status.Lanes[0].Marks
	require.LessOrEqual(t, len(marks), 64)
	first := start.UnixMicro() - n // the crowd came one a microsecond
	for rank := int64(0); rank < n; rank += 37 {
		got := interpolate(marks, first+rank)
		require.LessOrEqual(t, math.Abs(got-float64(rank)), math.Max(1, float64(rank)/20), "with %d ahead, the marks say %.1f", rank, got)
	}
}

func interpolate(marks [][]int64, score int64) float64 {
	for i := 1; i < len(marks); i++ {
		a, b := marks[i-1], marks[i]
		if score <= b[1] {
			return float64(a[0]) + float64(b[0]-a[0])*float64(score-a[1])/float64(b[1]-a[1])
		}
	}
	return math.Inf(1)
}

func TestAnUnknownRoomIsNotLookedForInRedis(t *testing.T) {
	t.Parallel()
	snapshots := &countedSnapshots{}
	f := setUp(t, options(func(o *api.Options) {
		snapshots.Snapshots = o.Snapshots
		o.Snapshots, o.Line = snapshots, nil // a call of the line would panic
	}))
	for _, name := range []string{"other", "x", strings.Repeat("a", 64), strings.Repeat("a", 65), "UPPER", "a%20b", "%7Bx%7D", "-a", "*"} {
		for _, call := range [][2]string{{"GET", ""}, {"POST", "/entries"}, {"GET", "/entries/me"}, {"DELETE", "/entries/me"}} {
			f.call(call[0], "/v1/rooms/"+name+call[1]).refused(http.StatusNotFound, "room-not-found")
		}
	}
	require.Zero(t, snapshots.reads.Load())
	f.status(f.room)
	require.EqualValues(t, 1, snapshots.reads.Load())
}

func TestANameThatNoRoomCanHaveIsNotLookedForAtAll(t *testing.T) {
	t.Parallel()
	books := &countedBooks{}
	f := setUp(t, options(func(o *api.Options) { books.Books, o.Books = o.Books, books }))
	for _, name := range []string{strings.Repeat("a", 65), "UPPER", "a%20b", "%7Bx%7D", "-a", "*", "%00"} {
		f.call("GET", "/v1/rooms/"+name).refused(http.StatusNotFound, "room-not-found")
	}
	require.Zero(t, books.names.Load(), "S14: it is refused before it gets anywhere")
}

func TestAFloodOfUnknownNamesDoesNotReachPostgres(t *testing.T) {
	t.Parallel()
	books := &countedBooks{}
	f := setUp(t, options(func(o *api.Options) { books.Books, o.Books = o.Books, books }))
	began := time.Now()
	var g errgroup.Group
	var asked atomic.Int64
	for worker := range 8 {
		g.Go(func() error {
			for i := 0; time.Since(began) < time.Second; i++ {
				a, err := f.try(t.Context(), "GET", fmt.Sprintf("/v1/rooms/none-%d-%d", worker, i))
				if err != nil || a.status != http.StatusNotFound {
					return fmt.Errorf("%d %w", a.status, err)
				}
				asked.Add(1)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	lasted := time.Since(began)
	require.Greater(t, asked.Load(), int64(100))
	require.LessOrEqual(t, books.names.Load(), int64(lasted/(100*time.Millisecond))+1, "ten times a second, however many ask")
}

func TestANewRoomIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.call("GET", "/v1/rooms/later").refused(http.StatusNotFound, "room-not-found")
	_, err := f.rooms.Create(t.Context(), "later", room.Defaults(), operator)
	require.NoError(t, err)
	f.eventually("the room is known", func() bool {
		a := f.call("GET", "/v1/rooms/later")
		return a.status == http.StatusServiceUnavailable // nobody has begun it yet
	})
	require.NoError(t, f.rooms.Delete(t.Context(), "later", operator))
	require.Equal(t, http.StatusNotFound, f.serve().call("GET", "/v1/rooms/later").status)
}

func TestRouterAndDocumentHaveTheSameRoutes(t *testing.T) {
	t.Parallel()
	c := contract.Load(t)
	c.CompareRoutes(t, api.New(api.Options{}).Handler(), contract.Public)
	operators, ok := admin.New(admin.Options{Metrics: http.NotFoundHandler()}).(chi.Routes)
	require.True(t, ok)
	c.CompareRoutes(t, operators, func(r contract.Route) bool { return contract.Admin(r) || contract.Metrics(r) })
}

func TestTheServiceTellsAboutItself(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var missing atomic.Pointer[[]string]
	missing.Store(&[]string{})
	site := f.serve(func(o *api.Options) { o.Ready = func() []string { return *missing.Load() } })
	site.call("GET", "/livez").is(http.StatusOK)
	site.call("GET", "/readyz").is(http.StatusOK)
	missing.Store(&[]string{"redis"})
	a := site.call("GET", "/readyz").refused(http.StatusServiceUnavailable, "unavailable").after("1")
	require.NotContains(t, string(a.body), "redis")
	site.call("GET", "/livez").is(http.StatusOK)

	page := site.call("GET", "/docs").is(http.StatusOK)
	for _, file := range regexp.MustCompile(`(?:src|href)="(/docs/[^"]+)"`).FindAllStringSubmatch(string(page.body), -1) {
		site.call("GET", file[1]).is(http.StatusOK)
	}
	for _, name := range []string{"nothing.js", ".", "%2e", "..%2fdocs.go"} {
		site.call("GET", "/docs/"+name).refused(http.StatusNotFound, "not-found")
	}
	require.NotRegexp(t, `(?:src|href)="(?:https?:)?//`, string(page.body), "it works without internet")
	document := site.call("GET", "/openapi.yaml").is(http.StatusOK)
	require.Equal(t, spec.YAML, document.body)
	site.call("GET", "/openapi.yaml", header("If-None-Match", document.header.Get("ETag"))).is(http.StatusNotModified)
	for _, code := range problem.Codes() {
		site.call("GET", "/problems/"+code).is(http.StatusOK)
	}
	site.call("GET", "/problems/nothing").refused(http.StatusNotFound, "not-found")
	site.call("GET", "/nothing").refused(http.StatusNotFound, "not-found")
	site.call("GET", "/v1/rooms/"+f.room+"/").refused(http.StatusNotFound, "not-found")
	refused := site.call("PUT", site.entries+"/me").refused(http.StatusMethodNotAllowed, "method-not-allowed")
	require.ElementsMatch(t, []string{"DELETE", "GET"}, refused.header.Values("Allow"))
	refused = site.call("PUT", "/docs/a%2fb").refused(http.StatusMethodNotAllowed, "method-not-allowed")
	require.Equal(t, []string{"GET"}, refused.header.Values("Allow"), "of the path as it was sent")
	site.call("PURGE", "/nothing").refused(http.StatusNotFound, "not-found")
}

// TestAGenerationThatIsOverIsNotServed is about the moment between an
// operator's flush, or the making of a deleted room, and the scheduler that
// begins it: a place taken then would be lost at once.
func TestAGenerationThatIsOverIsNotServed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	site := f.serve()
	entered := site.post().is(http.StatusCreated).position()
	_, err := f.rooms.Flush(t.Context(), f.room, room.Actor{Name: "ann"})
	require.NoError(t, err)
	f.serve().post().refused(http.StatusServiceUnavailable, "unavailable").after("1")
	f.serve().get(ticket(*entered.QueueTicket)).refused(http.StatusServiceUnavailable, "unavailable")
}
