package outbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// sink remembers what it was given, by member; do, if set, decides first.
type sink struct {
	mu    sync.Mutex
	calls []int // events per call
	got   []string
	do    func(room string, members []string) error
}

func (s *sink) Deliver(ctx context.Context, room string, events []Event) error {
	members := make([]string, len(events))
	for i, e := range events {
		c, err := e.Consume()
		if err != nil {
			return err
		}
		members[i] = c.Member
	}
	s.mu.Lock()
	s.calls = append(s.calls, len(events))
	s.mu.Unlock()
	if s.do != nil {
		if err := s.do(room, members); err != nil {
			return err
		}
	}
	if _, bounded := ctx.Deadline(); !bounded || ctx.Err() != nil {
		return errors.New("a delivery needs a context that lasts, and ends")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, members...)
	return nil
}

func (s *sink) delivered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := slices.Clone(s.got)
	slices.Sort(got)
	return got
}

func (s *sink) callCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

type fixture struct {
	t    testing.TB
	pool *pgxpool.Pool
	sink *sink
	*Admin
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	pool := harness.Database(t)
	return &fixture{t: t, pool: pool, sink: &sink{}, Admin: NewAdmin(pool)}
}

func (f *fixture) relay(opts Options) *Relay { return NewRelay(f.pool, f.sink, opts) }

// append commits a consume event of each member.
func (f *fixture) append(room string, members ...string) {
	f.t.Helper()
	tx := f.begin()
	for _, m := range members {
		f.appendIn(tx, room, m)
	}
	require.NoError(f.t, tx.Commit(f.t.Context()))
}

func (f *fixture) begin() pgx.Tx {
	f.t.Helper()
	tx, err := f.pool.Begin(f.t.Context())
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(f.t.Context())) })
	return tx
}

func (f *fixture) appendIn(tx pgx.Tx, room, member string) {
	f.t.Helper()
	e, err := NewConsume(f.orderIn(tx, room, member), room, Consume{Member: member, Grant: "g"})
	require.NoError(f.t, err)
	require.NoError(f.t, Append(f.t.Context(), tx, e))
}

// orderIn is an order for an event to belong to.
func (f *fixture) orderIn(tx pgx.Tx, room, member string) (id string) {
	f.t.Helper()
	id = uuid.NewString()
	_, err := tx.Exec(f.t.Context(), `INSERT INTO orders (id, grant_id, room, sale, generation, member)
		VALUES ($1, gen_random_uuid(), $2, 1, 1, $3)`, id, room, member)
	require.NoError(f.t, err)
	return id
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	_, err := f.pool.Exec(f.t.Context(), sql, args...)
	require.NoError(f.t, err)
}

func (f *fixture) count(sql string, args ...any) int {
	f.t.Helper()
	var n int
	require.NoError(f.t, f.pool.QueryRow(f.t.Context(), sql, args...).Scan(&n))
	return n
}

func (f *fixture) status(s Status) int {
	f.t.Helper()
	return f.count(`SELECT count(*) FROM outbox WHERE status = $1`, s)
}

// due ends every backoff and every lease: time is data.
func (f *fixture) due() {
	f.t.Helper()
	f.exec(`UPDATE outbox SET next_attempt_at = now() - interval '1 s', locked_until = now() - interval '1 s' WHERE status = 'pending'`)
}

// start runs r until stop, which returns what Run has returned.
func (f *fixture) start(r *Relay) (stop func() error) {
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	f.t.Cleanup(cancel)
	return func() error {
		cancel()
		return <-done
	}
}

// round is one round of r, in which something must get through.
func (f *fixture) round(r *Relay) (more bool) {
	f.t.Helper()
	more, err := r.round(f.t.Context())
	require.NoError(f.t, err)
	return more
}

func members(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%04d", prefix, i)
	}
	return list
}

const long = 30 * time.Second
