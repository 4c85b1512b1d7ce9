package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachAnswerOfADrainingProcessIsTheLastOnItsConnection(t *testing.T) {
	r := &readiness{}
	during := func() {}
	srv := httptest.NewServer(r.parting(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		during()
		if req.Method == http.MethodGet {
			_, _ = w.Write([]byte("a place"))
		} else {
			w.WriteHeader(http.StatusNoContent)
		}
	})))
	defer srv.Close()
	closes := func(method string) bool {
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL, nil)
		require.NoError(t, err)
		resp, err := srv.Client().Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.Close
	}
	require.False(t, closes("GET"))
	require.False(t, closes("DELETE"))
	during = r.drain
	require.True(t, closes("GET"), "it has begun to drain while the request was handled")
	require.True(t, closes("DELETE"))
}
