//go:build faults

package verify

import (
	"context"

	"github.com/stretchr/testify/require"
)

// holdStock locks the row of a product until the function returned is called:
// orders of it wait with their transactions open.
func (s *shop) holdStock(sku string) (release func()) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	tx, err := s.pool.Begin(ctx)
	require.NoError(s.t, err)
	_, err = tx.Exec(ctx, `SELECT FROM products WHERE sku = $1 FOR UPDATE`, sku)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = tx.Rollback(ctx) })
	return func() { require.NoError(s.t, tx.Commit(ctx)) }
}

// waiting waits until so many sessions of the database wait for a lock.
func (s *shop) waiting(n int) {
	s.t.Helper()
	eventually(s.t, longEnough, "sessions wait for a lock", func() bool {
		return sqlValue[int](s, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == n
	})
}
