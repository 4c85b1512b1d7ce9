package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/linekeeper/linekeeper/api/jsonbody"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/identity"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// What a request's credentials can lack.
var (
	errRoomNotFound   = errors.New("api: no such room")
	errTicketInvalid  = errors.New("api: queue ticket missing or invalid")
	errNoMember       = errors.New("api: no member id from who may say it")
	errNoLane         = errors.New("api: no such lane in the room")
	errNotInvited     = errors.New("api: neither a claim nor a code to enter by")
	errGuesses        = errors.New("api: too many access codes that do not count")
	errTokenMissing   = errors.New("api: entry token missing")
	errIdempotencyKey = errors.New("api: malformed Idempotency-Key")
	errDrawOpen       = errors.New("api: the draw is not listed yet")
	errNotDrawn       = errors.New("api: the member is not in the list of the draw")
	errSale           = errors.New("api: malformed sale")
	errListsBusy      = errors.New("api: too many lists and proofs at once")
)

// answers is the one place where an error becomes an answer. What is not
// listed is ours: the client sees 500 and no detail, the log sees it all.
var answers = []struct {
	err   error
	code  string
	retry time.Duration // 0: coming back does not help, or the error says when
}{
	{errRoomNotFound, "room-not-found", 0},
	{errTicketInvalid, "ticket-invalid", 0},
	{errNoMember, "unauthorized", 0},
	{identity.ErrInvalid, "unauthorized", 0},
	{identity.ErrUnavailable, "unavailable", 2 * time.Second},
	{errNoLane, "bad-request", 0},
	{errProofOfWork, "proof-of-work-invalid", 0},
	{errChallenge, "challenge-failed", 0},
	{errChallengesAway, "unavailable", 5 * time.Second},
	{errNotInvited, "not-invited", 0},
	{room.ErrCode, "access-code-refused", 0},
	{errGuesses, "rate-limited", 0},
	{errTokenMissing, "entry-token-missing", 0},
	{errIdempotencyKey, "bad-request", 0},
	{errSale, "bad-request", 0},
	{room.ErrNoDraw, "draw-not-found", 0},
	{errDrawOpen, "draw-not-over", 0},
	{errNotDrawn, "not-drawn", 0},
	{errListsBusy, "rate-limited", 2 * time.Second},

	{errBlocked, "member-blocked", 0},
	{errTooMany, "rate-limited", time.Second}, // or longer: the error says
	{errPollTooFast, "poll-too-fast", time.Second},

	{queue.ErrNotOpen, "room-not-open", 0},
	{queue.ErrClosed, "room-closed", 0},
	{queue.ErrSoldOut, "room-sold-out", 0},
	{queue.ErrFull, "room-full", 5 * time.Second},
	{queue.ErrOrdered, "already-ordered", 0},
	{queue.ErrBusy, "order-in-progress", 0},
	{queue.ErrLimit, "order-limit", time.Second},
	{queue.ErrNoRoom, "unavailable", time.Second},
	{queue.ErrGeneration, "unavailable", time.Second},
	{queue.ErrUnavailable, "unavailable", 2 * time.Second},

	{order.ErrTokenInvalid, "entry-token-invalid", 0},
	{order.ErrTokenSpent, "entry-token-consumed", 0},
	{order.ErrInProgress, "order-in-progress", 0},
	{order.ErrAlreadyOrdered, "already-ordered", 0},
	{order.ErrSoldOut, "sold-out", 0},
	{order.ErrUnknownProduct, "invalid-order", 0},
	{order.ErrMixedCurrency, "invalid-order", 0},
	{order.ErrInvalidItems, "invalid-order", 0},
	{order.ErrIdempotencyMismatch, "idempotency-mismatch", 0},
	{order.ErrNotFound, "order-not-found", 0},
	{order.ErrOutcomeUnknown, "order-outcome-unknown", time.Second},
	{order.ErrUnavailable, "unavailable", 2 * time.Second},
}

// handler answers a request or says why not.
type handler func(w http.ResponseWriter, r *http.Request) error

func (a *API) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		err = a.guard.judged(w, r, err)
		p := patient(a.problem(r.Context(), err), err)
		if p.Status == http.StatusInternalServerError {
			a.Log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "request_id", problem.RequestID(r), "err", err)
		}
		problem.Write(w, r, p)
	}
}

func (a *API) problem(ctx context.Context, err error) problem.Problem {
	var body *jsonbody.Error
	if errors.As(err, &body) {
		return jsonbody.Problem(err)
	}
	for _, row := range answers {
		if errors.Is(err, row.err) {
			return detailed(problem.New(row.code), err, row.retry)
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return problem.New("unavailable").WithRetryAfter(time.Second)
	}
	return problem.New("internal")
}

// detailed adds what the error knows and the client may see.
func detailed(p problem.Problem, err error, retry time.Duration) problem.Problem {
	var (
		busy     queue.BusyError
		progress order.InProgressError
		items    order.InvalidItemsError
		soldOut  order.SoldOutError
		unknown  order.UnknownProductError
		guesses  guessesError
	)
	var soon interface {
		error
		RetryAfter() time.Duration
	}
	switch {
	case errors.As(err, &soon):
		retry = soon.RetryAfter()
	case errors.As(err, &busy):
		retry = whileBusy(busy.Left)
	case errors.As(err, &progress):
		retry = whileBusy(progress.RetryAfter)
	case errors.As(err, &guesses):
		retry = guesses.retryAfter
	case errors.As(err, &items):
		p = p.WithDetail(items.Reason)
	case errors.As(err, &soldOut):
		p = p.WithDetail("There are fewer of " + soldOut.SKU + " left than you asked for. Your entry token is as good as before.")
	case errors.As(err, &unknown):
		p = p.WithDetail("There is no product " + unknown.SKU + ".")
	case errors.Is(err, errNoLane):
		p = p.WithDetail("X-Member-Lane must be one value, the name of a lane of this room; the same goes for the claim of a user token. Nobody has entered.")
	case errors.Is(err, errIdempotencyKey):
		p = p.WithDetail("Idempotency-Key must be one value of 1 to 255 printable ASCII characters without spaces.")
	case errors.Is(err, order.ErrMixedCurrency):
		p = p.WithDetail("The items are priced in different currencies; order them apart.")
	}
	if retry > 0 {
		p = p.WithRetryAfter(retry)
	}
	return p
}

// whileBusy is when to ask again about what another order holds. Nearly all orders
// end within a second; the lease is there for those whose process died, and is the
// longest that it takes.
func whileBusy(lease time.Duration) time.Duration { return min(max(lease, time.Second), 2*time.Second) }

func writeJSON(w http.ResponseWriter, status int, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that has gone is nobody's error
	return nil
}
