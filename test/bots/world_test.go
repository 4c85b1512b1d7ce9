package bots

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/ratelimit"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/siteverify"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// start is when every sale opens, by the clock of Redis.
var start = time.UnixMicro(1_764_500_000_000_000)

// world is a room with a defence, and what is going to happen in it.
type world struct {
	*testing.T
	room, prefix string
	rdb          *redis.Client
	ring         *credential.Ring
	url          string
	client       *http.Client
	views        *looks
	dice         *rand.Rand

	now     time.Duration // since start
	clock   atomic.Int64  // the same, for Redis
	agenda  agenda
	bots    map[string]bool // members who are bots
	places  int             // made so far
	asked   int             // requests
	people  []time.Duration // what each person has waited from coming to having a place
	looked  time.Duration   // when the process was last made to look at the room
	follows bool            // the process must look at the room each second: something follows it
}

// looks counts how often the process has looked at the room.
type looks struct {
	api.Snapshots
	n atomic.Int64
}

func (l *looks) Snapshot(ctx ctx, name string) (queue.Snapshot, error) {
	defer l.n.Add(1)
	return l.Snapshots.Snapshot(ctx, name)
}

// open opens a sale with a defence.
func open(t *testing.T, d defence, c crowd) *world {
	t.Helper()
	rdb, db := harness.Redis(t), harness.Database(t)
	id := uuid.NewString()
	w := &world{T: t, room: "sale-" + id[:8], prefix: "bots-" + id, rdb: rdb, bots: map[string]bool{}, dice: rand.New(rand.NewPCG(1, 2))}
	now := func() time.Time { return start.Add(time.Duration(w.clock.Load())) }
	line := redisstore.New(rdb, w.prefix, redisstore.WithClock(now))
	rooms, orders := roomstore.New(db), orderstore.New(db, orderstore.Options{})
	settings := room.Defaults()
	settings.MaxWaiting = 1_000_000
	if d.settings != nil {
		d.settings(&settings)
	}
	settings.ProofOfWorkRate = max(1, c.people/20)
	w.follows = settings.ProofOfWorkMaxBits > 0
	_, err := rooms.Create(t.Context(), w.room, settings, room.Actor{Name: "test", Role: "admin"})
	require.NoError(t, err)
	life, err := rooms.Begin(t.Context(), w.room, 0)
	require.NoError(t, err)
	require.NoError(t, line.Create(t.Context(), life))

	w.ring, err = credential.ParseRing(credential.GenerateKey())
	require.NoError(t, err)
	w.views = &looks{Snapshots: line}
	o := api.Options{
		Line: line, Returns: line, Snapshots: w.views, Hearer: line, Health: line, Books: rooms, Draws: rooms,
		Orders: order.New(line, orders, order.Options{}), OrderBook: orders, Ring: w.ring,
		Challenges: siteverify.Start(t).Client,
		Trusted:    clientip.Trusted{netip.MustParsePrefix("127.0.0.0/8")}, // each actor says its address
	}
	if d.limits {
		sliding := func(n int) ratelimit.Limit {
			return ratelimit.Limit{Algorithm: ratelimit.Sliding, N: n, Per: time.Minute}
		}
		o.Limits = api.Limits{
			EnterAddress: sliding(60), EnterNetwork: sliding(600), EnterMember: sliding(10),
			Counts: ratelimit.New(rdb, w.prefix, ratelimit.WithClock(now)), Now: now,
		}
	}
	server := httptest.NewServer(api.New(o).Handler())
	t.Cleanup(server.Close)
	w.url, w.client = server.URL+"/v1/rooms/"+w.room+"/entries", server.Client()
	return w
}

// answer is what an actor is told.
type answer struct {
	status int
	retry  time.Duration
	spec.Position
}

// enter asks for a place.
func (w *world) enter(address string, header map[string]string) answer {
	w.asked++
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.url, nil)
	require.NoError(w, err)
	req.Header.Set("X-Forwarded-For", address)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := w.client.Do(req)
	require.NoError(w, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(w, err)
	require.NoError(w, resp.Body.Close())
	a := answer{status: resp.StatusCode}
	seconds, _ := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
	a.retry = max(seconds, time.Second)
	if a.status < 300 {
		require.NoError(w, json.Unmarshal(body, &a.Position), "%s", body)
	}
	require.Less(w, a.status, 500, "%s", body)
	if a.status == http.StatusCreated {
		w.places++
	}
	return a
}

// mark notes that the holder of a ticket is a bot.
func (w *world) mark(text string) {
	t, err := w.ring.Ticket(text)
	require.NoError(w, err)
	w.bots[t.Member] = true
}

// share is the part of the first n places that bots have.
func (w *world) share(n int) float64 {
	members, err := w.rdb.ZRange(w.Context(), w.prefix+":{"+w.room+"}:lane0", 0, int64(n-1)).Result()
	require.NoError(w, err)
	if len(members) == 0 {
		return 0
	}
	bots := 0
	for _, m := range members {
		if w.bots[m] {
			bots++
		}
	}
	return float64(bots) / float64(len(members))
}

// event is something that an actor does.
type event struct {
	at time.Duration
	do func()
}

type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// at puts something on the agenda.
func (w *world) at(t time.Duration, do func()) { heap.Push(&w.agenda, event{t, do}) }

// play lets happen what is on the agenda, until the end or the time is over.
func (w *world) play(until time.Duration, over func() bool) {
	for len(w.agenda) > 0 && !over() {
		e := heap.Pop(&w.agenda).(event)
		if e.at > until {
			return
		}
		w.now = max(w.now, e.at)
		w.clock.Store(int64(w.now))
		w.look()
		e.do()
	}
}

// look makes the process look at the room once in a second of the world's time,
// where something follows it. By itself it does four times in a second of ours.
func (w *world) look() {
	if !w.follows || w.now-w.looked < time.Second {
		return
	}
	w.looked = w.now
	seen := w.views.n.Load()
	harness.Eventually(w, 10*time.Second, "the process looks at the room", func() bool {
		w.enter("198.51.100.1", nil)
		w.asked--
		return w.views.n.Load() > seen
	})
}

func (w *world) String() string {
	return fmt.Sprintf("%v: %d places, %d requests", w.now, w.places, w.asked)
}
