package telemetry_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/telemetry"
)

// exercise calls every method of m once.
func exercise(m *telemetry.Metrics) {
	m.Entered("r", "new")
	m.Departed("r", "left", 2)
	for range 3 {
		m.Admitted("r", "vip", time.Minute)
	}
	m.Granted("r", "issued", 4)
	m.Lifted("r", 3)
	m.Polled("r", "WAITING")
	m.Restored("r", "passed")
	m.OtherNetwork("r", "token", false)
	m.Led(7, true)
	m.Ticked("r", "ok", 2*time.Millisecond, time.Unix(1000, 5e8))
	m.SetRoom("r", map[string]float64{"waiting": 5, "away": 1}, 2.5)
	m.SetBatch("r", 50)
	m.SetPassedOff("r", 12)
	m.SetBatchInForce("r", 20, "bad")
	m.Waited("r", 30*time.Second, 20*time.Second)
	m.Waited("r", 300*time.Millisecond, 100*time.Millisecond) // both are a second
	m.SetBreaker("redis", 2)
	m.FailedOpen("r", true)
	m.PassedOpen("r")
	m.SetStretch(2.5)
	m.RateLimitDecision("enter-member", "sliding", "refused")()
	m.OrderBegan()
	m.OrderBegan()
	m.OrderEnded("placed", 3*time.Millisecond)
	m.SetOutbox(6, 1, 1500*time.Millisecond)
	m.Delivered(8)
	m.DeliveryFailed(9)
	m.ObserveScript("enter", time.Millisecond, nil)
	m.ObserveScript("enter", time.Millisecond, io.EOF)
}

func TestEveryMetricSaysWhatItWasTold(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v1.2.3")
	exercise(m)
	got := scrape(t, m)
	for series, want := range map[string]string{
		`entries_total{result="new",room="r"}`:            "1",
		`departures_total{reason="left",room="r"}`:        "2",
		`admissions_total{lane="vip",room="r"}`:           "3",
		`grants_total{event="issued",room="r"}`:           "4",
		`lifted_total{room="r"}`:                          "3",
		`polls_total{room="r",status="WAITING"}`:          "1",
		`restores_total{result="passed",room="r"}`:        "1",
		`scheduler_leader`:                                "1",
		`scheduler_term`:                                  "7",
		`scheduler_ticks_total{result="ok"}`:              "1",
		`scheduler_tick_seconds_sum`:                      "0.002",
		`scheduler_last_tick_timestamp_seconds{room="r"}`: "1000.5",
		`queue_members{room="r",state="waiting"}`:         "5",
		`queue_members{room="r",state="away"}`:            "1",
		`queue_head_age_seconds{room="r"}`:                "2.5",
		`batch_size{room="r"}`:                            "50",
		`passed_off_total{room="r"}`:                      "12",
		`batch_in_force{room="r"}`:                        "20",
		`batch_verdict{room="r",verdict="bad"}`:           "1",
		`wait_estimate_ratio_sum{room="r"}`:               "2.5",
		`breaker_state{name="redis"}`:                     "2",
		`failed_open{room="r"}`:                           "1",
		`passed_open_total{room="r"}`:                     "1",
		`poll_stretch`:                                    "2.5",
		`orders_in_flight`:                                "1",
		`orders_total{result="placed"}`:                   "1",
		`order_seconds_sum`:                               "0.003",
		`outbox_pending`:                                  "6",
		`outbox_dead`:                                     "1",
		`outbox_oldest_age_seconds`:                       "1.5",
		`outbox_delivered_total`:                          "8",
		`outbox_failures_total`:                           "9",
		`redis_script_seconds_count{script="enter"}`:      "2",
		`redis_errors_total{kind="network"}`:              "1",

		`other_network_total{credential="token",result="refused",room="r"}`: "1",
	} {
		require.Equal(t, want, got[series], series)
	}
	require.Equal(t, "1", got[`ratelimit_decisions_total{algorithm="sliding",policy="enter-member",result="refused"}`])
	require.Condition(t, func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(s string) bool {
			return strings.HasPrefix(s, "build_info{") && strings.Contains(s, `version="v1.2.3"`)
		})
	})
}

