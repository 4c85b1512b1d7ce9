package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestOrdersWithOneTokenAreSpreadAndARepeatIsTheSameOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.limited(defaults(t))
	_, entry := f.ready()
	first := f.order(oneA, token(entry)).is(http.StatusCreated)
	require.Equal(t, `"order-member";q=1;w=6`, first.header.Get("RateLimit-Policy"))
	require.Equal(t, `"order-member";r=0;t=6`, first.header.Get("RateLimit"))
	wait := f.order(oneA, token(entry)).limitedBy("order-member", "rate-limited")
	require.Equal(t, 6*time.Second, wait)
	f.pass(wait)
	require.Equal(t, first.order(), f.order(oneA, token(entry)).is(http.StatusOK).order())
}

// A refusal of our own says when to come back; who does so is not refused for it.
func TestAnOrderRepeatedWhenToldIsNeverRefusedByTheLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
		wait   time.Duration
	}{
		{order.ErrUnavailable, 503, "unavailable", 6 * time.Second},
		{queue.ErrUnavailable, 503, "unavailable", 6 * time.Second},
		{order.ErrOutcomeUnknown, 503, "order-outcome-unknown", 6 * time.Second},
		{queue.ErrLimit, 429, "order-limit", 6 * time.Second},
		{order.InProgressError{RetryAfter: time.Second}, 409, "order-in-progress", 6 * time.Second},
		{order.InProgressError{RetryAfter: 15 * time.Second}, 409, "order-in-progress", 6 * time.Second},
	} {
		f := setUp(t)
		_, entry := f.ready()
		f.limited(defaults(t), func(o *api.Options) { o.Orders = brokenOrders{c.err} })
		for range 15 {
			a := f.order(oneA, token(entry)).refused(c.status, c.code)
			require.Equal(t, c.wait, a.told(), "%v", c.err)
			f.pass(a.told())
		}
	}
}

// Who was refused with a token that had ended comes back with another one, and
// need not wait for what they did with the old one.
func TestANewTokenDoesNotWaitForTheOldOne(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.limited(defaults(t))
	ann, old := f.ready()
	f.pass(time.Hour)
	f.order(oneA, token(old)).refused(http.StatusUnauthorized, "entry-token-invalid")
	f.post(ticket(ann)).is(http.StatusCreated)
	require.Positive(t, f.tick())
	f.order(oneA, token(*f.poll(ann).EntryToken)).is(http.StatusCreated)
}

// The place and the token are lost with Redis, and so are the counts: nobody waits
// longer than the room settles.
func TestAPlaceThatComesBackIsOrderedFromAtOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.limited(defaults(t))
	ann, entry := f.ready()
	f.relive()
	f.limited(defaults(t))
	require.Equal(t, queue.Waiting, f.get(ticket(ann), token(entry)).is(http.StatusOK).position().Status)
	f.pass(f.life.Rules.Settle)
	require.Positive(t, f.tick())
	f.order(oneA, token(*f.poll(ann).EntryToken)).is(http.StatusCreated)
}

func TestPollsAreLimitedInTheProcessAndCostRedisNothing(t *testing.T) {
	t.Parallel()
	f, q := overheard(t)
	f.limited(defaults(t))
	ann, bob := f.enter(), f.enter()
	for range 3 {
		a := f.get(ticket(ann)).is(http.StatusOK)
		require.Empty(t, a.header.Values("RateLimit"), "a poll that passes carries nothing more")
	}
	before := q.n.Load()
	for range 20 {
		require.Equal(t, time.Second, f.get(ticket(ann)).limitedBy("poll-member", "poll-too-fast"))
	}
	require.LessOrEqual(t, q.n.Load()-before, int64(5), "nothing is asked for who polls too fast") // but for the view
	f.poll(bob)
	f.pass(time.Second)
	f.poll(ann)
}

// TestWhoPollsAsToldIsNeverRefused is about the fastest pace that anybody is told,
// by each of the three numbers, and about a limit that is below the usual pace.
func TestWhoPollsAsToldIsNeverRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"token:3/1s", "token:1/1s", "token:2/5s"} {
		f := setUp(t)
		l := defaults(t)
		l.PollMember = limit(t, text)
		f.limited(l)
		for what, pace := range map[string]func(p spec.Position, h http.Header) time.Duration{
			"nextPollAfterMs": func(p spec.Position, _ http.Header) time.Duration {
				return time.Duration(p.NextPollAfterMs) * time.Millisecond
			},
			"pollingIntervalSeconds": func(p spec.Position, _ http.Header) time.Duration {
				return time.Duration(p.PollingIntervalSeconds) * time.Second
			},
		} {
			a := f.post().is(http.StatusCreated)
			ann := *a.position().QueueTicket
			for range 100 {
				f.pass(pace(a.position(), a.header))
				a = f.get(ticket(ann))
				require.Equal(t, http.StatusOK, a.status, "%s, %s", text, what)
			}
		}
	}
}

