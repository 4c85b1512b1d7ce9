package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// liar answers as the API does, for one room in memory, and lies where it is told
// to. Without a lie it keeps every promise: that is the control of each test.
type liar struct {
	lie string
	url string

	mu      sync.Mutex
	began   time.Time
	filled  time.Time         // when the bucket was last filled
	bucket  float64           // how many may be let through
	people  map[string]*guest // by ticket
	line    []*guest
	orders  map[string]string // by token
	made    int
	through int64
	back    int64
}

type guest struct {
	ticket, token string
	score, asked  int64
	order         string
}

// Of the room: how many, every so often, and once how many have come. On a machine
// that is busy people might else come more slowly than they are let through, and
// nobody would wait.
const liarBatch, liarInterval, liarDoors = 20, 100 * time.Millisecond, 100

func newLiar(t *testing.T, lie string) *liar {
	l := &liar{lie: lie, began: time.Now(), people: map[string]*guest{}, orders: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/rooms/sale", l.locked(l.status))
	mux.HandleFunc("POST /v1/rooms/sale/entries", l.locked(l.enter))
	mux.HandleFunc("GET /v1/rooms/sale/entries/me", l.locked(l.poll))
	mux.HandleFunc("DELETE /v1/rooms/sale/entries/me", l.locked(l.leave))
	mux.HandleFunc("POST /v1/orders", l.locked(l.order))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

func (l *liar) locked(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.admit()
		h(w, r)
	}
}

func write(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code string) {
	write(w, status, map[string]any{"code": code})
}

func (l *liar) status(w http.ResponseWriter, _ *http.Request) {
	write(w, 200, map[string]any{"room": "sale", "roomState": "OPEN", "waiting": len(l.line), "serverTime": time.Now()})
}

// admit lets the first through, as many as the rate allows.
func (l *liar) admit() {
	now := time.Now()
	l.bucket = min(liarBatch, l.bucket+liarBatch*float64(now.Sub(l.filled))/float64(liarInterval))
	l.filled = now
	for len(l.line) > 0 && len(l.people) >= liarDoors && (l.bucket >= 1 || l.lie == "lets everybody through") {
		g := l.line[0]
		l.line = l.line[1:]
		l.through, l.bucket = l.through+1, l.bucket-1
		g.token = fmt.Sprint("token-", g.score)
	}
}

func (l *liar) enter(w http.ResponseWriter, r *http.Request) {
	if g := l.people[r.Header.Get("X-Queue-Ticket")]; g != nil {
		l.position(w, 200, g)
		return
	}
	n := int64(len(l.people)) + 1
	g := &guest{ticket: fmt.Sprint("ticket-", n), score: n * 10}
	l.people[g.ticket], l.line = g, append(l.line, g)
	l.position(w, 201, g)
}

func (l *liar) poll(w http.ResponseWriter, r *http.Request) {
	g := l.people[r.Header.Get("X-Queue-Ticket")]
	if g == nil {
		refuse(w, 401, "ticket-invalid")
		return
	}
	l.position(w, 200, g)
}

func (l *liar) rank(of *guest) int64 {
	for i, g := range l.line {
		if g == of {
			return int64(i)
		}
	}
	return -1
}

func (l *liar) position(w http.ResponseWriter, status int, g *guest) {
	g.asked++
	p := map[string]any{
		"room": "sale", "roomState": "OPEN", "score": g.score, "nextPollAfterMs": 20, "overtakable": false, "lane": "standard",
		"queueTicket": g.ticket, "serverTime": time.Now(),
	}
	rank := l.rank(g)
	switch {
	case g.order != "":
		p["status"], p["orderId"] = "CONSUMED", g.order
		if l.lie == "tells of another order" {
			p["orderId"] = "order-of-nobody"
		}
	case g.token != "":
		p["status"], p["entryToken"], p["entryTokenExpiresAt"] = "READY", g.token, l.began.Add(time.Hour)
	case rank >= 0:
		p["status"], p["rank"], p["currentTotalWaitingCount"] = "WAITING", rank, len(l.line)
		p["estimatedWaitSeconds"], p["estimatedWaitRange"] = 1, []int{0, 5}
	default:
		p["status"] = "NOT_ENTERED"
	}
	l.twist(p, g)
	write(w, status, p)
}

// twist tells the lies about a position.
func (l *liar) twist(p map[string]any, g *guest) {
	ready := p["status"] == "READY"
	switch {
	case l.lie == "moves places":
		p["score"] = g.score + g.asked
	case l.lie == "sends people back" && p["rank"] != nil:
		p["rank"] = 1000 + g.asked
	case l.lie == "shows tokens early" && p["status"] == "WAITING":
		p["entryToken"], p["entryTokenExpiresAt"] = "token-early", l.began
	case l.lie == "keeps tokens back" && ready:
		p["entryToken"] = nil
	case l.lie == "changes tokens" && ready:
		g.token = fmt.Sprint(g.token, "x")
		p["entryToken"] = g.token
	case l.lie == "lengthens tokens" && ready:
		p["entryTokenExpiresAt"] = l.began.Add(time.Hour + time.Duration(g.asked)*time.Second)
	}
}

func (l *liar) leave(w http.ResponseWriter, r *http.Request) {
	g := l.people[r.Header.Get("X-Queue-Ticket")]
	if g != nil {
		if at := l.rank(g); at >= 0 {
			l.line = append(l.line[:at:at], l.line[at+1:]...)
		}
		if l.lie != "takes tokens that were given back" {
			g.token = ""
		}
	}
	w.WriteHeader(204)
}

func (l *liar) order(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get("X-Entry-Token")
	var owner *guest
	for _, g := range l.people {
		if token != "" && g.token == token {
			owner = g
		}
	}
	whoever := l.lie == "takes any token" && token != "" || l.lie == "takes orders without a token" && token == ""
	switch {
	case owner == nil && l.lie == "checks the stock first":
		refuse(w, 409, "sold-out")
	case owner == nil && !whoever:
		refuse(w, 401, "entry-token-invalid")
	default:
		l.place(w, token, owner)
	}
}

func (l *liar) place(w http.ResponseWriter, token string, owner *guest) {
	id, had := l.orders[token]
	if !had || l.lie == "sells twice" || l.lie == "answers with another order" {
		l.made++
		id = fmt.Sprint("order-", l.made)
	}
	if l.lie == "sells one order to all" {
		id = "order-of-all"
	}
	l.orders[token] = id
	if owner != nil && l.lie != "forgets orders" {
		owner.order = id
	}
	if had && l.lie != "sells twice" && l.lie != "calls a repeat new" {
		if l.lie != "hides repeats" {
			w.Header().Set("Idempotency-Replayed", "true")
		}
		write(w, 200, map[string]any{"id": id})
		return
	}
	write(w, 201, map[string]any{"id": id})
}

// Snapshot is what an operator sees.
func (l *liar) Snapshot(context.Context, string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return json.Marshal(map[string]any{
		"generation": 1, "term": 1, "version": 3, "redisTime": time.Now(), "sizes": map[string]any{"processing": 0},
		"lanes": []any{map[string]any{"admitted": l.through}}, "counters": map[string]int64{"back0": l.back},
	})
}

// Settings are those of the room.
func (l *liar) Settings(context.Context, string) ([]byte, error) {
	return json.Marshal(map[string]any{"version": 3, "settings": map[string]any{
		"batchSize": liarBatch, "intervalMs": liarInterval.Milliseconds(), "processingTimeoutSeconds": 5,
	}})
}

// plan is a crowd for a liar: over in some seconds, with all kinds of people.
func (l *liar) plan() Plan {
	return Plan{
		URL: l.url, Room: "sale", SKU: "demo", Arrivals: Arrivals{Shape: Burst, People: 200, Over: 300 * time.Millisecond},
		People: People{Order: 0.9, Twice: 0.3, Vanish: 0.05, Leave: 0.15, Intruders: 0.1, Think: Think{Least: 10 * time.Millisecond, Most: 60 * time.Millisecond}},
		Tail:   10 * time.Second, Connections: 50, Forwarded: true, Tidy: true, Seed: 1, Operator: l,
	}
}

func broken(r *Report) map[string]int64 {
	out := map[string]int64{}
	for _, p := range r.Promises {
		if p.Broken > 0 {
			out[p.Name] = p.Broken
		}
	}
	return out
}

func TestAnHonestServerIsNotAccused(t *testing.T) {
	t.Parallel()
	l := newLiar(t, "")
	r, err := Run(t.Context(), l.plan(), nil)
	require.NoError(t, err)
	require.Empty(t, r.Violations)
	for _, p := range r.Promises {
		require.NotZero(t, p.Looks, "nobody looked whether %s", p.Name)
		require.Equal(t, "kept", p.verdict(), p.Name)
	}
	people := r.People
	require.Zero(t, people.TurnedAway+people.Lost+people.Undecided+people.NotEntered+people.InLine+people.SoldOut, "%+v", people)
	require.EqualValues(t, 200, people.Ordered+people.WithToken+people.Left+people.Vanished+people.Unused)
	require.Equal(t, people.Ordered, r.Orders.Placed)
	require.EqualValues(t, l.made, r.Orders.Placed)
	require.NotZero(t, r.Orders.Replayed, "some press the button twice")
	require.EqualValues(t, 200, r.Came)
	require.InDelta(t, 200, r.Admissions.RatePerSecond, 0.1)
	require.EqualValues(t, l.through, r.Admissions.Granted)
	var granted int64
	for _, s := range r.Series {
		granted += s.Granted
	}
	require.Positive(t, granted)
	require.LessOrEqual(t, granted, l.through)
	require.NotZero(t, r.Waits.WithinRange)
	require.Zero(t, r.LeftInRoom)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.line, "who was still there has left")
}

