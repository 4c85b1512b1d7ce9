package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/ratelimit"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

// limit reads one as it is written.
func limit(t *testing.T, text string) ratelimit.Limit {
	t.Helper()
	l, err := ratelimit.Parse(text)
	require.NoError(t, err)
	return l
}

// defaults are the limits that a process has when nothing is said.
func defaults(t *testing.T) api.Limits {
	return api.Limits{
		EnterAddress: limit(t, "sliding:60/1m"), EnterNetwork: limit(t, "sliding:600/1m"), EnterMember: limit(t, "sliding:10/1m"),
		OrderMember: limit(t, "leaky:10/1m"), PollMember: limit(t, "token:3/1s"), WrongCredential: limit(t, "token:30/1m"),
	}
}

// limited serves the room with these limits, counted by the clock of the test, behind
// a proxy on this machine.
func (f *fixture) limited(l api.Limits, more ...func(*api.Options)) {
	f.t.Helper()
	l.Counts, l.Now = ratelimit.New(f.rdb, f.prefix, ratelimit.WithClock(f.now)), f.now
	f.site = f.serve(append([]func(*api.Options){func(o *api.Options) {
		o.Limits, o.Trusted = l, clientip.Trusted{netip.MustParsePrefix("127.0.0.0/8")}
	}}, more...)...)
}

// told is the number of seconds until asking again makes sense, which a refusal
// by a limit says in three places.
func (a answer) told() time.Duration {
	a.t.Helper()
	var p struct{ RetryAfterSeconds *int }
	require.NoError(a.t, json.Unmarshal(a.body, &p))
	require.NotNil(a.t, p.RetryAfterSeconds, "%s", a.body)
	require.Equal(a.t, strconv.Itoa(*p.RetryAfterSeconds), a.header.Get("Retry-After"))
	return time.Duration(*p.RetryAfterSeconds) * time.Second
}

// limitedBy demands a refusal by that limit, in all its places.
func (a answer) limitedBy(policy, code string) time.Duration {
	a.t.Helper()
	a.refused(http.StatusTooManyRequests, code)
	require.Equal(a.t, fmt.Sprintf("%q;r=0;t=%d", policy, a.told()/time.Second), a.header.Get("RateLimit"))
	require.Contains(a.t, a.header.Get("RateLimit-Policy"), strconv.Quote(policy)+";q=")
	return a.told()
}

func TestNewcomersAreLimitedByAddressAndThoseWhoHaveAPlaceAreNot(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := defaults(t)
	l.EnterAddress = limit(t, "sliding:3/1m")
	f.limited(l)
	first := f.post(from("203.0.113.7")).is(http.StatusCreated)
	require.Equal(t, `"enter-address";q=3;w=60`, first.header.Get("RateLimit-Policy"))
	require.Equal(t, `"enter-address";r=2;t=60`, first.header.Get("RateLimit"))
	f.post(from("203.0.113.7")).is(http.StatusCreated)
	f.post(from("::ffff:203.0.113.7")).is(http.StatusCreated) // the same, written otherwise
	f.pass(20 * time.Second)
	require.Equal(t, 40*time.Second, f.post(from("203.0.113.7")).limitedBy("enter-address", "rate-limited"))
	f.post(from("203.0.113.8")).is(http.StatusCreated)

	known := ticket(*first.position().QueueTicket)
	again := f.post(from("203.0.113.7"), known).is(http.StatusOK)
	require.Equal(t, `"enter-member";q=10;w=60`, again.header.Get("RateLimit-Policy"))
	f.get(from("203.0.113.7"), known).is(http.StatusOK)
	f.pass(40 * time.Second)
	f.post(from("203.0.113.7")).is(http.StatusCreated)
}

func TestATicketOfAnotherSaleMakesANewcomer(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := defaults(t)
	l.EnterAddress = limit(t, "sliding:1/1m")
	f.limited(l)
	old := *f.post(from("203.0.113.7")).is(http.StatusCreated).position().QueueTicket
	_, err := f.rooms.Flush(t.Context(), f.room, operator)
	require.NoError(t, err)
	f.adopt(f.written())
	f.limited(l) // a process that knows the new sale
	f.post(from("203.0.113.7"), ticket(old)).limitedBy("enter-address", "rate-limited")
}

