package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheMedianAndTheQuartilesLieBetweenValues(t *testing.T) {
	t.Parallel()
	require.Equal(t, Spread{3, 2, 4, 5}, spreadOf([]float64{5, 1, 4, 2, 3}))
	require.Equal(t, Spread{2.5, 1.75, 3.25, 4}, spreadOf([]float64{4, 3, 2, 1}))
	require.Equal(t, Spread{7, 7, 7, 1}, spreadOf([]float64{7}))
	require.Zero(t, spreadOf(nil))
}

func TestARatioIsTheMedianOfThoseOfTheRounds(t *testing.T) {
	t.Parallel()
	round := func(a, b int) map[string]Sample {
		return map[string]Sample{
			"a": {Requests: a, Seconds: 2, CPU: map[string]float64{"server": 0.001, "redis": 0.002}},
			"b": {Requests: b, Seconds: 1},
		}
	}
	// In the second round the whole machine was ten times as slow: the ratio stands.
	c := Contest{Rounds: []map[string]Sample{round(100, 100), round(10, 10), round(300, 100)}}
	require.Equal(t, 0.5, c.ratio("a", "b").Median, "and not that of the medians, nor of the sums")
	require.Equal(t, 50.0, c.rate("a").Median)
	require.InDelta(t, 30.0, c.micros("a", "server", "redis").Median, 1e-9)
	require.InDelta(t, 20.0, c.micros("a", "redis").Median, 1e-9)
}

func TestTheLastLinesHaveTheirForm(t *testing.T) {
	t.Parallel()
	f := figures{}
	for i, form := range forms {
		f[form.name] = one(float64(i) + 0.126)
	}
	var out bytes.Buffer
	require.NoError(t, f.print(&out, true))
	require.Equal(t, `bench: poll_vs_plain_64=0.13
bench: poll_vs_plain_256=1.13
bench: poll_vs_naive_64=2.13
bench: poll_vs_naive_256=3.13
bench: enter_vs_plain_64=4.13
bench: enter_vs_naive_64=5.13
bench: order_vs_bare_64=6.13
bench: order_hot_vs_bare_64=7.13
bench: bytes_per_waiting=8
bench: tick_us_per_member=9.1
bench: script_ms_max=10.1
bench: poll_1m_vs_10k=11.13
bench: enter_1m_vs_10k=12.13
bench: alloc_per_poll=13
bench: poll_cpu_us_over_plain=14.1
`, out.String())

	delete(f, "enter_1m_vs_10k")
	require.ErrorContains(t, f.print(io.Discard, true), "enter_1m_vs_10k was not measured")
	require.NoError(t, f.print(io.Discard, false), "a part of a run may have a part of the lines")
}

func TestAnAimIsReachedOnItsOwnSide(t *testing.T) {
	t.Parallel()
	least, most := form{format: "%.2f", aim: 0.72}, form{format: "%.1f", aim: 8, below: true}
	for v, want := range map[float64]string{0.71: "no", 0.72: "yes", 3: "yes"} {
		aim, reached := least.aimed(v)
		require.Equal(t, [2]string{"at least 0.72", want}, [2]string{aim, reached}, "%v", v)
	}
	for v, want := range map[float64]string{8.1: "no", 8: "yes", 1: "yes"} {
		aim, reached := most.aimed(v)
		require.Equal(t, [2]string{"at most 8.0", want}, [2]string{aim, reached}, "%v", v)
	}
}

func TestAResponseIsReadWhereItEnds(t *testing.T) {
	t.Parallel()
	whole := "HTTP/1.1 201 Created\r\nX: y\r\nContent-Length: 3\r\nDate: now\r\n\r\nabc"
	for n := range whole {
		a, err := parse([]byte(whole[:n]))
		require.NoError(t, err)
		require.Zero(t, a.size, "%d bytes are not all", n)
	}
	a, err := parse([]byte(whole + "HTTP/1.1"))
	require.NoError(t, err)
	require.Equal(t, answer{status: 201, body: len(whole) - 3, size: len(whole)}, a)
	for _, wrong := range []string{"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "\r\n\r\n"} {
		_, err := parse([]byte(wrong))
		require.ErrorIs(t, err, errNotHTTP)
	}
}

func TestANumberIsReadFromABody(t *testing.T) {
	t.Parallel()
	body := []byte(`{"rank":120,"score":1764400000000001,"lane":null}`)
	require.EqualValues(t, 120, number(body, rankField))
	require.EqualValues(t, 1764400000000001, number(body, scoreField))
	require.EqualValues(t, -1, number(body, []byte(`"lane":`)))
	require.EqualValues(t, -1, number(body, []byte(`"total":`)))
}

// onePoll is a poll of one member, who began at rank 5 with score 7.
func onePoll() *polls {
	return &polls{requests: [][]byte{get("r", "")}, ranks: []int64{5}, scores: []int64{7}, moved: 2}
}

func TestAWrongAnswerEndsTheLoad(t *testing.T) {
	t.Parallel()
	const right = `{"status":"WAITING","score":7,"rank":4}`
	for name, c := range map[string]struct {
		status int
		body   string
		wrong  string
	}{
		"right":                 {200, right, ""},
		"an error":              {503, right, "answered 503 instead of 200"},
		"another 2xx":           {201, right, "answered 201 instead of 200"},
		"polled too fast":       {429, `{"code":"poll-too-fast"}`, "poll-too-fast"},
		"of another member":     {200, `{"score":8,"rank":4}`, "not of the member"},
		"a rank that has risen": {200, `{"score":7,"rank":6}`, "rank 6 of somebody who began at 5"},
		"a rank too low":        {200, `{"score":7,"rank":2}`, "rank 2 of somebody who began at 5"},
		"no rank":               {200, `{"score":7,"rank":null}`, "rank -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answered int
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if answered++; answered <= 20 { // so far all is well
					_, _ = io.WriteString(w, right)
					return
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(server.Close)
			long := time.Minute // the first wrong answer ends it
			if c.wrong == "" {
				long = time.Second
			}
			got, err := drive(t.Context(), []string{server.Listener.Addr().String()}, 1, long, onePoll())
			if c.wrong == "" {
				require.NoError(t, err)
				require.Greater(t, got.requests, 20)
				return
			}
			require.ErrorContains(t, err, c.wrong)
		})
	}
}

