package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheRootListsLinksInDevAlone(t *testing.T) {
	t.Parallel()
	api := http.NotFoundHandler()
	ask := func(s *server, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.withIndex(api).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	dev := &server{index: links("127.0.0.1:8081")}
	require.Equal(t, http.StatusOK, ask(dev, "/").Code)
	for _, link := range []string{`href="/docs"`, `href="/openapi.yaml"`, `href="http://127.0.0.1:8081/metrics"`} {
		require.Contains(t, ask(dev, "/").Body.String(), link)
	}
	require.Equal(t, http.StatusNotFound, ask(dev, "/other").Code)
	require.Equal(t, http.StatusNotFound, ask(&server{}, "/").Code)
}
