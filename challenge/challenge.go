// Package challenge asks a service of the siteverify kind (Turnstile, hCaptcha,
// reCAPTCHA) whether somebody has passed its challenge.
//
// It promises that only what the service says plainly is a yes; that whatever
// else happens (no answer, a redirect, a long or an odd one, a refusal of our own
// secret) is an error and not a no; that it goes to the one address that it was
// given and, where that is a name, never into a private network unless it may;
// and that neither the secret nor a response is in an error.
//
// It keeps nothing. That a response counts once is the service's own promise.
package challenge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	// timeout is what one question may take, all in all.
	timeout = 3 * time.Second
	// maxAnswer is the longest answer that is read, in bytes.
	maxAnswer = 16 << 10
)

// Options say whom to ask, and what to take for a yes.
type Options struct {
	URL    string // where the responses are sent: https, or http on this machine
	Secret string // ours, with the service
	// Hostname and Action are what the service must have seen the challenge with;
	// empty: any.
	Hostname, Action string
	// Private allows a name in URL to stand for an address that is not public.
	Private bool
}

// Service is one such service. It may be used by many goroutines.
type Service struct {
	options Options
	http    *http.Client
}

// New returns the service of these options.
func New(o Options) *Service {
	return &Service{options: o, http: &http.Client{
		Timeout:   timeout,
		Transport: transport(o),
		// Where it would send us is not where the operator did.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// verdict is what is read of an answer.
type verdict struct {
	Success  bool     `json:"success"`
	Hostname string   `json:"hostname"`
	Action   string   `json:"action"`
	Errors   []string `json:"error-codes"`
}

// Passed tells whether the service vouches for the response. from is the address
// of who shows it; the zero one is not sent. ticket names the use that is made of
// it: a service that knows idempotency keys answers a repeat with the same one
// alike, and every other use with no.
func (s *Service) Passed(ctx context.Context, response, ticket string, from netip.Addr) (bool, error) {
	form := url.Values{"secret": {s.options.Secret}, "response": {response}, "idempotency_key": {useOf(response, ticket)}}
	if from.IsValid() {
		form.Set("remoteip", from.String())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.options.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return false, fmt.Errorf("ask about a challenge: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := s.http.Do(req)
	if err != nil {
		return false, fmt.Errorf("ask about a challenge: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("ask about a challenge: the service answered %d", resp.StatusCode)
	}
	v, err := read(resp.Body)
	if err != nil {
		return false, fmt.Errorf("ask about a challenge: %w", err)
	}
	return s.judge(v)
}

func read(body io.Reader) (verdict, error) {
	var v verdict
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return v, err
	case len(text) > maxAnswer:
		return v, errors.New("the answer is too long")
	}
	if json.Unmarshal(text, &v) != nil {
		return v, errors.New("the answer is not the JSON of a verdict")
	}
	return v, nil
}

// ours are the refusals that say nothing of who shows the response.
var ours = []string{"missing-input-secret", "invalid-input-secret", "sitekey-secret-mismatch", "internal-error", "bad-request"}

func (s *Service) judge(v verdict) (bool, error) {
	for _, code := range v.Errors {
		if slices.Contains(ours, code) {
			return false, fmt.Errorf("ask about a challenge: the service says %s", code)
		}
	}
	return v.Success &&
		(s.options.Hostname == "" || v.Hostname == s.options.Hostname) &&
		(s.options.Action == "" || v.Action == s.options.Action), nil
}

// useOf is one response shown with one ticket, as a UUID.
func useOf(response, ticket string) string {
	sum := sha256.Sum256([]byte(ticket + " " + response))
	return uuid.UUID(sum[:16]).String()
}
