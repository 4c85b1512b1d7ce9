package load

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reported is a report of a run that did not take place.
func reported() *Report {
	t := newTally()
	t.came(0)
	t.came(1500 * time.Millisecond)
	t.called(called{enterCall, 0, 0, 2 * time.Millisecond, 201, ""})
	t.called(called{enterCall, 0, 900 * time.Millisecond, time.Second, 201, ""})
	t.called(called{pollCall, time.Second, time.Second, 1100 * time.Millisecond, 503, "unavailable"})
	t.called(called{orderCall, 2 * time.Second, 2 * time.Second, 2050 * time.Millisecond, 409, `<script>alert("1")</script>`})
	t.called(called{orderCall, 2 * time.Second, 2 * time.Second, 2050 * time.Millisecond, 0, "timeout"})
	t.admitted(2*time.Second, 500*time.Millisecond, told{at: time.Second, wait: 2 * time.Second, least: 0, most: 3 * time.Second})
	t.admitted(2*time.Second, 0, told{})
	t.admitted(30*time.Second, 0, told{at: time.Second, wait: 2 * time.Second, least: 0, most: 3 * time.Second})
	t.ordered(2*time.Second, false)
	t.ordered(2*time.Second, true)
	t.close(2*time.Second, second{Waiting: 7, Holding: 3, RoomWaiting: 9, Granted: 4})
	r := &Report{Room: "<b>sale</b>", URL: "http://127.0.0.1:8080", BeganAt: time.Unix(1_800_000_000, 0).UTC(), Seconds: 31, Plan: PlanReport{Arrivals: 2, Shape: Burst}}
	r.count(t)
	j := newJudge(func() time.Duration { return 4 * time.Second })
	for range maxViolations + 5 {
		j.hold(placeStays, false, "person %d had <score> %d", 1, 2)
	}
	j.hold(tokenStays, true, "")
	r.judged(j, false)
	r.Admissions.RatePerSecond = 50
	r.Notes = r.notes(j, &watch{})
	return r
}

func TestTheReportHasWhatWasCounted(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, reported().WriteJSON(&b))
	var r Report
	require.NoError(t, json.Unmarshal(b.Bytes(), &r))
	require.EqualValues(t, 2, r.Came)
	enters := r.Calls[enterCall]
	require.EqualValues(t, 2, enters.Count)
	require.InDelta(t, 2, enters.Due.P50, 0.1)
	require.InDelta(t, 1000, enters.Due.Max, 1)
	require.InDelta(t, 100, enters.Service.Max, 1)
	require.InDelta(t, 900, r.SendLag.Max, 1)
	require.EqualValues(t, 1, r.Calls[pollCall].Failed)
	require.EqualValues(t, 1, r.Calls[orderCall].Refused)
	require.EqualValues(t, 1, r.Calls[orderCall].Failed, "no answer is a failure")
	require.Len(t, r.Problems, 3)
	require.Contains(t, r.Problems, Problem{"order", 0, "timeout", 1})
	require.Equal(t, OrdersReport{1, 1}, r.Orders)
	require.EqualValues(t, 3, r.Admissions.Seen)
	require.EqualValues(t, 2, r.Waits.Told)
	require.EqualValues(t, 1, r.Waits.WithinRange, "the one who waited 1 s, and not the one who waited 29 s")
	require.Equal(t, []Passage{{2, 1}, {2, 29}}, r.Passages)
	require.Equal(t, 30.0, r.Waits.SinceEntered.Max)
	require.Len(t, r.Series, 31)
	require.EqualValues(t, 1, r.Series[1].Came)
	at2 := r.Series[2]
	require.Equal(t, []int64{2, 1, 7, 3, 9, 4, 2, 1}, []int64{at2.Admitted, at2.Ordered, at2.Waiting, at2.Holding, at2.RoomWaiting, at2.Granted, at2.Calls, at2.Failed})
	require.Len(t, r.Violations, maxViolations)
	require.EqualValues(t, maxViolations+5, r.Broken(), "all are counted, also those that are not listed")
	require.EqualValues(t, 4, r.Violations[0].AtSeconds)
}

