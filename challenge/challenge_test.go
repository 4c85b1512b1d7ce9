package challenge_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/challenge"
)

var someone = netip.MustParseAddr("192.0.2.7")

// served is a service that answers in one way, and what it was asked last.
func served(t *testing.T, answer http.HandlerFunc) (o challenge.Options, asked *atomic.Pointer[url.Values]) {
	t.Helper()
	asked = &atomic.Pointer[url.Values]{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		asked.Store(&r.PostForm)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return challenge.Options{URL: s.URL + "/siteverify", Secret: "s3cret"}, asked
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestTheServiceIsAskedAsSiteverifyWants(t *testing.T) {
	t.Parallel()
	o, asked := served(t, says(`{"success":true}`))
	s := challenge.New(o)
	ok, err := s.Passed(t.Context(), "response", "ticket", someone)
	require.NoError(t, err)
	require.True(t, ok)
	first := *asked.Load()
	require.Equal(t, []string{"s3cret"}, first["secret"])
	require.Equal(t, []string{"response"}, first["response"])
	require.Equal(t, []string{"192.0.2.7"}, first["remoteip"])

	use := func(response, ticket string) string {
		_, err := s.Passed(t.Context(), response, ticket, netip.Addr{})
		require.NoError(t, err)
		require.NotContains(t, *asked.Load(), "remoteip", "no address is no address")
		return asked.Load().Get("idempotency_key")
	}
	require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, first.Get("idempotency_key"))
	require.Equal(t, first.Get("idempotency_key"), use("response", "ticket"), "a repeat is one use")
	require.NotEqual(t, first.Get("idempotency_key"), use("response", "another"))
	require.NotEqual(t, first.Get("idempotency_key"), use("another", "ticket"))
}

func TestOnlyAPlainYesIsAYes(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		`{"success":true,"hostname":"shop.example","action":"enter"}`: true,
		`{"success":true,"hostname":"evil.example","action":"enter"}`: false,
		`{"success":true,"hostname":"shop.example","action":"login"}`: false,
		`{"success":true}`: false,
		`{"success":false,"hostname":"shop.example","action":"enter"}`:      false,
		`{"success":false,"error-codes":["timeout-or-duplicate"]}`:          false,
		`{"hostname":"shop.example","action":"enter"}`:                      false,
		`{"success":false,"error-codes":["invalid-input-response"],"x":{}}`: false,
	} {
		o, _ := served(t, says(answer))
		o.Hostname, o.Action = "shop.example", "enter"
		ok, err := challenge.New(o).Passed(t.Context(), "r", "t", someone)
		require.NoError(t, err, answer)
		require.Equal(t, want, ok, answer)
	}
}

func TestWhatIsNoVerdictIsAnErrorAndNeitherYesNorNo(t *testing.T) {
	t.Parallel()
	yes := says(`{"success":true}`)
	elsewhere := httptest.NewServer(yes)
	t.Cleanup(elsewhere.Close)
	for name, answer := range map[string]http.HandlerFunc{
		"an error of theirs": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"success":true}`, 500) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"a huge body": func(w http.ResponseWriter, r *http.Request) { yes(w, r); says(strings.Repeat(" ", 1<<20))(w, r) },
		"huge headers": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 64<<10))
			yes(w, r)
		},
		"a page":              says("<html>welcome</html>"),
		"nothing":             says(""),
		"half":                says(`{"success":tr`),
		"no object":           says(`true`),
		"a word for a truth":  says(`{"success":"true"}`),
		"our secret is wrong": says(`{"success":false,"error-codes":["invalid-input-secret"]}`),
		"they fail":           says(`{"success":false,"error-codes":["internal-error"]}`),
		"they hang up":        func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		o, _ := served(t, answer)
		ok, err := challenge.New(o).Passed(t.Context(), "response-of-ann", "t", someone)
		require.Error(t, err, name)
		require.False(t, ok, name)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "s3cret", name)
		require.NotContains(t, err.Error(), "response-of-ann", name)
	}
}

func TestAServiceThatIsSlowOrAwayIsAnError(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	o, _ := served(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	began := time.Now()
	_, err := challenge.New(o).Passed(t.Context(), "r", "t", someone)
	require.Error(t, err)
	require.Less(t, time.Since(began), 10*time.Second, "nobody waits for it for long")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = challenge.New(o).Passed(ctx, "r", "t", someone)
	require.ErrorIs(t, err, context.Canceled)

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err = challenge.New(challenge.Options{URL: gone.URL, Secret: "s"}).Passed(t.Context(), "r", "t", someone)
	require.Error(t, err)
}

// In capitals it is a name like any other: what it stands for is looked up.
func TestANameIsNotFollowedIntoAPrivateNetworkUnlessItMay(t *testing.T) {
	t.Parallel()
	o, asked := served(t, says(`{"success":true}`))
	o.URL = strings.Replace(o.URL, "127.0.0.1", "LOCALHOST", 1)
	_, err := challenge.New(o).Passed(t.Context(), "r", "t", someone)
	require.ErrorContains(t, err, "is not a public address")
	require.Nil(t, asked.Load(), "not a byte is sent")
	o.Private = true
	ok, err := challenge.New(o).Passed(t.Context(), "r", "t", someone)
	require.NoError(t, err)
	require.True(t, ok)
}
