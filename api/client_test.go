package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
)

// site is one process that serves, and whoever asks it.
type site struct {
	t       *testing.T
	api     *api.API
	url     string
	client  *http.Client
	entries string
}

// with changes a request before it is sent.
type with func(*http.Request)

func header(name, value string) with {
	return func(r *http.Request) { r.Header.Add(name, value) }
}
func ticket(text string) with { return header("X-Queue-Ticket", text) }
func token(text string) with  { return header("X-Entry-Token", text) }
func cookie(name, value string) with {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: name, Value: value}) }
}

func body(text string) with {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
		r.Header.Set("Content-Type", "application/json")
	}
}

// answer is a response, read.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

func (s *site) call(method, path string, more ...with) answer {
	s.t.Helper()
	a, err := s.try(s.t.Context(), method, path, more...)
	require.NoError(s.t, err)
	return a
}

// try is call for other goroutines than that of the test.
func (s *site) try(ctx context.Context, method, path string, more ...with) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, nil)
	if err != nil {
		return answer{}, err
	}
	for _, change := range more {
		change(req)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	data, err := io.ReadAll(resp.Body)
	return answer{s.t, resp.StatusCode, resp.Header, data}, errors.Join(err, resp.Body.Close())
}

func (s *site) post(more ...with) answer { s.t.Helper(); return s.call("POST", s.entries, more...) }
func (s *site) get(more ...with) answer  { s.t.Helper(); return s.call("GET", s.entries+"/me", more...) }
func (s *site) leave(more ...with) answer {
	s.t.Helper()
	return s.call("DELETE", s.entries+"/me", more...)
}

func (s *site) order(items string, more ...with) answer {
	s.t.Helper()
	return s.call("POST", "/v1/orders", append([]with{body(`{"items":` + items + `}`)}, more...)...)
}

// enter makes a new member and returns the ticket.
func (s *site) enter() string {
	s.t.Helper()
	return *s.post().is(http.StatusCreated).position().QueueTicket
}

// poll is where the holder of a ticket stands.
func (s *site) poll(text string) spec.Position {
	s.t.Helper()
	return s.get(ticket(text)).is(http.StatusOK).position()
}

func (a answer) is(status int) answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	return a
}

func (a answer) position() (p spec.Position) {
	a.t.Helper()
	a.decode(&p)
	return p
}

func (a answer) decode(v any) {
	a.t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	require.NoError(a.t, d.Decode(v), "%s", a.body)
}

// refused demands a problem of this status and code. That the rest of it is
// right, the contract has seen.
func (a answer) refused(status int, code string) answer {
	a.t.Helper()
	a.is(status)
	var p struct{ Code string }
	require.NoError(a.t, json.Unmarshal(a.body, &p))
	require.Equal(a.t, code, p.Code, "%s", a.body)
	return a
}

// after demands that the client is told to come back after so many seconds.
func (a answer) after(seconds string) answer {
	a.t.Helper()
	require.Equal(a.t, seconds, a.header.Get("Retry-After"), "%s", a.body)
	return a
}
