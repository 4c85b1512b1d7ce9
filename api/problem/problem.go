// Package problem is how the service says no: one table of every error that a
// client can meet, and the RFC 9457 documents made from it.
//
// It promises that a code (the last part of `type`) always has the same status
// and title, that each `type` is a page that this process serves, and that no
// answer made here is cached.
//
//	problem.Write(w, r, problem.New("room-full").WithRetryAfter(5*time.Second))
//
//	HTTP/1.1 429 Too Many Requests
//	Content-Type: application/problem+json
//	Retry-After: 5
//
//	{"type":"/problems/room-full","title":"The room is full","status":429, ...}
//
// It does not decide which error becomes which problem: the packages that
// answer requests do, and log what the client must not see.
package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// ContentType is the media type of every problem.
const ContentType = "application/problem+json"

// TypePrefix and a code make the `type` of a problem: the path of its page.
const TypePrefix = "/problems/"

// Problem is one refusal, as RFC 9457 has it, with our own members code,
// requestId, retryAfterSeconds and errors. Instance and RequestID are filled
// in by Write.
type Problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance"`
	Code      string `json:"code"`
	RequestID string `json:"requestId"`
	// RetryAfterSeconds is null where asking again after a time is no help.
	RetryAfterSeconds *int `json:"retryAfterSeconds"`
	// Errors names the fields at fault, where there are such.
	Errors []FieldError `json:"errors,omitempty"`
}

// FieldError is one fault of a request: where, as a path like
// `items[0].quantity`, and what.
type FieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// New is the problem of that code. It panics on a code that the table lacks;
// so pass a literal, or a code from a table in the same file: a test of this
// package finds both in the source and looks them up.
func New(code string) Problem {
	p, ok := Lookup(code)
	if !ok {
		panic(fmt.Sprintf("problem: no code %q", code))
	}
	return p
}

// Lookup is New for a code that comes from outside, and tells whether the table
// has it.
func Lookup(code string) (Problem, bool) {
	e, ok := lookUp(code)
	if !ok {
		return Problem{}, false
	}
	return Problem{
		Type: TypePrefix + e.code, Title: e.title, Status: e.status,
		Detail: e.title + ".", Code: e.code,
	}, true
}

// WithDetail says what is the matter this time; without it the title is
// repeated. It must hold nothing that this client may not know.
func (p Problem) WithDetail(detail string) Problem {
	p.Detail = detail
	return p
}

// WithRetryAfter tells the client when to ask again, in whole seconds, rounded
// up and at least 1. Write repeats it in the Retry-After header.
func (p Problem) WithRetryAfter(d time.Duration) Problem {
	seconds := max(1, int((d+time.Second-1)/time.Second))
	p.RetryAfterSeconds = &seconds
	return p
}

// WithErrors names the fields at fault.
func (p Problem) WithErrors(errs ...FieldError) Problem {
	p.Errors = append([]FieldError(nil), errs...)
	return p
}

// Write answers r with p. Headers that w has already stay, other than those
// that a problem sets itself.
func Write(w http.ResponseWriter, r *http.Request, p Problem) {
	p.Instance = r.URL.EscapedPath()
	p.RequestID = RequestID(r)
	body, err := json.Marshal(p)
	if err != nil { // strings and numbers only: cannot be
		panic(fmt.Sprintf("problem: encode %s: %v", p.Code, err))
	}
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	// A validator of the resource that was asked for is not one of this answer.
	h.Del("ETag")
	if p.RetryAfterSeconds != nil {
		h.Set("Retry-After", strconv.Itoa(*p.RetryAfterSeconds))
	}
	if e, ok := lookUp(p.Code); ok && e.challenge != "" {
		h.Set("WWW-Authenticate", e.challenge)
	}
	w.WriteHeader(p.Status)
	// The client may be gone; there is nobody left to tell.
	_, _ = w.Write(append(body, '\n'))
}
