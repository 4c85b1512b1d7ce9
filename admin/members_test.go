package admin_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

const confirm = `{"confirm":"sale"}`

// line is a running room with its members.
func line(t *testing.T, members ...string) *fixture {
	t.Helper()
	f := setUp(t)
	f.create("sale")
	f.begin("sale")
	for _, m := range members {
		_, err := f.redis.Enter(t.Context(), "sale", m, 0)
		require.NoError(t, err)
	}
	return f
}

func memberPath(m string) string { return "/admin/v1/rooms/sale/members/" + url.PathEscape(m) }

func (f *fixture) member(m string) map[string]any {
	f.t.Helper()
	a := f.call("viewer", "GET", memberPath(m), "")
	require.Equal(f.t, 200, a.status, "%v", a.body)
	return a.body
}

func (f *fixture) evict(m string) answer {
	f.t.Helper()
	return f.call("operator", "DELETE", memberPath(m), confirm)
}
func (f *fixture) block(m string) answer {
	f.t.Helper()
	return f.call("operator", "PUT", memberPath(m)+"/block", confirm)
}
func (f *fixture) unblock(m string) answer {
	f.t.Helper()
	return f.call("operator", "DELETE", memberPath(m)+"/block", "")
}

// letThrough gives everybody in line a grant.
func (f *fixture) letThrough() []queue.Decision {
	f.t.Helper()
	snap, err := f.redis.Snapshot(f.t.Context(), "sale")
	require.NoError(f.t, err)
	step := queue.Step{Generation: snap.Generation, Term: snap.Term + 1, Leader: "test", Seq: 1}
	r, err := f.redis.Reserve(f.t.Context(), "sale", step, queue.Take{Keep: 1, Effective: 50, Max: 500})
	require.NoError(f.t, err)
	var decisions []queue.Decision
	for _, c := range r.Taken {
		decisions = append(decisions, queue.Decision{Member: c.Member, Grant: uuid.NewString()})
	}
	_, err = f.redis.Issue(f.t.Context(), "sale", step, decisions)
	require.NoError(f.t, err)
	return decisions
}

// claimed is a member whose order is running.
func (f *fixture) claimed() queue.Grant {
	f.t.Helper()
	d := f.letThrough()[0]
	g := queue.Grant{ID: d.Grant, Room: "sale", Member: d.Member}
	require.NoError(f.t, f.redis.Claim(f.t.Context(), g, "c1", 15*time.Second))
	return g
}

func TestAMemberIsShownWithoutBeingHeard(t *testing.T) {
	t.Parallel()
	f := line(t, "ann", "bob")
	v := f.member("bob")
	require.Equal(t, []any{"sale", "bob", "WAITING", "standard", 1.0, 2.0}, []any{v["room"], v["member"], v["state"], v["lane"], v["rank"], v["inLine"]})
	require.Equal(t, []any{false, false}, []any{v["blocked"], v["evicted"]})
	require.Equal(t, "NOT_ENTERED", f.member("eve")["state"])
	f.letThrough()
	v = f.member("ann")
	require.Equal(t, "READY", v["state"])
	require.NotNil(t, v["expiresAt"])
	require.NotContains(t, fmt.Sprint(v), "token")

	_, err := f.store.Flush(t.Context(), "sale", flusher)
	require.NoError(t, err)
	require.Equal(t, "NOT_ENTERED", f.member("ann")["state"], "the sale is over, whatever Redis still has")
}

func TestAMemberOfARoomThatWasNeverBegunIsShownAndBlocked(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	require.Equal(t, "NOT_ENTERED", f.member("bob")["state"])
	require.Nil(t, f.member("bob")["redisTime"])
	require.Equal(t, true, f.block("bob").body["blocked"])
	f.refused(f.call("viewer", "GET", "/admin/v1/rooms/nowhere/members/bob", ""), 404, "room-not-found")
	f.refused(f.call("operator", "PUT", "/admin/v1/rooms/nowhere/members/bob/block", `{"confirm":"nowhere"}`), 404, "room-not-found")
}

func TestAnIDOfAMemberMayHaveWhatAPathMustEscape(t *testing.T) {
	t.Parallel()
	f := line(t)
	for _, m := range []string{"a/b", "a%2Fb", "100%", "..", "a?b#c", "auth0|7", strings.Repeat("m", 128)} {
		_, err := f.redis.Enter(t.Context(), "sale", m, 0)
		require.NoError(t, err)
		require.Equal(t, []any{m, "WAITING"}, []any{f.member(m)["member"], f.member(m)["state"]})
		require.Equal(t, true, f.block(m).body["blocked"], m)
		require.Equal(t, m, f.changes("sale")[0]["after"].(map[string]any)["member"])
	}
	for _, m := range []string{"a b", "é", "a\r\nb", "\x00", strings.Repeat("m", 129)} {
		req := f.call("viewer", "GET", memberPath(m), "")
		f.refused(req, 400, "bad-request")
	}
}

