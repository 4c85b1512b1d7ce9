package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// Where an error is met.
const enter, poll, leave, buy = "POST entries", "GET entries/me", "DELETE entries/me", "POST orders"

// failures are what the parts can return, where a client can meet it, and what
// the client is told.
var failures = []struct {
	at     string
	err    error
	status int
	code   string
	after  string
}{
	{enter, queue.ErrNotOpen, 403, "room-not-open", ""},
	{enter, queue.ErrClosed, 403, "room-closed", ""},
	{enter, queue.ErrSoldOut, 403, "room-sold-out", ""},
	{enter, queue.ErrFull, 429, "room-full", "5"},
	{enter, queue.ErrOrdered, 409, "already-ordered", ""},
	{enter, queue.ErrNoRoom, 503, "unavailable", "1"},
	{enter, queue.GenerationError{Generation: 9}, 503, "unavailable", "1"},
	{enter, queue.ErrUnavailable, 503, "unavailable", "2"},
	{enter, context.DeadlineExceeded, 503, "unavailable", "1"},
	{poll, queue.ErrNoRoom, 503, "unavailable", "1"},
	{poll, queue.GenerationError{}, 503, "unavailable", "1"},
	{poll, queue.ErrUnavailable, 503, "unavailable", "2"},
	{poll, errors.New("nobody foresaw this"), 500, "internal", ""},
	{leave, queue.BusyError{Left: 1200 * time.Millisecond}, 409, "order-in-progress", "2"},
	{leave, queue.BusyError{}, 409, "order-in-progress", "1"},
	{leave, queue.ErrUnavailable, 503, "unavailable", "2"},
	{buy, queue.ErrLimit, 429, "order-limit", "1"},
	{buy, queue.ErrUnavailable, 503, "unavailable", "2"},
	{buy, order.ErrTokenInvalid, 401, "entry-token-invalid", ""},
	{buy, order.ErrTokenSpent, 409, "entry-token-consumed", ""},
	{buy, order.InProgressError{RetryAfter: 14100 * time.Millisecond}, 409, "order-in-progress", "2"},
	{buy, order.ErrAlreadyOrdered, 409, "already-ordered", ""},
	{buy, order.SoldOutError{SKU: "a"}, 409, "sold-out", ""},
	{buy, order.UnknownProductError{SKU: "a"}, 422, "invalid-order", ""},
	{buy, order.InvalidItemsError{Reason: "no"}, 422, "invalid-order", ""},
	{buy, order.ErrMixedCurrency, 422, "invalid-order", ""},
	{buy, order.ErrIdempotencyMismatch, 422, "idempotency-mismatch", ""},
	{buy, order.ErrOutcomeUnknown, 503, "order-outcome-unknown", "1"},
	{buy, order.ErrUnavailable, 503, "unavailable", "2"},
	{buy, errors.New("nobody foresaw this"), 500, "internal", ""},
}

// TestEveryErrorHasItsAnswer has wrapped errors, which count for what they wrap.
func TestEveryErrorHasItsAnswer(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, entry := f.ready()
	for _, c := range failures {
		err := fmt.Errorf("deep inside: %w", c.err)
		site := f.serve(func(o *api.Options) { o.Line, o.Orders = brokenLine{err}, brokenOrders{err} })
		var a answer
		switch c.at {
		case enter:
			a = site.post()
		case poll:
			a = site.get(ticket(ann))
		case leave:
			a = site.leave(ticket(ann))
		case buy:
			a = site.order(oneA, token(entry))
		}
		require.Equal(t, c.status, a.status, "%s after %v: %s", c.at, c.err, a.body)
		a.refused(c.status, c.code).after(c.after)
		require.NotContains(t, string(a.body), "deep inside")
	}
}

