//go:build faults

package verify

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// copyOf is all that Redis has of the room at one moment, its journal too.
func (s *shop) copyOf() map[string]string {
	s.t.Helper()
	ctx := s.t.Context()
	keys, err := s.rdb.Keys(ctx, s.key("*")).Result()
	require.NoError(s.t, err)
	dumps := make([]*redis.StringCmd, len(keys))
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			dumps[i] = p.Dump(ctx, key)
		}
		return nil
	})
	require.NoError(s.t, err)
	all := map[string]string{}
	for i, key := range keys {
		all[key] = dumps[i].Val()
	}
	return all
}

// rollBack takes the room back to an earlier moment, as a failover does to a
// replica that lagged.
func (s *shop) rollBack(to map[string]string) {
	s.t.Helper()
	ctx := s.t.Context()
	over := s.lose(history.PartialLoss)
	now, err := s.rdb.Keys(ctx, s.key("*")).Result()
	require.NoError(s.t, err)
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, now...)
		for key, dump := range to {
			p.Restore(ctx, key, 0, dump)
		}
		return nil
	})
	require.NoError(s.t, err)
	over()
}

// excluded are two members whom operators keep out, and one whom they do not.
type excluded struct{ blocked, evicted, ann *customer }

// each does the same to both who are kept out.
func (e excluded) each(f func(*customer)) {
	f(e.blocked)
	f(e.evicted)
}

// keptOut lets three in, of whom two are kept out then.
func (s *shop) keptOut(p *fault.Process) excluded {
	s.t.Helper()
	e := excluded{s.customer(), s.customer(), s.customer()}
	for _, c := range []*customer{e.blocked, e.evicted, e.ann} {
		c.enter(p).is(http.StatusCreated)
	}
	s.keepOut(p, http.MethodPut, e.blocked.member+"/block")
	s.keepOut(p, http.MethodDelete, e.evicted.member)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.each(func(c *customer) {
		s.facts.Barred = append(s.facts.Barred, history.Barring{Member: c.member, Mono: history.Now()})
	})
	return e
}

// keepOut is an operator's call about a member.
func (s *shop) keepOut(p *fault.Process, method, member string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, p.Admin+"/admin/v1/rooms/"+shopRoom+"/members/"+member,
		strings.NewReader(`{"confirm":"`+shopRoom+`"}`))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.adminToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	require.NoError(s.t, err)
	require.NoError(s.t, resp.Body.Close())
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
}

// refused checks that a place does not come back, and that whoever enters anew
// does not get through either.
func (s *shop) refused(c *customer, a, b *fault.Process) {
	s.t.Helper()
	at := c.poll(a).is(http.StatusOK).position
	require.Equal(s.t, queue.NotEntered, at.Status)
	require.Equal(s.t, queue.OutcomeEvicted, *at.LastOutcome)
	c.enter(b)
}

// staysOut checks that there is no way around by entering anew: a process that does
// not know yet gives a place, which comes to nothing; then nobody does.
func (s *shop) staysOut(c *customer, p *fault.Process) {
	s.t.Helper()
	c.until(p, queue.NotEntered)
	eventually(s.t, longEnough, "entering is refused", func() bool { return c.enter(p).code == "member-blocked" })
	require.Equal(s.t, queue.NotEntered, c.poll(p).is(http.StatusOK).position.Status)
}

// Members who are kept out stay out after every kind of loss, although the room
// has forgotten them.
func TestTheEvictedAndTheBlockedStayOutAfterALoss(t *testing.T) {
	t.Parallel()
	for kind, lose := range map[string]func(*shop, map[string]string){
		"total":   func(s *shop, _ map[string]string) { s.forget() },
		"partial": func(s *shop, before map[string]string) { s.rollBack(before) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, url := ownRedis(t)
			s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.Paused, r.SettleSeconds = true, 1 })
			a, b := s.start(), s.start()
			s.begun()
			before := s.copyOf()
			e := s.keptOut(a)
			lose(s, before)
			s.begun()
			q, ok := s.look()
			require.True(t, ok)
			require.Zero(t, q.Waiting(), "nothing was lost: this test shows nothing")
			e.each(func(c *customer) { s.refused(c, a, b) })
			require.Equal(t, queue.Waiting, e.ann.poll(b).is(http.StatusOK).position.Status)
			s.setNow(func(r *room.Settings) { r.Paused = false })
			e.ann.until(a, queue.Ready)
			e.each(func(c *customer) {
				s.staysOut(c, b)
			})
			q, ok = s.look()
			require.True(t, ok)
			require.EqualValues(t, 1, q.Lanes[0].Admitted)
			s.judge()
		})
	}
}

// A flush ends evictions, which are from one sale, and no block.
func TestTheBlockedStayOutAfterAFlush(t *testing.T) {
	t.Parallel()
	_, url := ownRedis(t)
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.Paused = true })
	a, b := s.start(), s.start()
	s.begun()
	e := s.keptOut(a)
	s.flush()
	e.each(func(c *customer) {
		require.Equal(t, queue.OutcomeReset, *c.poll(a).is(http.StatusOK).position.LastOutcome)
		c.enter(b)
	})
	s.mu.Lock()
	s.facts.Barred[1].Until = history.Now()
	s.mu.Unlock()
	s.setNow(func(r *room.Settings) { r.Paused = false })
	e.evicted.until(a, queue.Ready)
	s.staysOut(e.blocked, b)
	s.judge()
}
