package pgstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

func TestOfTenBeginnersOneWins(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	lives := make([]queue.Life, 10)
	errs := atOnce(10, func(i int) (err error) {
		lives[i], err = f.Begin(t.Context(), "sale", 0)
		return err
	})
	require.Equal(t, 9, count(errs, queue.ErrGeneration))
	for i, err := range errs {
		if err == nil {
			require.Equal(t, f.room().Generation, lives[i].Generation, "the winner knows the generation in force")
			require.Positive(t, lives[i].Generation)
		}
	}
}

func TestGenerationsOnlyRiseWhileFlushesAndBeginnersRace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	errs := atOnce(8, func(i int) error {
		seen := int64(0)
		for range 20 {
			r, err := f.Get(t.Context(), "sale")
			if err != nil {
				return err
			}
			if r.Generation < seen {
				return fmt.Errorf("generation %d after %d", r.Generation, seen)
			}
			seen = r.Generation
			if i%2 == 0 {
				_, err = f.Flush(t.Context(), "sale", ann)
			} else {
				_, err = f.Begin(t.Context(), "sale", r.Generation)
			}
			if err != nil && !errors.Is(err, queue.ErrGeneration) {
				return err
			}
		}
		return nil
	})
	require.NoError(t, errors.Join(errs...))
}

func TestALifeHasAllThatASchedulerNeeds(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.life()
	require.Equal(t, []int64{0, 0, 0, 0}, l.Floors)
	require.Zero(t, l.Generation)

	_, err := f.Update(t.Context(), "sale", 0, batch(7), ann)
	require.NoError(t, err)
	begun, err := f.Begin(t.Context(), "sale", 0)
	require.NoError(t, err)
	require.NoError(t, f.Advance(t.Context(), []queue.Progress{{Room: "sale", Sale: 1, Floors: []int64{5, 6}, LastScore: 9}}))
	l = f.life()
	require.Equal(t, "sale", l.Room)
	require.Equal(t, begun.Generation, l.Generation)
	require.Equal(t, l.Generation, l.RestorableFrom, "there is nothing from before the first generation")
	require.Equal(t, int64(1), l.Sale)
	require.Equal(t, int64(2), l.Version)
	require.Equal(t, 7, l.Rules.Batch)
	require.Equal(t, []int64{5, 6, 0, 0}, l.Floors)
	require.Equal(t, int64(9), l.LastScore)
	s, err := room.Parse(l.Settings)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(f.room().Settings, s))

	next, err := f.Begin(t.Context(), "sale", l.Generation)
	require.NoError(t, err)
	require.Equal(t, []int64{5, 6, 0, 0}, next.Floors, "a new generation begins with the floors of the lost one")
	require.Equal(t, int64(9), next.LastScore)
	require.Equal(t, 7, next.Rules.Batch)
}

func TestOneBrokenRoomStopsNoOther(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.pool.Exec(t.Context(), `INSERT INTO rooms (name, settings) VALUES ('broken', '{"batchSize":"many"}')`)
	require.NoError(t, err)
	lives, err := f.Lives(t.Context())
	require.ErrorContains(t, err, "broken")
	require.Len(t, lives, 1)
	require.Equal(t, "sale", lives[0].Room)
}

func TestADamagedRowIsNotBlamedOnTheRequest(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, settings := range []string{`{"batchSize":"many"}`, `[]`} {
		_, err := f.pool.Exec(t.Context(), `UPDATE rooms SET settings = $1::jsonb`, settings)
		require.NoError(t, err)
		_, err = f.Get(t.Context(), "sale")
		require.ErrorContains(t, err, "sale")
		var problems room.Problems
		require.False(t, errors.As(err, &problems) || errors.Is(err, room.ErrJSON), "%v", err)
	}
}

func TestFloorsAndLastScoresNeverGoDown(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	advance := func(p ...queue.Progress) { require.NoError(t, f.Advance(t.Context(), p)) }
	advance()
	advance(queue.Progress{Room: "sale", Sale: 1, Floors: []int64{10, 20}, LastScore: 30})
	advance(queue.Progress{Room: "sale", Sale: 1, Floors: []int64{5, 25, 1}, LastScore: 29})
	advance(queue.Progress{Room: "sale", Sale: 1, Floors: nil, LastScore: 0})
	require.Equal(t, []int64{10, 25, 1, 0}, f.life().Floors)
	require.Equal(t, int64(30), f.life().LastScore)
	// One room twice in a round counts as the higher of both.
	advance(queue.Progress{Room: "sale", Sale: 1, Floors: []int64{11}, LastScore: 31}, queue.Progress{Room: "sale", Sale: 1, Floors: []int64{12}, LastScore: 32})
	require.Equal(t, []int64{12, 25, 1, 0}, f.life().Floors)
	require.Equal(t, int64(32), f.life().LastScore)
	require.Error(t, f.Advance(t.Context(), []queue.Progress{{Room: "sale", Sale: 1, Floors: make([]int64, 5)}}))
}

func TestSchedulersThatAdvanceAtOnceNeverDeadlock(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	round := []queue.Progress{{Room: "sale", Sale: 1, Floors: []int64{1}}}
	for i := range 20 {
		name := fmt.Sprintf("room-%02d", i)
		_, err := f.Create(t.Context(), name, room.Defaults(), ann)
		require.NoError(t, err)
		round = append(round, queue.Progress{Room: name, Sale: 1, Floors: []int64{1}})
	}
	backwards := make([]queue.Progress, len(round))
	for i := range round {
		backwards[len(round)-1-i] = round[i]
	}
	for _, err := range atOnce(8, func(i int) error {
		for range 25 {
			p := round
			if i%2 == 0 {
				p = backwards
			}
			if err := f.Advance(t.Context(), p); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

// What is remembered of settings is never what was in force before: neither
// after a change, nor where a room is made again and counts its versions anew.
func TestLivesHaveTheSettingsOfTheMomentHoweverOftenTheyAreRead(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	batch := func() int {
		t.Helper()
		lives, err := f.Lives(t.Context())
		require.NoError(t, err)
		require.Len(t, lives, 1)
		return lives[0].Rules.Batch
	}
	before := batch()
	require.Equal(t, before, batch())
	_, err := f.Update(t.Context(), "sale", 0, func(s room.Settings) (room.Settings, error) {
		s.BatchSize = 77
		return s, nil
	}, ann)
	require.NoError(t, err)
	require.Equal(t, 77, batch())

	require.NoError(t, f.Delete(t.Context(), "sale", ann))
	settings := room.Defaults()
	settings.BatchSize = 33
	_, err = f.Create(t.Context(), "sale", settings, ann)
	require.NoError(t, err)
	require.Equal(t, 33, batch())
}