func TestWhatNobodyForesawIsLoggedOnceAndNotShown(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann := f.enter()
	var log bytes.Buffer
	site := f.serve(func(o *api.Options) {
		o.Line, o.Log = brokenLine{errors.New("table of secrets")}, slog.New(slog.NewJSONHandler(&log, nil))
	})
	a := site.get(ticket(ann), header("X-Request-Id", "find-me")).refused(http.StatusInternalServerError, "internal")
	require.NotContains(t, string(a.body), "secrets")
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), "table of secrets")
	require.Contains(t, log.String(), "find-me")
	require.NotContains(t, log.String(), ann, "S18: a ticket is in no log")
}

func TestNothingOfAPlaceIsTakenFromABody(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.post(body(`{}`)).is(http.StatusCreated)
	for _, text := range []string{`{"enteredAt":0}`, `{"member":"ann"}`, `{"lane":"vip"}`, `{"score":-1}`, `[]`, `{`, `{}{}`, `null`} {
		f.post(body(text)).refused(http.StatusBadRequest, "bad-request")
	}
	plain := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }
	f.post(body(`{}`), plain).refused(http.StatusUnsupportedMediaType, "unsupported-media-type")
	f.post(body(`{"a":"`+strings.Repeat("a", 17<<10)+`"}`)).refused(http.StatusRequestEntityTooLarge, "body-too-large")
	empty := func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("")), -1 }
	f.post(empty).is(http.StatusCreated) // a stream that turns out to be nothing
	snapshot, err := f.line.Snapshot(t.Context(), f.room)
	require.NoError(t, err)
	require.EqualValues(t, 2, snapshot.Waiting(), "S4: whatever is refused leaves no place")
}

func TestAFullRoomRefusesNewcomersOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.MaxWaiting = 1 }))
	ann := f.enter()
	f.post().refused(http.StatusTooManyRequests, "room-full").after("5")
	require.Equal(t, queue.Waiting, f.post(ticket(ann)).is(http.StatusOK).position().Status)
}

// TestAGrantThatEndsBeforeItIsPickedUpIsNotShown is about the moment between
// the two calls of a poll.
func TestAGrantThatEndsBeforeItIsPickedUpIsNotShown(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ann, bob := f.enter(), f.enter()
	require.Equal(t, 2, f.tick())
	c, err := f.ring.Ticket(ann)
	require.NoError(t, err)

	leaves := func() {
		_, err := f.line.Leave(t.Context(), f.room, c.Member, 0, queue.OutcomeLeft)
		require.NoError(t, err)
	}
	racing := f.serve(func(o *api.Options) { o.Returns = before{o.Returns, leaves} })
	p := racing.poll(ann)
	require.Equal(t, queue.NotEntered, p.Status)
	require.Equal(t, of(queue.OutcomeLeft), p.LastOutcome)

	tooLate := func() { f.pass(31 * time.Second) }
	racing = f.serve(func(o *api.Options) { o.Returns = before{o.Returns, tooLate} })
	p = racing.poll(bob)
	require.Equal(t, queue.Waiting, p.Status, "nobody had fetched it, so the place is kept")
	require.EqualValues(t, 0, *p.Rank)
	require.Nil(t, p.EntryToken)
}

func TestWhatHappensIsObserved(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.MaxWaiting = 1 }))
	var seen []string
	site := f.serve(func(o *api.Options) {
		o.Observer = api.Observer{
			Entered: func(room, result string) { seen = append(seen, "entered "+result) },
			Polled:  func(room string, status queue.Status) { seen = append(seen, "polled "+string(status)) },
			Moved:   func(_ context.Context, m api.Move) { seen = append(seen, "moved "+m.From+" "+m.To+" "+m.Lane) },
		}
	})
	ann := site.enter()
	site.post(ticket(ann))
	site.post().refused(http.StatusTooManyRequests, "room-full")
	require.Equal(t, 1, f.tick())
	entry := *site.poll(ann).EntryToken
	site.order(oneA, token(entry)).is(http.StatusCreated)
	require.Equal(t, []string{
		"entered new", "moved NOT_ENTERED WAITING standard", "entered known", "polled WAITING", "entered full",
		"moved READY READY ", "polled READY", "moved READY CONSUMED ",
	}, seen)
}
