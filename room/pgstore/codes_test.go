package pgstore_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestCodesAreKeptByTheirHashAloneAndAudited(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	codes, batch, err := f.MakeCodes(t.Context(), "sale", room.NewCodes{Lane: "standard", Uses: 2, Count: 3}, ann)
	require.NoError(t, err)
	listed, err := f.Codes(t.Context(), "sale", 0, 10)
	require.NoError(t, err)
	require.Len(t, listed, 3)
	var stored string
	require.NoError(t, f.pool.QueryRow(t.Context(), `SELECT string_agg(c::text, ' ') || (SELECT string_agg(r::text, ' ') FROM room_changes r) FROM access_codes c`).Scan(&stored))
	for i, code := range codes {
		hash, ending, ok := room.ParseCode(code)
		require.True(t, ok)
		require.Equal(t, ending, listed[i].Ending)
		require.Equal(t, batch, listed[i].Batch)
		require.NotContains(t, stored, code)
		require.NotContains(t, stored, strings.ReplaceAll(code, "-", ""))
		lane, err := f.UseCode(t.Context(), "sale", 1, hash, "ann")
		require.NoError(t, err)
		require.Equal(t, "standard", lane)
	}
	made := f.changes("sale")[0]
	require.Equal(t, "code.create", made.Action)
	require.JSONEq(t, `{"batch":1,"lane":"standard","uses":2,"count":3}`, string(made.After))

	var problems room.Problems
	_, _, err = f.MakeCodes(t.Context(), "sale", room.NewCodes{Lane: "gold", Uses: 1, Count: 1}, ann)
	require.ErrorAs(t, err, &problems)
	_, _, err = f.MakeCodes(t.Context(), "nowhere", room.NewCodes{Uses: 1, Count: 1}, ann)
	require.ErrorIs(t, err, room.ErrNotFound)
	_, err = f.Codes(t.Context(), "nowhere", 0, 1)
	require.ErrorIs(t, err, room.ErrNotFound)
}

func TestRevokedCodesCountNoMoreAndTheirRevocationIsAuditedOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	make := func(n int) ([]string, int64) {
		codes, batch, err := f.MakeCodes(t.Context(), "sale", room.NewCodes{Uses: 1, Count: n}, ann)
		require.NoError(t, err)
		return codes, batch
	}
	use := func(code, member string) error {
		hash, _, _ := room.ParseCode(code)
		_, err := f.UseCode(t.Context(), "sale", 1, hash, member)
		return err
	}
	first, batch := make(3)
	kept, _ := make(1)
	require.NoError(t, use(first[0], "ann"))
	n, err := f.RevokeCodes(t.Context(), "sale", room.Revocation{Batch: batch}, ann)
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	n, err = f.RevokeCodes(t.Context(), "sale", room.Revocation{Batch: batch}, ann)
	require.NoError(t, err)
	require.Zero(t, n)
	require.ErrorIs(t, use(first[0], "ann"), room.ErrCode, "also for who has used it")
	require.ErrorIs(t, use(first[1], "bob"), room.ErrCode)
	require.NoError(t, use(kept[0], "bob"))
	require.Len(t, f.changes("sale"), 4, "made, two sets of codes, one revocation")
	require.JSONEq(t, `{"batch":1,"count":3}`, string(f.changes("sale")[0].After))
}

// All of a member's calls wait for the code at one time, before any use is noted.
func TestOneMemberManyTimesAtOnceUsesACodeOnceAndIsNeverRefused(t *testing.T) {
	t.Parallel()
	for _, uses := range []int{1, 5} {
		t.Run(strconv.Itoa(uses), func(t *testing.T) {
			f := setUp(t)
			codes, _, err := f.MakeCodes(t.Context(), "sale", room.NewCodes{Lane: "standard", Uses: uses, Count: 1}, ann)
			require.NoError(t, err)
			hash, _, _ := room.ParseCode(codes[0])
			holder, err := f.pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }() // else the pool can't be closed
			_, err = holder.Exec(t.Context(), `SELECT FROM access_codes FOR UPDATE`)
			require.NoError(t, err)
			var calls errgroup.Group
			for range 2 {
				calls.Go(func() error {
					_, err := f.UseCode(t.Context(), "sale", 1, hash, "ann")
					return err
				})
			}
			harness.Eventually(t, 5*time.Second, "both wait", func() bool {
				var n int
				err := f.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
				return err == nil && n == 2
			})
			require.NoError(t, holder.Commit(t.Context()))
			require.NoError(t, calls.Wait(), "with %d uses", uses)
			listed, err := f.Codes(t.Context(), "sale", 0, 1)
			require.NoError(t, err)
			require.Equal(t, 1, listed[0].Used)
		})
	}
}

func TestCodesOfADeletedRoomOpenNoOtherOfItsName(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	codes, _, err := f.MakeCodes(t.Context(), "sale", room.NewCodes{Uses: 5, Count: 1}, ann)
	require.NoError(t, err)
	require.NoError(t, f.Delete(t.Context(), "sale", ann))
	made, err := f.Create(t.Context(), "sale", room.Defaults(), ann)
	require.NoError(t, err)
	hash, _, _ := room.ParseCode(codes[0])
	_, err = f.UseCode(t.Context(), "sale", made.Sale, hash, "ann")
	require.ErrorIs(t, err, room.ErrCode)
}
