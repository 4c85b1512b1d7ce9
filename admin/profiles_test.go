package admin_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// take asks for a profile and returns what is in it.
func (f *fixture) take(who, path string) []byte {
	f.t.Helper()
	a := f.call(who, http.MethodGet, path, "")
	require.Equal(f.t, http.StatusOK, a.status, "%v", a.body)
	require.Equal(f.t, "application/octet-stream", a.header.Get("Content-Type"))
	z, err := gzip.NewReader(bytes.NewReader(a.data))
	require.NoError(f.t, err)
	b, err := io.ReadAll(z)
	require.NoError(f.t, err)
	return b
}

func TestAnAdminTakesProfiles(t *testing.T) {
	f := setUp(t)
	heap := string(f.take("admin", "/admin/v1/profiles/heap"))
	require.Contains(t, heap, "inuse_space")
	require.NotContains(t, heap, f.tokens["admin"], "of what the heap holds it has the sizes alone")
	start := time.Now()
	require.Contains(t, string(f.take("admin", "/admin/v1/profiles/cpu?seconds=1")), "nanoseconds")
	require.GreaterOrEqual(t, time.Since(start), time.Second)

	for path, code := range map[string]string{
		"/admin/v1/profiles/cpu?seconds=0": "bad-request", "/admin/v1/profiles/cpu?seconds=26": "bad-request",
		"/admin/v1/profiles/cpu?seconds=x": "bad-request", "/admin/v1/profiles/goroutine": "not-found",
	} {
		a := f.call("admin", "GET", path, "")
		require.Equal(t, code, a.body["code"], path)
	}
}

func TestThereIsOneCPUProfileAtATime(t *testing.T) {
	f := setUp(t)
	var both sync.WaitGroup
	var got [2]int
	for i := range got { // which of the two comes first does not matter
		both.Go(func() { got[i] = f.call("admin", "GET", "/admin/v1/profiles/cpu?seconds=2", "").status })
	}
	both.Wait()
	require.ElementsMatch(t, []int{http.StatusOK, http.StatusConflict}, got)
}
