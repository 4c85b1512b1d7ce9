package admin

import (
	"bytes"
	"context"
	"net/http"
	"runtime/pprof"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/linekeeper/linekeeper/api/problem"
)

// mostProfile is how long a CPU profile may run, in seconds: the listener gives an
// answer up after 30 s.
const mostProfile = 25

// profile writes what the process does, for `go tool pprof`. It holds names of
// functions, times and sizes, and nothing that a request has brought.
func (s *server) profile(w http.ResponseWriter, r *http.Request) error {
	var b bytes.Buffer
	var err error
	switch chi.URLParam(r, "profile") {
	case "cpu":
		var seconds int64
		if seconds, err = number(r, "seconds", 10, 1, mostProfile); err == nil {
			err = cpuProfile(r.Context(), &b, time.Duration(seconds)*time.Second)
		}
	case "heap":
		err = pprof.Lookup("heap").WriteTo(&b, 0)
	default:
		err = refusal{problem.New("not-found")}
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(b.Bytes()) // the client may be gone; nobody is left to tell
	return nil
}

// cpuProfile runs for d, or until nobody waits for it. The runtime has one at a
// time.
func cpuProfile(ctx context.Context, b *bytes.Buffer, d time.Duration) error {
	if pprof.StartCPUProfile(b) != nil {
		return refusal{problem.New("conflict").WithDetail("Another CPU profile is running in this process.")}
	}
	defer pprof.StopCPUProfile() // writes what is left
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		pprof.StopCPUProfile()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
