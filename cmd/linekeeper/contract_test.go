package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/contract"
	"github.com/linekeeper/linekeeper/test/harness"
)

// running is a whole process, on ports of its own.
type running struct {
	*server
	t                 *testing.T
	public, operators string
	tokens            map[admin.Role]string
}

// runServer starts a process whose log goes to out.
func runServer(t *testing.T, out io.Writer, change func(*config.Process), hooks ...redis.Hook) *running {
	t.Helper()
	r := &running{t: t, tokens: map[admin.Role]string{}}
	var entries []string
	for _, role := range []admin.Role{admin.Viewer, admin.Operator, admin.Admin} {
		token, entry, err := admin.NewToken("ann-"+role.String(), role)
		require.NoError(t, err)
		r.tokens[role], entries = token, append(entries, entry)
	}
	o := harness.Redis(t).Options()
	conf := config.Process{Roles: config.RoleAPI | config.RoleScheduler | config.RoleRelay, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0",
		Keys: config.Secret(credential.GenerateKey()), AdminTokens: config.Secret(strings.Join(entries, ",")), LeaderTTL: 2 * time.Second}
	conf.RedisURL, conf.DatabaseURL = config.URL(fmt.Sprintf("redis://%s/%d", o.Addr, o.DB)), config.URL(harness.DSN(t))
	conf.KeyPrefix, conf.LogLevel = "run-"+uuid.NewString(), slog.LevelDebug
	change(&conf)
	var err error
	r.server, err = newServer(t.Context(), conf, slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: conf.LogLevel})), hooks...)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, listens := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- r.run(ctx, func(public, operators net.Addr) {
			r.public, r.operators = "http://"+public.String(), "http://"+operators.String()
			close(listens)
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		r.close()
	})
	<-listens
	return r
}

// openRoom makes a room with these settings and waits until it is served.
func (r *running) openRoom(name string, s room.Settings) {
	r.t.Helper()
	_, err := r.rooms.Create(r.t.Context(), name, s, room.Actor{Name: "test"})
	require.NoError(r.t, err)
	harness.Eventually(r.t, 30*time.Second, "the room is served", func() bool {
		resp, err := http.Get(r.public + "/v1/rooms/" + name)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
}

// seedOf is that of LINEKEEPER_SEED, or a new one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("LINEKEEPER_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("LINEKEEPER_SEED=%d", seed)
	return seed
}

// requestsFromTheDocument is how many are tried on each listener.
const requestsFromTheDocument = 1500

// Whatever the document lets one ask, and whatever is nearly that, is answered as
// the document says, and never by a fault of the server.
func TestRandomRequestsFromTheDocumentAreAnsweredAsItSays(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	r := runServer(t, io.Discard, func(*config.Process) {})
	_, _, err := r.rooms.PutProduct(t.Context(), room.Product{SKU: "demo", Stock: 1000, PriceCents: 1990, Currency: "EUR"}, 0, room.Actor{Name: "test"})
	require.NoError(t, err)
	direct := room.Defaults()
	direct.DirectAdmission = true
	r.openRoom("sale", direct)
	r.openRoom("lab", room.Defaults()) // which operators may flush and delete
	c := contract.Load(t)

	known := map[string][]string{
		"room": {"sale"}, "sku": {"demo"}, "slug": problem.Codes(), "X-Member-Lane": {"standard"}, "sale": {"1"},
		"X-HTTP-Method-Override": {"DELETE", "POST"}, "Accept": {"text/html", "application/json"}, "Idempotency-Key": {"k1", "k2"},
	}
	for range 8 {
		ticket, token := r.letIn("sale")
		known["X-Queue-Ticket"] = append(known["X-Queue-Ticket"], ticket)
		known["X-Entry-Token"] = append(known["X-Entry-Token"], token)
		known["Cookie"] = append(known["Cookie"], "linekeeper_sale="+ticket)
	}
	public := c.NewMaker(seed, contract.Public)
	public.Known = known
	operators := c.NewMaker(seed, func(r contract.Route) bool { return contract.Admin(r) || contract.Metrics(r) })
	operators.Known = map[string][]string{
		"room": {"lab", "lab", "made"}, "name": {"made"}, "confirm": {"lab", "made"}, "sku": {"demo", "more"}, "currency": {"EUR"}, "stock": {"demo"},
		"id": {"1", "2"}, "status": {"dead", "done"}, "If-Match": {`"1"`, `"2"`, "*"}, "timeZone": {"UTC", "Europe/Berlin"}, "returnUrls": {"https://a.example"},
		"Authorization": {"Bearer " + r.tokens[admin.Admin], "Bearer " + r.tokens[admin.Operator], "Bearer " + r.tokens[admin.Viewer]},
	}
	r.tryAll(c, public, r.public)
	r.tryAll(c, operators, r.operators)
}

// letIn enters a room that lets people straight in.
func (r *running) letIn(name string) (ticket, token string) {
	r.t.Helper()
	var p spec.Position
	harness.Eventually(r.t, 30*time.Second, "somebody is let in", func() bool {
		p = r.enter(name)
		return p.EntryToken != nil
	})
	return *p.QueueTicket, *p.EntryToken
}

// tryAll sends the requests of a maker, several at a time.
func (r *running) tryAll(c *contract.Contract, m *contract.Maker, base string) {
	requests := make(chan *http.Request)
	statuses := map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for req := range requests {
				status := r.tryOne(c, req)
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			}
		})
	}
	for range requestsFromTheDocument {
		requests <- m.Request(base)
	}
	close(requests)
	wg.Wait()
	granted := statuses[200] + statuses[201] + statuses[204]
	require.Greater(r.t, granted, requestsFromTheDocument/20, "hardly any request was good, so this shows little: %v", statuses)
	require.Greater(r.t, len(statuses), 6, "%v", statuses)
	r.t.Logf("%s: %v", base, statuses)
}

// tryOne sends a request and holds the answer against the document. A machine that
// is too busy for Redis to answer in time is no finding; a fault that stays is.
func (r *running) tryOne(c *contract.Contract, req *http.Request) (status int) {
	req.Header.Del("X-Member-Lane") // counts for nothing here, whatever it is
	var body []byte
	for range 3 {
		if req.GetBody != nil {
			req.Body, _ = req.GetBody()
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			r.t.Errorf("%s %s: no answer: %v", req.Method, req.URL, err)
			return 0
		}
		body, err = io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close(), c.Verify(req, resp, body)); err != nil {
			r.t.Errorf("%s %s %v answered %d: %v\n%.500s", req.Method, req.URL, req.Header, resp.StatusCode, err, body)
		}
		if status = resp.StatusCode; status != http.StatusServiceUnavailable {
			break
		}
	}
	if status >= http.StatusInternalServerError {
		r.t.Errorf("%s %s %v answered %d: %.500s", req.Method, req.URL, req.Header, status, body)
	}
	return status
}

// enter enters as somebody new.
func (r *running) enter(name string) (p spec.Position) {
	r.t.Helper()
	resp, err := http.Post(r.public+"/v1/rooms/"+name+"/entries", "", nil)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	require.Equal(r.t, http.StatusCreated, resp.StatusCode)
	require.NoError(r.t, json.NewDecoder(resp.Body).Decode(&p))
	return p
}