func TestTheTextSaysWhatWasBrokenAndWhatWasNotJudged(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, reported().WriteText(&b))
	text := b.String()
	require.Regexp(t, `a place never changes +25 +BROKEN 25 times`, text)
	require.Regexp(t, `an entry token is the same at every poll +1 +kept`, text)
	require.Regexp(t, `admissions within the rate +0 +not judged: needs an admin token`, text)
	require.Regexp(t, `no order without a grant +0 +not judged: nothing happened`, text)
	require.Regexp(t, `VIOLATION +4.0 s +a place never changes: person 1 had <score> 2`, text)
	require.Contains(t, text, "and 5 more")
	require.Regexp(t, `enter +2 +0 +0 +from due +2\.0 `, text)
	require.NotContains(t, text, "leave ", "nobody did")
}

func TestThePageIsOneFileThatLoadsAndRunsNothing(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, reported().WriteHTML(&b))
	text := b.String()
	require.NotContains(t, text, "<script")
	require.NotContains(t, text, "<b>sale")
	require.Contains(t, text, "&lt;script&gt;")
	require.NotRegexp(t, `(?i)\b(src|href)=|url\(|@import`, text)
	require.Equal(t, 6, strings.Count(text, "<svg "), "diagrams")
	require.Contains(t, text, "BROKEN 25 times")
	require.Contains(t, text, "the rate")

	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	open := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token.(type) {
		case xml.StartElement:
			open++
		case xml.EndElement:
			open--
		}
	}
	require.Zero(t, open, "every element is closed")
	require.NotContains(t, text, "NaN")
	require.NotContains(t, text, "Inf")
}

func TestDiagramsStayInTheirField(t *testing.T) {
	t.Parallel()
	var f field
	f.x, f.y = 100, 7
	f.begin("t", "s")
	require.Equal(t, 8.0, f.y)
	require.Equal(t, "60.0,214.0", f.at(point{0, 0}))
	require.Equal(t, "860.0,34.0", f.at(point{100, 8}))
	empty := chart("nothing", "s", []curve{{name: "none"}})
	require.NotContains(t, string(empty), "NaN")
}

func TestALongRunIsDrawnWithFewerPoints(t *testing.T) {
	t.Parallel()
	all := make([]SecondReport, 3601)
	for i := range all {
		all[i] = SecondReport{Came: int64(i % 2 * 10), Waiting: int64(i), P99: float64(i % 7)}
	}
	few := thinned(all, 600)
	require.Equal(t, 7, few.step)
	require.Len(t, few.rows, 515)
	require.InDelta(t, 5, few.rows[0].Came, 1)
	require.EqualValues(t, 6, few.rows[0].Waiting, "as at the end")
	require.EqualValues(t, 6, few.rows[0].P99, "the worst")
	require.EqualValues(t, 3600, few.rows[514].Waiting)
}

func TestNotesSayWhatToDo(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Report){
		"LINEKEEPER_TRUSTED_PROXIES": func(r *Report) {
			r.Plan.Forwarded, r.Problems = true, []Problem{{"enter", 429, "rate-limited", 3}}
		},
		"see --forwarded":        func(r *Report) { r.Problems = []Problem{{"enter", 429, "rate-limited", 3}} },
		"maxWaiting":             func(r *Report) { r.Problems = []Problem{{"enter", 429, "room-full", 3}} },
		"puts more in stock":     func(r *Report) { r.Problems = []Problem{{"order", 409, "sold-out", 3}} },
		"the room was [PAUSED]":  func(r *Report) { r.RoomStates = []string{"PAUSED"} },
		"--tail gives them more": func(r *Report) { r.People.InLine = 3 },
		"silent in it now":       func(r *Report) { r.LeftInRoom = 3 },
	} {
		r := &Report{RoomStates: []string{"OPEN"}, Promises: make([]Promise, numPromises)}
		require.Empty(t, r.notes(newJudge(nil), &watch{}))
		change(r)
		notes := r.notes(newJudge(nil), &watch{})
		require.Len(t, notes, 1, want)
		require.Contains(t, notes[0], want)
	}
}