// A full room is entered again when it says so, by a newcomer and by somebody who
// has a ticket already.
func TestWhoEntersAgainWhenToldIsNeverRefusedByALimit(t *testing.T) {
	t.Parallel()
	f := setUp(t, settings(func(s *room.Settings) { s.MaxWaiting, s.EnterNeedsTicket = 1, true }))
	f.limited(defaults(t))
	first := *f.post().is(http.StatusOK).position().QueueTicket
	f.post(ticket(first)).is(http.StatusCreated)
	late := *f.post().is(http.StatusOK).position().QueueTicket
	longest := time.Duration(0)
	for range 60 {
		a := f.post(from("203.0.113.7"), ticket(late)).refused(http.StatusTooManyRequests, "room-full")
		longest = max(longest, a.told())
		f.pass(a.told())
	}
	require.Greater(t, longest, 5*time.Second, "12 a minute are more than the 10 that a member may")
}

// TestALimitNeverKeepsAnOrderFromAFullRedis: the scripts of limits are refused when Redis is full;
// that is busy for newcomers, and nothing at all for orders.
func TestALimitNeverKeepsAnOrderFromAFullRedis(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	f := onRedis(t, server.Addr)
	f.limited(defaults(t))
	ann, entry := f.ready()
	_, bobs := f.ready()
	f.order(`[{"sku":"none","quantity":1}]`, token(bobs)).refused(http.StatusUnprocessableEntity, "invalid-order")
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	f.post(from("203.0.113.7")).refused(http.StatusTooManyRequests, "room-full").after("5")
	f.poll(ann)
	f.order(oneA, token(entry)).is(http.StatusCreated)
	f.order(oneA, token(bobs)).limitedBy("order-member", "rate-limited") // what is known already counts
	f.pass(6 * time.Second)
	f.order(oneA, token(bobs)).is(http.StatusCreated)
}

func TestWithoutRedisALimitNeitherRefusesNorDelays(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	f := onRedis(t, server.Addr)
	f.limited(defaults(t))
	ann, entry := f.ready()
	server.Pause()
	f.eventually("the last view is too old", func() bool {
		a, err := f.try(t.Context(), "GET", f.entries+"/me", ticket(ann))
		f.pass(time.Second) // for the limit of polls
		return err == nil && a.status == http.StatusServiceUnavailable
	})
	f.refusesAll(f.site, ann, entry)
	server.Resume()
	f.eventually("the token is as good as before", func() bool {
		f.pass(time.Second)
		a, err := f.try(t.Context(), "POST", "/v1/orders", body(`{"items":`+oneA+`}`), token(entry))
		return err == nil && a.status == http.StatusCreated
	})
}

// A Redis that hangs costs one request the time that a limit may take, and not each.
func TestAHangingRedisIsNotAskedAboutLimitsByEverybody(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	f, q := onRedis(t, server.Addr), &questions{}
	f.rdb.AddHook(q)
	f.limited(defaults(t))
	_, entry := f.ready()
	f.status(f.room)
	server.Pause()
	defer server.Resume()
	before := q.limits.Load()
	for range 3 {
		ctx, hungUp := context.WithTimeout(t.Context(), askedFor)
		_, err := f.try(ctx, "POST", "/v1/orders", body(`{"items":`+oneA+`}`), token(entry))
		require.Error(t, err, "the claim hangs too")
		hungUp()
	}
	require.Equal(t, int64(1), q.limits.Load()-before)
}

// askedFor is a little longer than a limit may take.
const askedFor = 450 * time.Millisecond

// alike is an answer without what is of one request alone.
func (a answer) alike() string {
	id := a.header.Get("X-Request-Id")
	var h strings.Builder
	for _, name := range []string{"Content-Type", "Cache-Control", "Www-Authenticate", "Retry-After", "Ratelimit", "Ratelimit-Policy"} {
		fmt.Fprintln(&h, name, a.header.Values(name))
	}
	return fmt.Sprintln(a.status, h.String(), strings.ReplaceAll(string(a.body), id, "ID"))
}

func TestAllKindsOfWrongTokensAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := defaults(t)
	l.WrongCredential = limit(t, "token:9/1m")
	f.limited(l)
	_, expired := f.ready()
	ann, good := f.ready()
	bob := f.enter()
	f.pass(400 * time.Second)
	tokens := map[string][]with{
		"guessed":        {token(strings.Repeat("A", 43))},
		"malformed":      {token("eyJ.x.\xff")},
		"oversized":      {token(strings.Repeat("x", 4000))},
		"changed":        {token(expired[:len(expired)-3] + "AAA")},
		"a ticket":       {token(ann)},
		"foreign":        {token(good), ticket(bob)},
		"of another key": {token(f.foreign(good))},
		"expired":        {token(expired)},
	}
	want := ""
	for kind, shown := range tokens {
		got := f.order(oneA, shown...).refused(http.StatusUnauthorized, "entry-token-invalid").alike()
		if want == "" {
			want = got
		}
		require.Equal(t, want, got, kind)
	}
	f.order(oneA, token("x")).is(http.StatusUnauthorized)
	f.pass(time.Second)
	_, another := f.ready()
	f.pass(400 * time.Second)
	for range 9 {
		f.order(oneA, token("x")).is(http.StatusUnauthorized)
	}
	f.order(oneA, token("x")).limitedBy("wrong-credential", "rate-limited")
	tokens["expired"] = []with{token(another)} // one that its own limit knows nothing of
	want = f.order(oneA, token("x")).alike()
	for kind, shown := range tokens {
		require.Equal(t, want, f.order(oneA, shown...).alike(), "over the limit: %s", kind)
	}
}

func TestAHundredThousandGuessesWriteNothingAndNeverCostAGoodToken(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	f := onRedis(t, server.Addr)
	f.limited(defaults(t))
	ann, entry := f.ready()
	before, calls := f.dump(), f.calls()
	h := f.api.Handler()
	statuses := map[int]int{}
	for i := range 100_000 {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/orders", strings.NewReader(`{"items":`+oneA+`}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Entry-Token", fmt.Sprintf("%s%06d", entry[:len(entry)-6], i))
		h.ServeHTTP(w, r)
		statuses[w.Code]++
	}
	require.Equal(t, map[int]int{http.StatusUnauthorized: 30, http.StatusTooManyRequests: 99_970}, statuses)
	require.Equal(t, before, f.dump())
	require.Equal(t, calls, f.calls(), "a guess has asked Redis something")
	var rows int
	require.NoError(t, f.db.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&rows))
	require.Zero(t, rows)

	for range 31 {
		f.get(ticket("x"))
	}
	f.get(ticket("x")).limitedBy("wrong-credential", "rate-limited") // of the address of the good ones
	f.poll(ann)
	f.order(oneA, token(entry)).is(http.StatusCreated)
}

// calls is how many scripts and writes of rooms and limits the server has run.
func (f *fixture) calls() string {
	f.t.Helper()
	info, err := f.rdb.Info(f.t.Context(), "commandstats").Result()
	require.NoError(f.t, err)
	var scripts []string
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(line, ":")
		if name == "cmdstat_evalsha" || name == "cmdstat_eval" || name == "cmdstat_set" || name == "cmdstat_zadd" || name == "cmdstat_rpush" {
			calls, _, _ := strings.Cut(rest, ",")
			scripts = append(scripts, name+" "+calls)
		}
	}
	return strings.Join(scripts, " ")
}

// S8: people behind one address do not pay for each other once they are in line.
func TestFiveHundredBehindOneAddressKeepPollingAndOrdering(t *testing.T) {
	t.Parallel()
	const members = 500
	f := setUp(t, settings(func(s *room.Settings) { s.BatchSize = members }))
	l := defaults(t)
	f.limited(l)
	_, err := f.db.Exec(t.Context(), "UPDATE products SET stock = 1000 WHERE sku = 'a'")
	require.NoError(t, err)
	tickets := make([]string, 0, members)
	for len(tickets) < members {
		a := f.post(from("203.0.113.7"))
		if a.status == http.StatusTooManyRequests { // and says when to come again
			f.pass(a.limitedBy("enter-address", "rate-limited"))
			continue
		}
		tickets = append(tickets, *a.is(http.StatusCreated).position().QueueTicket)
	}
	for range 40 { // somebody among them guesses
		f.order(oneA, token("x"), from("203.0.113.7"))
	}
	for range 3 {
		for _, text := range tickets {
			f.get(ticket(text), from("203.0.113.7")).is(http.StatusOK)
		}
		f.pass(time.Second)
	}
	for placed := 0; placed < members; {
		f.pass(time.Second)
		placed += f.tick()
	}
	var all sync.WaitGroup
	for part := range 10 {
		all.Go(func() {
			for i := part; i < members; i += 10 {
				a, err := f.try(t.Context(), "GET", f.entries+"/me", ticket(tickets[i]), from("203.0.113.7"))
				if err != nil || a.status != http.StatusOK || a.position().EntryToken == nil {
					t.Errorf("poll of %d: %v %d %s", i, err, a.status, a.body)
					continue
				}
				a, err = f.try(t.Context(), "POST", "/v1/orders", body(`{"items":`+oneA+`}`), token(*a.position().EntryToken), from("203.0.113.7"))
				if err != nil || a.status != http.StatusCreated {
					t.Errorf("order of %d: %v %d %s", i, err, a.status, a.body)
				}
			}
		})
	}
	all.Wait()
}