func TestCountersIgnoreWhatWouldMakeThemFall(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	m.Departed("r", "left", -1)
	m.Granted("r", "issued", -1)
	m.Lifted("r", -1)
	m.Delivered(-1)
	m.DeliveryFailed(-1)
	got := scrape(t, m)
	require.NotContains(t, got, `departures_total{reason="left",room="r"}`)
	require.Equal(t, "0", got["outbox_delivered_total"])
}

func TestMetricsPassTheLinter(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	exercise(m)
	watchPools(t, m)
	serve(m, "GET", "/v1/rooms/r")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Contains(t, text, "go_goroutines")
	require.Contains(t, text, "process_open_fds")
}

// router is shaped like the API: routes, a mounted part, and paths with
// parameters that clients choose.
func router(m *telemetry.Metrics) http.Handler {
	r := newRouter()
	r.Use(m.HTTP)
	r.Get("/v1/rooms/{room}", func(http.ResponseWriter, *http.Request) {})
	r.Post("/v1/orders", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
	r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	admin := newRouter()
	admin.Get("/rooms/{room}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
	r.Mount("/admin/v1", admin)
	return r
}

func serve(m *telemetry.Metrics, method, path string) {
	defer func() { _ = recover() }()
	router(m).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
}

func TestRequestsAreNamedByTheirRoute(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	for _, c := range [][3]string{
		{"GET", "/v1/rooms/a", `code="200",method="GET",route="/v1/rooms/{room}"`},
		{"POST", "/v1/orders", `code="409",method="POST",route="/v1/orders"`},
		{"GET", "/admin/v1/rooms/a", `code="200",method="GET",route="/admin/v1/rooms/{room}"`},
		{"GET", "/nowhere", `code="404",method="GET",route="unmatched"`},
		{"PUT", "/v1/orders", `code="405",method="PUT",route="unmatched"`},
		{"BREW", "/v1/orders", `code="405",method="other",route="unmatched"`},
		{"GET", "/panic", `code="500",method="GET",route="/panic"`},
	} {
		serve(m, c[0], c[1])
		require.Equal(t, "1", scrape(t, m)["http_request_seconds_count{"+c[2]+"}"], "%s %s", c[0], c[1])
	}
}

// Case 81, artifact-keeper#2220, sigstore/timestamp-authority#1374: whoever tries
// paths and methods would fill the memory of all who scrape.
func TestRandomPathsAndMethodsMakeNoSeries(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	h := router(m)
	send := func(i int) {
		path := []string{"/v1/rooms/%d", "/%d", "/admin/v1/%d", "/admin/v1/rooms/%d", "/v1/orders/%d"}[i%5]
		method := "GET"
		if i%10 >= 5 {
			method = fmt.Sprintf("X%d", i/10)
		}
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, fmt.Sprintf(path, i), nil))
	}
	for i := range 10 {
		send(i)
	}
	before := len(scrape(t, m))
	for i := range 10_000 {
		send(i)
	}
	require.Equal(t, before, len(scrape(t, m)))
}

func TestEveryLabelHasALimit(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	m.Led(1, true)
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			word, room := fmt.Sprintf("w%d", i), fmt.Sprintf("r%d", i)
			m.Entered(room, word)
			m.Departed(room, word, 1)
			m.Admitted(room, word, time.Second)
			m.Granted(room, word, 1)
			m.Polled(room, word)
			m.Waited(room, time.Second, time.Second)
			m.SetBatchInForce(room, 1, word)
			m.Ticked(room, word, 0, time.Unix(1, 0))
			m.OrderBegan()
			m.OrderEnded(word, 0)
			m.ObserveScript(word, 0, nil)
			m.SetRoom(room, map[string]float64{word: 1}, 0)
		}
	}
	fill(0, 300)
	m.ForgetAll()
	before := len(scrape(t, m))
	fill(300, 2000)
	m.ForgetAll()
	after := scrape(t, m)
	require.Equal(t, before, len(after))
	require.Equal(t, "1800", after[`entries_total{result="other",room="other"}`])
	require.Contains(t, after, `entries_total{result="other",room="r199"}`)
	require.NotContains(t, after, `entries_total{result="other",room="r200"}`)
}

func TestLabelsThatAreNotUTF8DoNotPanic(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	m.Entered("r\xff", "new\xff")
	require.Equal(t, "1", scrape(t, m)[`entries_total{result="other",room="other"}`])
}
