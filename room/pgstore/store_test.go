package pgstore_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

var ann = room.Actor{Name: "ann", Role: "admin", Remote: "192.0.2.7", RequestID: "req-1"}

// fixture is a store on a database of its own, with one room.
type fixture struct {
	*pgstore.Store
	t    *testing.T
	pool *pgxpool.Pool
}

func setUp(t *testing.T) fixture {
	t.Helper()
	pool := harness.Database(t)
	f := fixture{pgstore.New(pool), t, pool}
	_, err := f.Create(t.Context(), "sale", room.Defaults(), ann)
	require.NoError(t, err)
	return f
}

func (f fixture) room() room.Room {
	f.t.Helper()
	r, err := f.Get(f.t.Context(), "sale")
	require.NoError(f.t, err)
	return r
}

// life is the one room as a scheduler sees it.
func (f fixture) life() queue.Life {
	f.t.Helper()
	lives, err := f.Lives(f.t.Context())
	require.NoError(f.t, err)
	require.Len(f.t, lives, 1)
	return lives[0]
}

func (f fixture) changes(target string) []room.Change {
	f.t.Helper()
	changes, err := f.Changes(f.t.Context(), target, 0, 100)
	require.NoError(f.t, err)
	return changes
}

func (f fixture) order(member string, sale int64, once, void bool) {
	f.t.Helper()
	const q = `INSERT INTO orders (id, grant_id, void, room, sale, generation, member, once) VALUES ($1, $2, $3, 'sale', $4, 1, $5, $6)`
	_, err := f.pool.Exec(f.t.Context(), q, uuid.New(), uuid.New(), void, sale, member, once)
	require.NoError(f.t, err)
}

func batch(n int) func(room.Settings) (room.Settings, error) {
	return func(s room.Settings) (room.Settings, error) {
		s.BatchSize = n
		return s, nil
	}
}

// atOnce runs f n times at one moment and returns the errors in order.
func atOnce(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	done.Wait()
	return errs
}

func count(errs []error, is error) int {
	n := 0
	for _, err := range errs {
		if errors.Is(err, is) {
			n++
		}
	}
	return n
}

func TestARoomComesBackAsItWasCreated(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	s := room.Defaults()
	s.BatchSize, s.Message = 7, map[string]string{"en": "<b> & \"quotes\" \u2028"}
	made, err := f.Create(t.Context(), "another", s, ann)
	require.NoError(t, err)
	require.Equal(t, int64(1), made.Version)
	require.Equal(t, int64(1), made.Sale)
	require.Zero(t, made.Generation, "only a scheduler begins a generation")
	require.Empty(t, cmp.Diff(s, made.Settings))

	got, err := f.Get(t.Context(), "another")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(made, got))
	rooms, err := f.List(t.Context())
	require.NoError(t, err)
	require.Len(t, rooms, 2)
	require.Equal(t, "another", rooms[0].Name, "by name")
}

func TestANameIsTakenOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	errs := atOnce(8, func(int) error {
		_, err := f.Create(t.Context(), "rush", room.Defaults(), ann)
		return err
	})
	require.Equal(t, 7, count(errs, room.ErrExists))
	require.Len(t, f.changes("rush"), 1, "the refused leave no audit row")
}

func TestInvalidSettingsAreNeverStored(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var problems room.Problems
	_, err := f.Create(t.Context(), "bad", room.Settings{}, ann)
	require.ErrorAs(t, err, &problems)
	_, err = f.Get(t.Context(), "bad")
	require.ErrorIs(t, err, room.ErrNotFound)
	_, err = f.Update(t.Context(), "sale", 0, batch(0), ann)
	require.ErrorAs(t, err, &problems)
	require.Equal(t, int64(1), f.room().Version)
}

func TestOfTwoChangesFromOneVersionOneIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	errs := atOnce(2, func(i int) error {
		_, err := f.Update(t.Context(), "sale", 1, batch(10+i), ann)
		return err
	})
	require.Equal(t, 1, count(errs, room.ErrVersion))
	require.Equal(t, 1, count(errs, nil))
	var lost room.VersionError
	require.ErrorAs(t, errors.Join(errs...), &lost)
	require.Equal(t, int64(2), lost.Version, "the error says what is in force")
	require.Equal(t, int64(2), f.room().Version)
}

func TestChangesAtOnceAreAllInForceAfterwards(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, err := range atOnce(20, func(int) error {
		_, err := f.Update(t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) {
			s.BatchSize++
			return s, nil
		}, ann)
		return err
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, 70, f.room().Settings.BatchSize)
	require.Equal(t, int64(21), f.room().Version)
	require.Len(t, f.changes("sale"), 21)
}

func TestAnUpdateLeavesOneAuditRowWithBeforeAndAfter(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	by := ann
	by.Action = "room.pause"
	_, err := f.Update(t.Context(), "sale", 1, batch(7), by)
	require.NoError(t, err)
	changes := f.changes("sale")
	require.Len(t, changes, 2)
	c := changes[0]
	require.Equal(t, []string{"ann", "admin", "192.0.2.7", "room.pause", "sale", "req-1"},
		[]string{c.Actor, c.Role, c.Remote, c.Action, c.Target, c.RequestID})
	require.Equal(t, int64(2), *c.Version)
	before, err := room.Parse(c.Before)
	require.NoError(t, err)
	after, err := room.Parse(c.After)
	require.NoError(t, err)
	require.Equal(t, 50, before.BatchSize)
	require.Equal(t, 7, after.BatchSize)
	require.Equal(t, "room.create", changes[1].Action)
	require.Nil(t, changes[1].Before)
}

func TestAChangeThatFailsOrChangesNothingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	refused := errors.New("refused")
	_, err := f.Update(t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) { return s, refused }, ann)
	require.ErrorIs(t, err, refused)
	r, err := f.Update(t.Context(), "sale", 1, batch(50), ann)
	require.NoError(t, err)
	require.Equal(t, int64(1), r.Version)
	require.Len(t, f.changes("sale"), 1)
	_, err = f.Update(t.Context(), "nowhere", 0, batch(7), ann)
	require.ErrorIs(t, err, room.ErrNotFound)
}

func TestANameUsedAgainGoesOnWithTheNextSale(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	begun, err := f.Begin(t.Context(), "sale", 0)
	require.NoError(t, err)
	require.NoError(t, f.Delete(t.Context(), "sale", ann))
	_, err = f.Get(t.Context(), "sale")
	require.ErrorIs(t, err, room.ErrNotFound)
	require.ErrorIs(t, f.Delete(t.Context(), "sale", ann), room.ErrNotFound)
	lives, err := f.Lives(t.Context())
	require.NoError(t, err)
	require.True(t, lives[0].Deleted, "schedulers remove what Redis has of it")
	require.NoError(t, f.Dropped(t.Context(), "sale", begun.Generation))
	lives, err = f.Lives(t.Context())
	require.NoError(t, err)
	require.Empty(t, lives, "once")
	_, err = f.Begin(t.Context(), "sale", begun.Generation)
	require.ErrorIs(t, err, queue.ErrGeneration)

	again, err := f.Create(t.Context(), "sale", room.Defaults(), ann)
	require.NoError(t, err)
	require.Equal(t, int64(2), again.Sale)
	require.Greater(t, again.Generation, begun.Generation, "the old data in Redis is of an older generation")
	require.Greater(t, again.Version, int64(1), "no version means two things")
	require.NoError(t, f.Dropped(t.Context(), "sale", begun.Generation), "late, and without effect")
	next, err := f.Begin(t.Context(), "sale", again.Generation)
	require.NoError(t, err)
	require.Equal(t, next.Generation, next.RestorableFrom, "tickets of the deleted room are void")
}

func TestAfterAFlushNothingOlderIsRestorable(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first, err := f.Begin(t.Context(), "sale", 0)
	require.NoError(t, err)
	flushed, err := f.Flush(t.Context(), "sale", ann)
	require.NoError(t, err)
	require.Equal(t, int64(2), flushed.Sale)
	require.Greater(t, flushed.Generation, first.Generation)
	require.Zero(t, flushed.RestorableFrom)

	c := f.changes("sale")[0]
	require.Equal(t, "room.flush", c.Action)
	require.JSONEq(t, fmt.Sprintf(`{"sale":1,"generation":%d}`, first.Generation), string(c.Before))
	require.JSONEq(t, fmt.Sprintf(`{"sale":2,"generation":%d}`, flushed.Generation), string(c.After))

	_, err = f.Begin(t.Context(), "sale", first.Generation)
	require.ErrorIs(t, err, queue.ErrGeneration, "a scheduler that has not seen the flush begins nothing")
	second, err := f.Begin(t.Context(), "sale", flushed.Generation)
	require.NoError(t, err)
	require.Equal(t, second.Generation, second.RestorableFrom)
	third, err := f.Begin(t.Context(), "sale", second.Generation)
	require.NoError(t, err)
	require.Equal(t, second.Generation, third.RestorableFrom, "a loss keeps the tickets since the flush")
}

func TestLanesOfARoomThatWasBegunStay(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	lanes := func(names ...string) func(room.Settings) (room.Settings, error) {
		return func(s room.Settings) (room.Settings, error) {
			s.Lanes = nil
			for _, name := range names {
				s.Lanes = append(s.Lanes, room.Lane{Name: name, Weight: 1})
			}
			return s, nil
		}
	}
	_, err := f.Update(t.Context(), "sale", 0, lanes("standard", "vpi"), ann)
	require.NoError(t, err, "before the room was begun nobody can have entered")
	_, err = f.Update(t.Context(), "sale", 0, lanes("standard", "vip"), ann)
	require.NoError(t, err)
	_, err = f.Begin(t.Context(), "sale", 0)
	require.NoError(t, err)
	_, err = f.Update(t.Context(), "sale", 0, lanes("standard", "vip", "press"), ann)
	require.NoError(t, err)
	for _, names := range [][]string{{"standard", "vip"}, {"vip", "standard", "press"}, {"standard", "gold", "press"}} {
		_, err = f.Update(t.Context(), "sale", 0, lanes(names...), ann)
		var wrong room.Problems
		require.ErrorAs(t, err, &wrong, "%v", names)
		require.Equal(t, "lanes", wrong[0].Field)
	}
	require.Len(t, f.room().Settings.Lanes, 3)
}
