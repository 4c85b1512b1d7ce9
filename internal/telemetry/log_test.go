package telemetry_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/telemetry"
)

func newRouter() *chi.Mux { return chi.NewRouter() }

// lines decodes what was logged, without the times.
func lines(t *testing.T, log *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(log.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		require.Contains(t, m, "time")
		delete(m, "time")
		all = append(all, m)
	}
	return all
}

func TestLoggerWritesJSONOfAtLeastTheLevel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.Logger(&out, slog.LevelWarn)
	log.Info("not written")
	log.Warn("degraded", "member", "a\nb")
	want := []map[string]any{{"level": "WARN", "msg": "degraded", "member": "a\nb"}}
	require.Empty(t, cmp.Diff(want, lines(t, &out)))
}

var transition = telemetry.Transition{
	Member: "ann", Room: "r", Lane: "vip", From: "WAITING", To: "READY",
	Score: 1<<53 - 1, Grant: "g", Waiting: 4711,
}

func TestATransitionIsOneLineThatHidesTheMember(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tr := telemetry.NewTransitions(telemetry.Logger(&out, slog.LevelInfo), true)
	require.True(t, tr.On())
	tr.Log(t.Context(), transition)
	require.NotContains(t, out.String(), "ann")
	require.Contains(t, out.String(), `"score":9007199254740991`)
	want := []map[string]any{{
		"level": "INFO", "msg": "member changed state", "member": "4ebdf888b50e", "room": "r", "lane": "vip",
		"from": "WAITING", "to": "READY", "score": float64(1<<53 - 1), "grant": "g", "waiting": float64(4711),
	}}
	require.Empty(t, cmp.Diff(want, lines(t, &out)))
}

func TestTransitionsThatAreOffCostNothing(t *testing.T) {
	var out bytes.Buffer
	tr := telemetry.NewTransitions(telemetry.Logger(&out, slog.LevelInfo), false)
	require.False(t, tr.On())
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { tr.Log(ctx, transition) }))
	require.Empty(t, out.String())
}

func TestHashOfAMemberIsTheSameInEveryProcess(t *testing.T) {
	t.Parallel()
	require.Equal(t, "4ebdf888b50e", telemetry.HashMember("ann"), "logs of two versions no longer fit together")
	require.NotEqual(t, telemetry.HashMember("ann"), telemetry.HashMember("bob"))
}

// panics serves a handler behind Recover.
func panics(t *testing.T, handler http.HandlerFunc) (*http.Response, string, []map[string]any, error) {
	t.Helper()
	var out bytes.Buffer
	r := newRouter()
	r.Use(telemetry.Recover(telemetry.Logger(&out, slog.LevelInfo), func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "sorry", http.StatusInternalServerError)
	}))
	r.Get("/rooms/{room}", handler)
	server := httptest.NewServer(r)
	defer server.Close()
	resp, err := http.Get(server.URL + "/rooms/CANARY")
	if err != nil {
		server.Close() // waits for the handler, and so for its log
		return nil, "", lines(t, &out), err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	server.Close()
	require.NotContains(t, out.String(), "CANARY", "the path is the client's to choose")
	return resp, string(body), lines(t, &out), err
}

func TestAPanicIsLoggedOnceAndAnswered(t *testing.T) {
	t.Parallel()
	resp, body, log, err := panics(t, func(http.ResponseWriter, *http.Request) { panic("boom") })
	require.NoError(t, err)
	require.Equal(t, 500, resp.StatusCode)
	require.Equal(t, "sorry\n", body)
	require.Len(t, log, 1)
	require.Contains(t, log[0]["stack"], "log_test.go", "the stack does not show the handler")
	delete(log[0], "stack")
	want := map[string]any{"level": "ERROR", "msg": "request handler panicked", "panic": "boom", "method": "GET", "route": "/rooms/{room}"}
	require.Empty(t, cmp.Diff(want, log[0]))
}

func TestHalfAnAnswerIsNotTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	_, body, log, err := panics(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic("boom")
	})
	require.Error(t, err, "the client took %q for the answer", body)
	require.Len(t, log, 1)
}

func TestAHandlerMayBreakTheConnection(t *testing.T) {
	t.Parallel()
	_, _, log, err := panics(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	require.Error(t, err)
	require.Empty(t, log, "it is no fault")
}
