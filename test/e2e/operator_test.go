package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// snapshot is a room as operators see it.
type snapshot struct {
	RoomState  string           `json:"roomState"`
	Generation int64            `json:"generation"`
	Version    int64            `json:"version"`
	RedisTime  time.Time        `json:"redisTime"`
	TickedAt   *time.Time       `json:"tickedAt"`
	Term       int64            `json:"term"`
	MemoryFull bool             `json:"memoryFull"`
	Sizes      map[string]int64 `json:"sizes"`
	Lanes      []struct {
		Waiting  int64 `json:"waiting"`
		Admitted int64 `json:"admitted"`
	} `json:"lanes"`
	Counters map[string]int64 `json:"counters"`
}

// admitted is how many grants the room has issued.
func (s snapshot) admitted() int64 { return s.Lanes[0].Admitted }

// inside is everybody that the room knows of who has not ended.
func (s snapshot) inside() int64 {
	return s.Sizes["waiting"] + s.Sizes["away"] + s.Sizes["processing"] + s.Sizes["ready"] + s.Sizes["claimed"]
}

// conserved fails the test unless everybody who entered is somewhere, once.
func (w *world) conserved(s snapshot) {
	w.t.Helper()
	ended := s.Counters["consumed"] + s.Counters["expired"] + s.Counters["left"] + s.Counters["forgotten"] + s.Counters["evicted"]
	require.Equal(w.t, s.Counters["entered"], s.inside()+ended, "entered is not the sum of all states: %+v", s)
}

// operate makes an operator's call on the first process that lives.
func (w *world) operate(method, path string, body any, header ...string) answer {
	w.t.Helper()
	for _, p := range w.replicas {
		if !p.ended() {
			return w.operateAt(p, method, path, body, header...)
		}
	}
	w.t.Fatal("no process is left")
	return answer{}
}

// operateAt makes an operator's call. header is pairs of name and value.
func (w *world) operateAt(p *process, method, path string, body any, header ...string) answer {
	h := http.Header{"Authorization": {"Bearer " + w.adminToken}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	if method == http.MethodPatch {
		h.Set("Content-Type", "application/merge-patch+json")
	}
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{t: w.t, err: err}
		}
		text = string(b)
	}
	return w.ask(method, p.admin+path, h, text)
}

// roomPath is the operators' path of the room, or of something in it.
func roomPath(more ...string) string {
	return strings.Join(append([]string{"/admin/v1/rooms", room}, more...), "/")
}

// patch changes settings of the room, whatever their version.
func (w *world) patch(p *process, s settings) answer {
	w.t.Helper()
	return w.operateAt(p, "PATCH", roomPath(), s, "If-Match", "*").is(200)
}

// do is pause, resume or drain.
func (w *world) do(what string) {
	w.t.Helper()
	w.operate("POST", roomPath(what), nil).is(200)
}

// confirmed is what calls that can't be undone ask for.
var confirmed = settings{"confirm": room}

// stock puts a product on sale.
func (w *world) stock(sku string, n int) {
	w.t.Helper()
	a := w.operate("PUT", "/admin/v1/products/"+sku, settings{"stock": n, "priceCents": 1990, "currency": "EUR"})
	require.Contains(w.t, []int{200, 201}, a.status, "%s", a.body)
}

// snapshotAt asks one process how the room is.
func (w *world) snapshotAt(p *process) snapshot {
	w.t.Helper()
	return decoded[snapshot](w.operateAt(p, "GET", roomPath("snapshot"), nil).is(200))
}

func (w *world) snapshot() snapshot {
	w.t.Helper()
	return decoded[snapshot](w.operate("GET", roomPath("snapshot"), nil).is(200))
}

// untilSnapshot asks until the room is as it should become.
func (w *world) untilSnapshot(what string, is func(snapshot) bool) (s snapshot) {
	w.t.Helper()
	harness.Eventually(w.t, patience, what, func() bool {
		s = w.snapshot()
		return is(s)
	})
	return s
}

// ticks waits until the scheduler has come by n times more.
func (w *world) ticks(n int) {
	w.t.Helper()
	for range n {
		last := w.snapshot().TickedAt
		w.untilSnapshot("the scheduler ticks", func(s snapshot) bool {
			return s.TickedAt != nil && (last == nil || s.TickedAt.After(*last))
		})
	}
}
