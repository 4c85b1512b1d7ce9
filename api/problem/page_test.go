package problem_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/problem"
)

func explained(path, accept string) *httptest.ResponseRecorder {
	rec, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	problem.Handler().ServeHTTP(rec, r)
	return rec
}

func TestEveryTypeIsServedAsJSONAndAsAPage(t *testing.T) {
	t.Parallel()
	for _, code := range problem.Codes() {
		p := problem.New(code)
		rec := explained(p.Type, "")
		require.Equal(t, 200, rec.Code, code)
		var got map[string]any
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &got))
		require.Equal(t, p.Type, got["type"])
		require.Equal(t, p.Title, got["title"])
		require.Equal(t, float64(p.Status), got["status"])
		require.Equal(t, code, got["code"])
		require.Greater(t, len(got["explanation"].(string)), 60, "%s: a paragraph, not a word", code)

		rec = explained(p.Type, "text/html")
		require.Equal(t, 200, rec.Code, code)
		require.Contains(t, rec.Body.String(), "<h1>"+p.Title+"</h1>")
		require.Contains(t, rec.Body.String(), code)
	}
}

func TestBrowsersGetAPageAndProgramsGetJSON(t *testing.T) {
	t.Parallel()
	for accept, page := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "application/problem+json, text/html;q=0.5": false,
		"text/html;q=0": false, "text/html;q=x": false, ";;": false,
		"text/html":                                   true,
		"application/json, text/html":                 true,
		"application/json;q=0.5, text/html;q=0.6":     true,
		"text/html,application/xhtml+xml,*/*;q=0.8":   true,
		"application/xhtml+xml, application/json;q=0": true,
	} {
		rec := explained("/problems/room-full", accept)
		want := "application/json"
		if page {
			want = "text/html; charset=utf-8"
		}
		require.Equal(t, want, rec.Header().Get("Content-Type"), "%q", accept)
		require.Equal(t, "Accept", rec.Header().Get("Vary"), "a cache must tell the two forms apart")
	}
}

func TestThePageMayLoadNothing(t *testing.T) {
	t.Parallel()
	policy := explained("/problems/room-full", "text/html").Header().Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
}

func TestAnUnknownTypeIsNotFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/problems/nope", "/problems/", "/problems/room-full/", "/problems/<script>"} {
		rec := explained(path, "text/html")
		require.Equal(t, 404, rec.Code, path)
		require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
		require.NotContains(t, rec.Body.String(), "<script>")
	}
}
