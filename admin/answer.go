package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// handler answers a request, or returns why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// refusal is an error that already is an answer.
type refusal struct{ problem.Problem }

// Error is for logs; clients get the problem itself.
func (r refusal) Error() string { return r.Code + ": " + r.Detail }

// handle turns errors into answers and leaves a line for every change.
func (s *server) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		switch {
		case err != nil:
			s.refuse(w, r, err)
		case r.Method != http.MethodGet:
			s.Log.InfoContext(r.Context(), "operator made a change", append(s.call(r), "actor", caller(r).name)...)
		}
	}
}

// call is what logs know of a request. The path has the member in it, so the
// pattern stands for it.
func (s *server) call(r *http.Request) []any {
	path, member := r.URL.Path, r.PathValue("member")
	if member != "" {
		path = strings.Replace(chi.RouteContext(r.Context()).RoutePattern(), "{room}", r.PathValue("room"), 1)
	}
	about := []any{"method", r.Method, "path", path, "requestId", problem.RequestID(r)}
	if a, err := whom(r); err == nil && member != "" && s.HashMember != nil {
		about = append(about, "member", s.HashMember(a.member))
	}
	return about
}

func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := answer(err)
	if p.Status >= http.StatusInternalServerError {
		s.Log.ErrorContext(r.Context(), "operator call broke", append(s.call(r), "err", err)...)
	}
	problem.Write(w, r, p)
}

// answers is the one place where an error becomes an answer. What is not
// listed is ours: the client learns nothing, the log everything.
var answers = []struct {
	is     error
	answer func(err error) problem.Problem
}{
	// Products have a code of their own, which their handlers choose.
	{room.ErrNotFound, func(error) problem.Problem { return problem.New("room-not-found") }},
	{room.ErrExists, func(error) problem.Problem { return problem.New("room-exists") }},
	{room.ErrVersion, answerVersion},
	{room.ErrJSON, func(err error) problem.Problem {
		return problem.New("bad-request").WithDetail(sentence(err, room.ErrJSON))
	}},
	{queue.ErrNoRoom, func(error) problem.Problem {
		return problem.New("conflict").WithDetail("No scheduler has begun the room yet.")
	}},
	{queue.ErrBusy, answerBusy},
	{queue.ErrUnavailable, func(error) problem.Problem { return problem.New("unavailable").WithRetryAfter(retryAfter) }},
	{ErrNotDead, func(error) problem.Problem {
		return problem.New("conflict").WithDetail("The outbox has no dead entry of this id.")
	}},
}

// retryAfter is about how long a server takes to come back.
const retryAfter = 2 * time.Second

func answer(err error) problem.Problem {
	// Problems come before the sentinels: they carry the fields.
	var refused refusal
	if errors.As(err, &refused) {
		return refused.Problem
	}
	var problems room.Problems
	if errors.As(err, &problems) {
		return problem.New("invalid-settings").WithDetail(problems.Error()).WithErrors(fieldErrors(problems)...)
	}
	for _, row := range answers {
		if errors.Is(err, row.is) {
			return row.answer(err)
		}
	}
	if unreachable(err) {
		return problem.New("unavailable").WithRetryAfter(retryAfter)
	}
	return problem.New("internal")
}

// answerBusy is for an order that has begun between the look and the eviction.
func answerBusy(err error) problem.Problem {
	var busy queue.BusyError
	errors.As(err, &busy)
	return problem.New("order-in-progress").WithRetryAfter(max(busy.Left, time.Second)).WithDetail(
		"An order of this member has just begun. They are kept out of this sale from now on; evict again once it has ended.")
}

// answerVersion tells the version in force, so that the operator need not ask
// for it before looking at what has changed.
func answerVersion(err error) problem.Problem {
	p := problem.New("precondition-failed")
	var other room.VersionError
	if errors.As(err, &other) {
		p = p.WithDetail("The version in force is " + strconv.FormatInt(other.Version, 10) + ".")
	}
	return p
}

// sentence is what an error says after the sentinel that it wraps, without the
// names of our own calls in front.
func sentence(err, sentinel error) string {
	_, text, found := strings.Cut(err.Error(), sentinel.Error()+": ")
	if !found {
		return "The body must be one JSON object."
	}
	return "The body must be one JSON object: " + text + "."
}

func fieldErrors(problems room.Problems) []problem.FieldError {
	fields := make([]problem.FieldError, len(problems))
	for i, p := range problems {
		fields[i] = problem.FieldError{Field: p.Field, Detail: p.Detail}
	}
	return fields
}

// unreachable tells an outage of Postgres from a fault of ours: no connection,
// no answer in time, or the server says that it is going away (class 57P).
func unreachable(err error) bool {
	var network net.Error
	var sql interface{ SQLState() string }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &sql) && strings.HasPrefix(sql.SQLState(), "57P")
}

// write sends v as JSON.
func write(w http.ResponseWriter, status int, v any) error {
	// Encoded before the status goes out: a value that can't be is a clean 500.
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone; nobody is left to tell
	return nil
}

// writeVersioned sends v with the ETag that a change of it must show.
func writeVersioned(w http.ResponseWriter, status int, version int64, v any) error {
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(version, 10)))
	return write(w, status, v)
}