func TestALieIsReportedAsThePromiseThatItBreaks(t *testing.T) {
	t.Parallel()
	for lie, want := range map[string]promise{
		"takes any token":                   noOrderWithoutGrant,
		"takes orders without a token":      noOrderWithoutGrant,
		"takes tokens that were given back": noOrderWithoutGrant,
		"checks the stock first":            noOrderWithoutGrant,
		"sells twice":                       oneOrderPerToken,
		"answers with another order":        oneOrderPerToken,
		"hides repeats":                     oneOrderPerToken,
		"calls a repeat new":                oneOrderPerToken,
		"sells one order to all":            oneOrderPerToken,
		"tells of another order":            oneOrderPerToken,
		"lets everybody through":            withinTheRate,
		"moves places":                      placeStays,
		"sends people back":                 rankFalls,
		"shows tokens early":                tokenInTurn,
		"keeps tokens back":                 tokenInTurn,
		"changes tokens":                    tokenStays,
		"lengthens tokens":                  tokenStays,
	} {
		t.Run(strings.ReplaceAll(lie, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), newLiar(t, lie).plan(), nil)
			require.NoError(t, err)
			found := broken(r)
			require.NotZero(t, found[promiseNames[want]], "not seen; instead %v", found)
			require.Len(t, found, 1, "something else was accused as well")
			require.NotEmpty(t, r.Violations)
			require.NotEmpty(t, r.Violations[0].Saw)
			require.LessOrEqual(t, len(r.Violations), maxViolations)
			require.EqualValues(t, found[promiseNames[want]], r.Broken())
		})
	}
}

func TestWithoutAnOperatorWhatOnlyTheyCanSeeIsNotJudged(t *testing.T) {
	t.Parallel()
	for _, lie := range []string{"lets everybody through", "sends people back"} {
		p := newLiar(t, lie).plan()
		p.Operator = nil
		r, err := Run(t.Context(), p, nil)
		require.NoError(t, err)
		require.Empty(t, r.Violations, lie)
		require.NotEmpty(t, r.Promises[withinTheRate].Unseen)
		require.NotEmpty(t, r.Promises[rankFalls].Unseen)
		if lie == "sends people back" {
			require.Contains(t, strings.Join(r.Notes, "\n"), "ranks grew")
		}
	}
}

func TestASecondOrderIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	j, who := newJudge(func() time.Duration { return 0 }), &person{}
	press := func(status int, id string) {
		j.order(visit{run: &run{tally: newTally()}, who: who, answer: answer{status: status, replayed: status == 200, body: []byte(`{"id":"` + id + `"}`)}})
	}
	press(201, "a")
	press(200, "a")
	require.Zero(t, j.violations())
	press(201, "a")
	require.EqualValues(t, 1, j.violations(), "201 twice")
}
