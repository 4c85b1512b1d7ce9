package load

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// full is a room that takes nobody: each person makes one call, and is turned
// away. around stands before every enter.
func full(t *testing.T, around func(n int64)) Plan {
	var n atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/rooms/sale", func(w http.ResponseWriter, _ *http.Request) {
		write(w, 200, map[string]any{"roomState": "OPEN"})
	})
	mux.HandleFunc("POST /v1/rooms/sale/entries", func(w http.ResponseWriter, _ *http.Request) {
		around(n.Add(1))
		refuse(w, 403, "room-closed")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return Plan{
		URL: server.URL, Room: "sale", SKU: "demo", Tail: time.Minute, Connections: 1,
		Arrivals: Arrivals{Shape: Constant, People: 200, Over: 2 * time.Second},
	}
}

// A server that stands still for a second answers one call in 200 late, by what
// the call shows: the others were not sent meanwhile. Half of all were due then.
func TestAStallShowsInAllCallsThatWereDueAndNotOnlyInTheOneThatWasSent(t *testing.T) {
	t.Parallel()
	const stall = time.Second
	p := full(t, func(n int64) {
		if n == 20 {
			time.Sleep(stall)
		}
	})
	r, err := Run(t.Context(), p, nil)
	require.NoError(t, err)
	c := r.Calls[enterCall]
	require.EqualValues(t, 200, c.Count)
	require.EqualValues(t, 200, c.Refused)
	atLeast := float64(stall.Milliseconds())
	require.GreaterOrEqual(t, c.Service.Max, atLeast)
	require.Less(t, c.Service.P90, atLeast/2, "from sending one call was slow")
	require.Greater(t, c.Due.P90, atLeast/2, "from when they were due a tenth of the calls was late by half the stall at least")
	require.Greater(t, r.SendLag.P90, atLeast/2)
	require.Contains(t, strings.Join(r.Notes, "\n"), "calls were sent late")
}

// Nobody is answered before all have come. In a closed model, which waits for an
// answer before it sends the next, this never ends.
func TestASlowAnswerHoldsUpNobodyWhoIsToCome(t *testing.T) {
	t.Parallel()
	const people = 40
	var all sync.WaitGroup
	all.Add(people)
	p := full(t, func(int64) {
		all.Done()
		all.Wait()
	})
	p.Arrivals, p.Connections = Arrivals{Shape: Ramp, People: people, Over: 100 * time.Millisecond}, people
	r, err := Run(t.Context(), p, nil)
	require.NoError(t, err)
	require.EqualValues(t, people, r.People.TurnedAway)
}

func TestPeopleAskWhenTheyAreToldAndNotBefore(t *testing.T) {
	t.Parallel()
	const told = 300 * time.Millisecond
	var mu sync.Mutex
	var answered time.Time
	var early, polls int
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/rooms/sale", func(w http.ResponseWriter, _ *http.Request) {
		write(w, 200, map[string]any{"roomState": "OPEN"})
	})
	mux.HandleFunc("/v1/rooms/sale/", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			polls++
			if time.Since(answered) < told {
				early++
			}
		}
		answered = time.Now()
		write(w, 200, map[string]any{"status": "WAITING", "queueTicket": "t", "nextPollAfterMs": told.Milliseconds()})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	_, err := Run(t.Context(), Plan{
		URL: server.URL, Room: "sale", SKU: "demo", Connections: 1, Tail: 5 * told, Arrivals: Arrivals{Shape: Constant, People: 1},
		People: People{Order: 1},
	}, nil)
	require.NoError(t, err)
	require.Zero(t, early, "asked sooner than told")
	require.GreaterOrEqual(t, polls, 2)
}

func TestThereIsAReasonForWhatCanNotBeLoaded(t *testing.T) {
	t.Parallel()
	var none Unreachable
	p := full(t, func(int64) {})
	p.Room = "nowhere"
	_, err := Run(t.Context(), p, nil)
	require.ErrorIs(t, err, ErrNoRoom)

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	t.Cleanup(other.Close)
	p.URL = other.URL
	_, err = Run(t.Context(), p, nil)
	require.ErrorAs(t, err, &none)
	require.ErrorContains(t, err, "not as Linekeeper does")

	other.Close()
	_, err = Run(t.Context(), p, nil)
	require.ErrorAs(t, err, &none)
	require.ErrorContains(t, err, "nothing listens at "+p.URL)
}

func TestWhoStopsALoadGetsAReportOfWhatWas(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	l := newLiar(t, "")
	p := l.plan()
	p.Arrivals = Arrivals{Shape: Constant, People: 100_000, Over: 1000 * time.Second}
	var last Progress
	r, err := Run(ctx, p, func(p Progress) {
		last = p
		stop()
	})
	require.NoError(t, err)
	require.True(t, r.Interrupted)
	require.Less(t, r.Came, int64(50_000), "the others were to come later")
	require.GreaterOrEqual(t, r.People.NotEntered, 100_000-r.Came)
	require.Less(t, r.People.NotEntered, int64(100_000))
	require.NotZero(t, last.Came)
	require.Contains(t, last.String(), "of 100000")
	require.Empty(t, r.Violations)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.line, "those who were there have left")
}

func TestWhoIsPutOffComesBackWhenToldAndNotBefore(t *testing.T) {
	t.Parallel()
	const after = 2 * time.Second
	var mu sync.Mutex
	var enters []time.Time
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/rooms/sale", func(w http.ResponseWriter, _ *http.Request) {
		write(w, 200, map[string]any{"roomState": "OPEN"})
	})
	mux.HandleFunc("POST /v1/rooms/sale/entries", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if enters = append(enters, time.Now()); len(enters) == 1 {
			w.Header().Set("Retry-After", "2")
			refuse(w, 429, "room-full")
			return
		}
		refuse(w, 403, "room-closed")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r, err := Run(t.Context(), Plan{
		URL: server.URL, Room: "sale", SKU: "demo", Connections: 1, Tail: time.Minute, Arrivals: Arrivals{Shape: Constant, People: 1},
	}, nil)
	require.NoError(t, err)
	require.Len(t, enters, 2)
	require.GreaterOrEqual(t, enters[1].Sub(enters[0]), after)
	require.EqualValues(t, 1, r.Came, "one person, who came once")
	require.EqualValues(t, 1, r.People.TurnedAway)
	require.Contains(t, r.Problems, Problem{"enter", 429, "room-full", 1})
}