func TestAnEvictedMemberLosesPlaceAndGrantAndStaysOutOfTheSale(t *testing.T) {
	t.Parallel()
	f := line(t, "ann", "bob")
	a := f.evict("bob")
	require.Equal(t, 200, a.status, "%v", a.body)
	require.Equal(t, []any{"NOT_ENTERED", "EVICTED", true, false}, []any{a.body["state"], a.body["lastOutcome"], a.body["evicted"], a.body["blocked"]})
	f.letThrough()
	require.Equal(t, "READY", f.member("ann")["state"])
	require.Equal(t, "NOT_ENTERED", f.evict("ann").body["state"])
	barred, err := f.store.Barred(t.Context(), "sale", 1, []string{"ann", "bob"}, false)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"ann": true, "bob": true}, barred)

	changes := f.changes("sale")
	require.Equal(t, []any{"member.evict", "olaf", "operator"}, []any{changes[0]["action"], changes[0]["actor"], changes[0]["role"]})
	require.Equal(t, "READY", changes[0]["before"].(map[string]any)["state"])
	before := changes[1]["before"].(map[string]any)
	require.Equal(t, []any{"bob", "WAITING", "standard", false}, []any{before["member"], before["state"], before["lane"], before["evicted"]})
	require.Equal(t, map[string]any{"member": "bob", "blocked": false, "evicted": true}, changes[1]["after"])
	require.Equal(t, []string{"ann READY", "bob WAITING"}, f.evicted.sorted())
}

func TestEvictingTwiceAndWhoIsNotThereIsSafe(t *testing.T) {
	t.Parallel()
	f := line(t, "ann")
	for range 2 {
		require.Equal(t, 200, f.evict("ann").status)
		require.Equal(t, 200, f.evict("nobody").status)
	}
	require.Len(t, f.changes("sale"), 3, "the second time there is nothing to change")
	// A process that does not know of it yet has let ann in once more.
	_, err := f.redis.Enter(t.Context(), "sale", "ann", 0)
	require.NoError(t, err)
	require.Equal(t, "NOT_ENTERED", f.evict("ann").body["state"])
	require.Len(t, f.changes("sale"), 4)
	require.Equal(t, "WAITING", f.changes("sale")[0]["before"].(map[string]any)["state"])
}

func TestNobodyIsEvictedWhileAnOrderIsRunning(t *testing.T) {
	t.Parallel()
	f := line(t, "ann")
	g := f.claimed()
	a := f.evict("ann")
	f.refused(a, 409, "order-in-progress")
	require.NotEmpty(t, a.header.Get("Retry-After"))
	v := f.member("ann")
	require.Equal(t, []any{"CLAIMED", false}, []any{v["state"], v["evicted"]})
	require.NotNil(t, v["claimEndsAt"])
	require.Len(t, f.changes("sale"), 1, "what is refused changes nothing")
	require.NoError(t, f.redis.Release(t.Context(), g, "c1"))
	require.Equal(t, "NOT_ENTERED", f.evict("ann").body["state"])
}

// claiming is a Redis in which an order begins right after an operator has looked.
type claiming struct {
	*redisstore.Store
	begin func()
}

func (c claiming) Look(ctx ctx, room, member string) (queue.Sight, error) {
	s, err := c.Store.Look(ctx, room, member)
	c.begin()
	return s, err
}

func TestAnOrderThatBeginsMeanwhileIsToldAndTheEvictionRepeated(t *testing.T) {
	t.Parallel()
	f := line(t, "ann")
	d := f.letThrough()[0]
	g := queue.Grant{ID: d.Grant, Room: "sale", Member: "ann"}
	f.serve(f.store, claiming{f.redis, func() { _ = f.redis.Claim(t.Context(), g, "c1", 15*time.Second) }})
	a := f.evict("ann")
	f.refused(a, 409, "order-in-progress")
	require.Contains(t, a.body["detail"], "evict again")
	f.serve(f.store, f.redis)
	require.Equal(t, []any{"CLAIMED", true}, []any{f.member("ann")["state"], f.member("ann")["evicted"]})
	require.NoError(t, f.redis.Release(t.Context(), g, "c1"))
	require.Equal(t, "NOT_ENTERED", f.evict("ann").body["state"])
}