// 1,000 addresses of one /64 are one, and those of one /48 share a larger limit.
// Otherwise those who ask and do not work would keep out those who have.
func TestAPuzzleAndItsSolutionAreOneNewcomer(t *testing.T) {
	t.Parallel()
	f := setUp(t, working(easy))
	l := defaults(t)
	l.EnterAddress = limit(t, "sliding:2/1m")
	f.limited(l)
	home := from("192.0.2.1")
	ann, annPuzzle := f.post(home).asked()
	bob, bobPuzzle := f.post(home).asked()
	f.post(home).refused(http.StatusTooManyRequests, "rate-limited")
	f.post(home, ticket(ann), solved(t, annPuzzle)).is(http.StatusCreated)
	f.post(home, ticket(bob), solved(t, bobPuzzle)).is(http.StatusCreated)
}

func TestIPv6AddressesAreLimitedByTheirNetworks(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := defaults(t)
	l.EnterAddress, l.EnterNetwork = limit(t, "sliding:3/1m"), limit(t, "sliding:7/1m")
	f.limited(l)
	allowed := 0
	for i := range 1000 {
		if f.post(from(fmt.Sprintf("2001:db8:1:1::%x", i+1))).status == http.StatusCreated {
			allowed++
		}
	}
	require.Equal(t, 3, allowed, "one /64 is one client")
	for i := range 1000 {
		if f.post(from(fmt.Sprintf("2001:db8:1:%x::1", i+2))).status == http.StatusCreated {
			allowed++
		}
	}
	require.Equal(t, 7, allowed, "what one /64 was refused has cost its neighbours nothing; the /48 is the bound")
	f.post(from("2001:db8:1:ffff::1")).limitedBy("enter-network", "rate-limited")
	other := f.post(from("2001:db8:2:1::1")).is(http.StatusCreated)
	require.Equal(t, `"enter-address";q=3;w=60, "enter-network";q=7;w=60`, other.header.Get("RateLimit-Policy"))
	require.Equal(t, `"enter-address";r=2;t=60`, other.header.Get("RateLimit"), "of two the nearer one")
}

// Case 76: who rotates X-Forwarded-For with no proxy that is trusted is one client.
func TestCase76AForgedAddressIsLimitedAsItsPeer(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := defaults(t)
	l.EnterAddress = limit(t, "sliding:3/1m")
	f.limited(l, func(o *api.Options) { o.Trusted = nil })
	allowed := 0
	for i := range 20 {
		if f.post(from(fmt.Sprintf("203.0.113.%d", i))).status == http.StatusCreated {
			allowed++
		}
	}
	require.Equal(t, 3, allowed)
}

func TestAMemberIsLimitedInEachRoomAndNotNamedInRedis(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.limited(defaults(t))
	ann := *f.post(from("203.0.113.7")).is(http.StatusCreated).position().QueueTicket
	for i := range 10 {
		a := f.post(ticket(ann)).is(http.StatusOK)
		require.Equal(t, fmt.Sprintf(`"enter-member";r=%d;t=60`, 9-i), a.header.Get("RateLimit"))
	}
	require.Equal(t, time.Minute, f.post(ticket(ann)).limitedBy("enter-member", "rate-limited"))
	who, err := f.ring.Ticket(ann)
	require.NoError(t, err)
	for _, key := range f.keys() {
		if name, counts := strings.CutPrefix(key, f.prefix+":limit:"); counts {
			require.NotContains(t, name, who.Member)
			require.NotContains(t, name, "203.0.113.7")
			require.NotContains(t, name, "{", "one Cluster slot for all counts")
		}
	}
	f.poll(ann) // the place is as it was
}

// Where a proxy says who members are, many of them may share an address.
func TestNamedMembersAreLimitedByNameAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := defaults(t)
	l.EnterAddress, l.EnterMember = limit(t, "sliding:1/1m"), limit(t, "sliding:2/1m")
	f.limited(l, func(o *api.Options) { o.MemberHeader = true })
	for i := range 50 {
		f.post(from("203.0.113.7"), header("X-Member-Id", fmt.Sprint("m", i))).is(http.StatusCreated)
	}
	f.post(header("X-Member-Id", "m1")).is(http.StatusOK)
	f.post(header("X-Member-Id", "m1")).limitedBy("enter-member", "rate-limited")
}

