package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/ratelimit"
)

// The headers of draft-ietf-httpapi-ratelimit-headers-11, structured fields: all
// policies that were asked, and what is left of the one nearest to refusing.
const (
	policyHeader = "RateLimit-Policy"
	limitHeader  = "RateLimit"
)

// terms are how one limit is called, in headers and in metrics.
type terms struct {
	name, item                string // "enter-member", `"enter-member";q=10;w=60`
	allowed, refused, unknown func() // count a decision
}

func newTerms(l Limits, name string, limit ratelimit.Limit) terms {
	algorithm := string(limit.Algorithm)
	return terms{
		name: name, item: item(name, limit), allowed: l.Decisions(name, algorithm, "allowed"),
		refused: l.Decisions(name, algorithm, "refused"), unknown: l.Decisions(name, algorithm, "unknown"),
	}
}

// item is a policy as the header has it. The leaky bucket lets one through each
// step, so that is what it says. The draft has whole seconds only; the window is
// left out where it has none.
func item(name string, l ratelimit.Limit) string {
	quota, window := l.N, l.Per
	if step := l.Per / time.Duration(l.N); l.Algorithm == ratelimit.Leaky && step%time.Second == 0 {
		quota, window = 1, step
	}
	if window%time.Second != 0 {
		return fmt.Sprintf("%q;q=%d", name, quota)
	}
	return fmt.Sprintf("%q;q=%d;w=%d", name, quota, seconds(window))
}

// seconds is d in whole seconds, rounded up, as problems have it.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// standing is where a request stands with its limits.
type standing struct {
	policies []string
	nearest  ratelimit.Reply
	name     string        // of the nearest
	wait     time.Duration // until all of them would let one more through
}

// add takes the reply of one more limit. The nearest to refusing is the one of
// which least is left, and of those the one that takes longest to have more.
func (s *standing) add(t terms, r ratelimit.Reply) {
	s.wait = max(s.wait, r.RetryAfter)
	less := r.Remaining < s.nearest.Remaining || r.Remaining == s.nearest.Remaining && window(r) > window(s.nearest)
	if s.name == "" || less {
		s.nearest, s.name = r, t.name
	}
}

// window is in how long no more than what remains may be used.
func window(r ratelimit.Reply) time.Duration {
	if r.Remaining == 0 {
		return r.RetryAfter
	}
	return r.Reset
}

// refused is err, until r allows one again: the other limits are of no interest then.
func (s *standing) refused(t terms, r ratelimit.Reply, err error) (time.Duration, error) {
	t.refused()
	s.nearest, s.name = r, t.name
	return 0, later(err, r.RetryAfter)
}

// show writes the headers.
func (s *standing) show(h http.Header) {
	if s.name == "" {
		return
	}
	h.Set(policyHeader, strings.Join(s.policies, ", "))
	h.Set(limitHeader, fmt.Sprintf("%q;r=%d;t=%d", s.name, s.nearest.Remaining, seconds(window(s.nearest))))
}

// refuse is err of the one limit that was asked.
func refuse(w http.ResponseWriter, t terms, r ratelimit.Reply, err error) error {
	s := standing{policies: []string{t.item}}
	_, err = s.refused(t, r, err)
	s.show(w.Header())
	return err
}

// laterError is an error after which nobody should come back before a time.
type laterError struct {
	error
	wait time.Duration
}

// Unwrap gives the error.
func (e laterError) Unwrap() error { return e.error }

// later is err, and that the limits let nobody through before wait is over.
func later(err error, wait time.Duration) error {
	if err == nil || wait <= 0 {
		return err
	}
	return laterError{err, wait}
}

// patient makes a Retry-After that is there as long as the limits ask: who comes
// back when they are told is not refused for it.
func patient(p problem.Problem, err error) problem.Problem {
	var l laterError
	if p.RetryAfterSeconds != nil && errors.As(err, &l) && seconds(l.wait) > *p.RetryAfterSeconds {
		return p.WithRetryAfter(l.wait)
	}
	return p
}
