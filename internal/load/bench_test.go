package load

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// What one poll costs the tool: written, read, judged and counted. The server in
// the same process is the larger part of what the clock shows; allocations of
// both are counted.
func BenchmarkPollOfOnePerson(b *testing.B) {
	const body = `{"room":"default","roomState":"OPEN","status":"WAITING","rank":7,"score":1796037501450875,"currentTotalWaitingCount":8,"estimatedWaitSeconds":3,"estimatedWaitRange":[2,5],"pollingIntervalSeconds":1,"nextPollAfterMs":998,"entryToken":null,"entryTokenExpiresAt":null,"orderId":null,"enteredAt":"2026-11-30T11:18:21.450875Z","lane":"standard","lifted":false,"overtakable":false,"lastOutcome":null,"message":null,"queueTicket":null,"mustShow":null,"serverTime":"2026-11-30T11:18:21.450873345Z"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	p := Plan{URL: server.URL, Room: "default", SKU: "demo", Forwarded: true, Arrivals: Arrivals{People: 1}}
	t, err := newTarget(p)
	if err != nil {
		b.Fatal(err)
	}
	r := &run{plan: p, target: t, agenda: newAgenda(time.Now()), tally: newTally(), over: make(chan struct{})}
	r.judge = newJudge(r.agenda.now)
	who := newPerson(p, 0)
	who.ticket, who.fate = "a.b.c", shopper
	l := &line{target: t}
	defer l.close()
	b.ReportAllocs()
	for b.Loop() {
		r.step(l, entry{r.agenda.now(), who, poll})
		r.agenda.clear()
	}
}