func TestABlockDoesNotWaitForAnOrderAndTheOrderGoesOn(t *testing.T) {
	t.Parallel()
	f := line(t, "ann")
	g := f.claimed()
	a := f.block("ann")
	require.Equal(t, 200, a.status, "%v", a.body)
	require.Equal(t, []any{"CLAIMED", true}, []any{a.body["state"], a.body["blocked"]})
	_, err := f.redis.Consume(t.Context(), "sale", []queue.Spent{{Member: "ann", Grant: g.ID, Order: uuid.NewString()}})
	require.NoError(t, err)
	require.Equal(t, "CONSUMED", f.member("ann")["state"])
}

func TestABlockEndsThePlaceAndOnlyUnblockLetsInAgain(t *testing.T) {
	t.Parallel()
	f := line(t, "ann")
	require.Equal(t, []any{"NOT_ENTERED", "EVICTED"}, []any{f.block("ann").body["state"], f.member("ann")["lastOutcome"]})
	require.Equal(t, 200, f.call("admin", "POST", "/admin/v1/rooms/sale/flush", confirm).status)
	f.redisForgets()
	restarted := &fixture{t: t, pool: f.pool, store: pgstore.New(f.pool), redis: f.redis, tokens: map[string]string{},
		log: f.log, failed: f.failed, evicted: f.evicted}
	restarted.serve(restarted.store, restarted.redis)
	require.Equal(t, true, restarted.member("ann")["blocked"])
	require.Equal(t, 200, restarted.evict("ann").status)
	for range 2 {
		a := restarted.unblock("ann")
		require.Equal(t, []any{200, false, false}, []any{a.status, a.body["blocked"], a.body["evicted"]})
	}
	changes := f.changes("sale")
	require.Equal(t, "member.unblock", changes[0]["action"])
	require.Equal(t, map[string]any{"member": "ann", "blocked": true, "evicted": true}, changes[0]["before"])
	require.Equal(t, "member.evict", changes[1]["action"], "the second call has changed nothing")
}

// redisForgets makes Redis lose all scripts and all that it has of the room.
func (f *fixture) redisForgets() {
	f.t.Helper()
	rdb := harness.Redis(f.t)
	require.NoError(f.t, rdb.ScriptFlush(f.t.Context()).Err())
	keys, err := rdb.Keys(f.t.Context(), f.prefix+":*").Result()
	require.NoError(f.t, err)
	require.NotEmpty(f.t, keys)
	require.NoError(f.t, rdb.Del(f.t.Context(), keys...).Err())
}

// broken off between Postgres and Redis: the answer is not known, and the same call
// again does the rest.
func TestABlockThatBrokeOffIsCompletedByRepeatingIt(t *testing.T) {
	t.Parallel()
	f := line(t, "ann", "bob")
	f.serve(f.store, deafToLeave{f.redis})
	f.refused(f.block("ann"), 503, "unavailable")
	f.refused(f.evict("bob"), 503, "unavailable")
	f.serve(f.store, f.redis)
	require.Equal(t, []any{"WAITING", true}, []any{f.member("ann")["state"], f.member("ann")["blocked"]})
	require.Equal(t, "NOT_ENTERED", f.block("ann").body["state"])
	require.Equal(t, "NOT_ENTERED", f.evict("bob").body["state"])
	require.Len(t, f.changes("sale"), 5, "each call that had a place to end has its row")
}

type deafToLeave struct{ *redisstore.Store }

func (deafToLeave) Leave(ctx, string, string, int64, queue.Outcome) (bool, error) {
	return false, queue.ErrUnavailable
}

// Whoever enters while being blocked never comes to a grant, whatever came first.
func TestWhoEntersWhileBeingBlockedGetsNoGrant(t *testing.T) {
	t.Parallel()
	f := line(t)
	const n = 20
	var done sync.WaitGroup
	for i := range n {
		m := fmt.Sprint("m", i)
		done.Go(func() {
			_, err := f.redis.Enter(t.Context(), "sale", m, 0)
			require.NoError(t, err)
		})
		done.Go(func() { require.Equal(t, 200, f.block(m).status) })
	}
	done.Wait()
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("m", i)
	}
	barred, err := f.store.Barred(t.Context(), "sale", 1, all, false)
	require.NoError(t, err)
	require.Len(t, barred, n, "whom a tick takes it refuses")
	for _, m := range all {
		require.Equal(t, "NOT_ENTERED", f.block(m).body["state"], m)
	}
}