// questions counts what a client sends to Redis, and apart what of it is about limits.
type questions struct{ n, limits atomic.Int64 }

func (q *questions) DialHook(next redis.DialHook) redis.DialHook { return next }
func (q *questions) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		q.n.Add(1)
		if strings.Contains(fmt.Sprint(cmd.Args()...), ":limit:") {
			q.limits.Add(1)
		}
		return next(ctx, cmd)
	}
}
func (q *questions) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		q.n.Add(int64(len(cmds)))
		for _, cmd := range cmds {
			if strings.Contains(fmt.Sprint(cmd.Args()...), ":limit:") {
				q.limits.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

// overheard is a fixture whose questions to Redis are counted.
func overheard(t *testing.T, changes ...func(*plan)) (*fixture, *questions) {
	t.Helper()
	q := &questions{}
	return setUp(t, append(changes, func(p *plan) {
		p.rdb = redis.NewClient(harness.Redis(t).Options())
		t.Cleanup(func() { _ = p.rdb.Close() })
		p.rdb.AddHook(q)
	})...), q
}

// direct asks the handler without a network, n times, and counts the statuses.
func (s *site) direct(n int, request func(i int) *http.Request) map[int]int {
	statuses, h := map[int]int{}, s.api.Handler()
	for i := range n {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(i))
		statuses[w.Code]++
	}
	return statuses
}

func TestAFloodOfEntersFromOneAddressCostsFewCalls(t *testing.T) {
	t.Parallel()
	f, q := overheard(t)
	f.limited(defaults(t))
	f.post(from("203.0.113.8")).is(http.StatusCreated) // the room and the scripts are known now
	before := q.n.Load()
	statuses := f.direct(10_000, func(int) *http.Request { return httptest.NewRequest("POST", f.entries, nil) })
	require.Equal(t, map[int]int{201: 60, 429: 9940}, statuses)
	cost := q.n.Load() - before
	t.Logf("%d questions to Redis", cost)
	require.LessOrEqual(t, cost, int64(60*2+20), "a question for each who entered, the enter itself, and a few for the view")
}

func TestTheTicketThatARoomAsksForFirstIsNotCounted(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.EnterNeedsTicket = true }))
	l := defaults(t)
	l.EnterAddress = limit(t, "sliding:1/1m")
	f.limited(l)
	before := f.keys()
	var tickets []string
	for range 5 {
		tickets = append(tickets, *f.post().is(http.StatusOK).position().QueueTicket)
	}
	require.ElementsMatch(t, before, f.keys(), "who has not shown a ticket leaves nothing in Redis")
	require.Equal(t, queue.Waiting, f.post(ticket(tickets[0])).is(http.StatusCreated).position().Status)
	f.post(ticket(tickets[1])).limitedBy("enter-address", "rate-limited")
}

// tally counts decisions.
type tally struct{ counts map[string]*atomic.Int64 }

func (c *tally) decisions(policy, algorithm, result string) func() {
	n := &atomic.Int64{}
	c.counts[policy+" "+algorithm+" "+result] = n
	return func() { n.Add(1) }
}

func TestEachDecisionIsCounted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	c := &tally{map[string]*atomic.Int64{}}
	l := defaults(t)
	l.EnterAddress, l.Decisions = limit(t, "fixed:2/1m"), c.decisions
	f.limited(l)
	for range 5 {
		f.post()
	}
	ann := *f.post(from("203.0.113.7")).is(http.StatusCreated).position().QueueTicket
	for range 5 {
		f.get(ticket(ann))
	}
	f.get(ticket("x"))
	f.order(oneA, token("x"))
	for what, want := range map[string]int64{
		"enter-address fixed allowed": 3, "enter-address fixed refused": 3, "poll-member token allowed": 3, "poll-member token refused": 2,
		"wrong-credential token allowed": 2, "enter-member sliding refused": 0,
	} {
		require.Equal(t, want, c.counts[what].Load(), what)
	}
}