func TestABodyOfAnotherSizeIsWrong(t *testing.T) {
	t.Parallel()
	p := &polls{requests: [][]byte{nil}, same: 3}
	require.NoError(t, p.check(0, 200, []byte("abc")))
	require.ErrorContains(t, p.check(0, 200, []byte("ab")), "2 bytes instead of 3")
}

func TestAnOrderThatIsNotPlacedIsWrong(t *testing.T) {
	t.Parallel()
	o := &orders{}
	require.NoError(t, o.check(0, 201, []byte(`{"items":[{"sku":"p1","quantity":1}]}`)))
	require.ErrorContains(t, o.check(0, 200, nil), "200 instead of 201", "one that replays another")
	require.ErrorContains(t, o.check(0, 201, []byte(`{}`)), "no order")
	require.EqualValues(t, 2, o.placed.Load())
}

func TestAnEnterThatIsNotNewIsWrong(t *testing.T) {
	t.Parallel()
	e := enterRoom("r", new(newcomers))
	require.NoError(t, e.check(16, 201, []byte(`{"status":"WAITING"}`)))
	require.ErrorContains(t, e.check(16, 200, nil), "200 instead of 201")
	require.ErrorContains(t, e.check(16, 201, []byte(`{"status":"READY"}`)), "WAITING")
	require.EqualValues(t, 2, e.done.Load(), "what is compared with the length of the line")
}

func TestEveryStrangerHasAnAddress(t *testing.T) {
	t.Parallel()
	count := new(newcomers)
	e, seen := enterRoom("r", count), map[string]bool{}
	for i := range 20_000 {
		request, _ := e.next(i % 3)
		_, rest, _ := strings.Cut(string(request), "X-Forwarded-For: ")
		address, _, _ := strings.Cut(rest, "\r\n")
		require.NotNil(t, net.ParseIP(address), address)
		require.False(t, seen[address], address)
		seen[address] = true
	}
}

func TestALoadEndsWhenThereIsNothingMoreToAsk(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"quantity":1}`)
	}))
	t.Cleanup(server.Close)
	o := &orders{}
	for range 10 {
		o.requests = append(o.requests, post("", "p1"))
	}
	got, err := drive(t.Context(), []string{server.Listener.Addr().String()}, 4, time.Minute, o)
	require.NoError(t, err)
	require.Equal(t, 10, got.requests)
	require.Zero(t, o.left())
}

func TestConnectionsAreDealtOutToAllServers(t *testing.T) {
	t.Parallel()
	var addrs []string
	var asked [3]atomic.Int64
	for i := range asked {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked[i].Add(1)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"quantity":1}`)
		}))
		t.Cleanup(server.Close)
		addrs = append(addrs, server.Listener.Addr().String())
	}
	o := &orders{requests: [][]byte{post("", "p1"), post("", "p2"), post("", "p3")}}
	_, err := drive(t.Context(), addrs, 3, time.Minute, o)
	require.NoError(t, err)
	for i := range asked {
		require.EqualValues(t, 1, asked[i].Load())
	}
}

func TestAServerThatHangsUpEndsTheLoad(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	_, err := drive(t.Context(), []string{server.Listener.Addr().String()}, 2, time.Minute, onePoll())
	require.Error(t, err)
}

func TestAPageKeepsWhatIsNotTheBenchs(t *testing.T) {
	t.Parallel()
	page, err := spliced("before\n"+pageBegin+"old\n"+pageEnd+"\nafter\n", "new\n")
	require.NoError(t, err)
	require.Equal(t, "before\n"+pageBegin+"new\n"+pageEnd+"\nafter\n", page)
	_, err = spliced("no marks", "new")
	require.Error(t, err)
}

// What a part alone has measured, and the command that measures it again.
func TestAPartAloneWritesItsContests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+pageBegin+pageEnd+"after\n"), 0o600))
	sample := Sample{Requests: 3000, Seconds: 2, CPU: map[string]float64{serverCPU: 0.12, redisCPU: 0.03}}
	r := &Result{Plan: "full", Contests: []Contest{{Name: "poll_scale", Connections: 192, Sides: []string{"one process"},
		Rounds: []map[string]Sample{{"one process": sample}}}}}
	require.NoError(t, r.write(options{dir: dir, page: page, only: "scale"}))
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(b), "\n| poll, thirty rooms | 192 | one process | 1500 (1500 to 1500) | 40 | 10 | 0 | 0 |\n")
	require.Contains(t, string(b), "`make bench ARGS=\"-only scale\"`")
	for _, f := range forms {
		require.NotContains(t, string(b), f.name)
	}
	plots, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	require.NoError(t, err)
	require.Empty(t, plots, "they are of the whole")
}

func TestUnknownCommandsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-plan", "endless"}, {"comparator", "nice"}, {"other"}, {"comparator"}} {
		require.Error(t, run(context.Background(), args, io.Discard), fmt.Sprint(args))
	}
}
