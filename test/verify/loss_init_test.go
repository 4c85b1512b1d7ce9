//go:build faults

package verify

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// roomKeys are the room's keys in Redis, without the journal.
func (s *shop) roomKeys() (keys []string) {
	s.t.Helper()
	all, err := s.rdb.Keys(s.t.Context(), s.key("*")).Result()
	require.NoError(s.t, err)
	for _, key := range all {
		if !strings.HasSuffix(key, ":journal") {
			keys = append(keys, key)
		}
	}
	return keys
}

// life is the room as Postgres has it.
func (s *shop) life() queue.Life {
	s.t.Helper()
	lives, err := s.rooms.Lives(s.t.Context())
	require.NoError(s.t, err)
	require.Len(s.t, lives, 1)
	return lives[0]
}

// terminate stops a process in order.
func (s *shop) terminate(p *fault.Process) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), longEnough)
	defer cancel()
	s.client.CloseIdleConnections()
	require.NoError(s.t, p.Terminate(ctx))
}

// What a scheduler that was held up pushes into an empty Redis, what people ask
// for and what operators change there begins nothing. A scheduler does, with a
// number that it has just won in Postgres.
func TestNothingButASchedulerBeginsARoomThatIsLost(t *testing.T) {
	t.Parallel()
	_, url := ownRedis(t)
	s := openShop(t, url, harness.DSN(t), func(r *room.Settings) { r.SettleSeconds = 1 })
	serving, leading := s.start("LINEKEEPER_ROLES=api,relay"), s.start("LINEKEEPER_ROLES=scheduler")
	s.begunAt(serving)
	bob, cy := s.customer().admitted(serving), s.customer().admitted(serving)
	s.setNow(func(r *room.Settings) { r.Paused = true })
	ann := s.customer()
	place := *ann.enter(serving).is(http.StatusCreated).position.Score
	stale := s.life()
	s.terminate(leading)
	made := cy.buy(serving).is(http.StatusCreated).order

	over := s.lose(history.TotalLoss)
	require.NoError(t, s.rdb.FlushAll(t.Context()).Err())
	s.set(func(r *room.Settings) { r.BatchSize, r.Paused = 7, false })
	require.ErrorIs(t, s.store.Update(t.Context(), stale), queue.ErrNoRoom)
	require.ErrorIs(t, s.store.Update(t.Context(), s.life()), queue.ErrNoRoom)
	// Long enough for heartbeats and the relay to have come by.
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(100 * time.Millisecond) {
		for _, a := range []heard{s.customer().enter(serving), ann.poll(serving), bob.buy(serving)} {
			require.True(t, a.away(), "%d %s %s %v", a.status, a.code, a.body, a.err)
		}
	}
	require.Empty(t, s.roomKeys(), "the room has begun by itself")
	require.Equal(t, made.ID, cy.buy(serving).is(http.StatusOK).order.ID, "Postgres knows what was paid for")

	s.start("LINEKEEPER_ROLES=scheduler")
	q := s.untilSnapshot("a scheduler begins the room", func(q queue.Snapshot) bool { return q.Generation > stale.Generation })
	over()
	require.Equal(t, 7, q.Rules.Batch, "with the settings of now")
	require.Equal(t, stale.Sale, q.Sale, "a loss is no new sale")
	s.begunAt(serving)
	require.Equal(t, place, *ann.poll(serving).is(http.StatusOK).position.Score)
	require.Equal(t, queue.Waiting, bob.pollWith(serving, bob.token).is(http.StatusOK).position.Status)
	for _, c := range []*customer{ann, bob} {
		c.until(serving, queue.Ready)
		c.buy(serving).is(http.StatusCreated)
	}
	require.Equal(t, 3, s.orders())
	s.judge()
}
