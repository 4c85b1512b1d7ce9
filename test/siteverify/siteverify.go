// Package siteverify is a service that judges challenges, on this machine: it
// vouches for every response that begins with Human, once, and again where it is
// told that it is the same use. It answers as Turnstile does.
package siteverify

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/linekeeper/linekeeper/challenge"
)

// Human begins the responses of those who have passed.
const Human = "human"

// Service is one such service.
type Service struct {
	Client *challenge.Service // that asks it

	mu    sync.Mutex
	uses  map[string]string // of each response, the first
	calls int
	down  bool
}

// Start starts one, gone at the end of the test.
func Start(t testing.TB) *Service {
	t.Helper()
	s := &Service{uses: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.Client = challenge.New(challenge.Options{URL: server.URL, Secret: "s3cret"})
	return s
}

// Calls is how often it has been asked.
func (s *Service) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Fail makes it fail, or not.
func (s *Service) Fail(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// ServeHTTP judges a response.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	response, use := r.PostFormValue("response"), r.PostFormValue("idempotency_key")
	first, used := s.uses[response]
	answer := `{"success":true}`
	switch {
	case s.down:
		w.WriteHeader(http.StatusBadGateway)
	case r.PostFormValue("secret") != "s3cret":
		answer = `{"success":false,"error-codes":["invalid-input-secret"]}`
	case !strings.HasPrefix(response, Human) || used && first != use:
		answer = `{"success":false,"error-codes":["timeout-or-duplicate"]}`
	default:
		s.uses[response] = use
	}
	_, _ = w.Write([]byte(answer)) // whoever asked may have gone
}
