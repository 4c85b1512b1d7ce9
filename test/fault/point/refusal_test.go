//go:build faults

package point_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// The last digits of a time are where JSON in Lua loses them.
func TestNoDigitIsLost(t *testing.T) {
	r := open(t, 100)
	_, err := r.Enter(t.Context(), r.name, "ann", 1)
	require.NoError(t, err)
	e := r.compare()[0]
	require.Equal(t, map[string]string{"lane": "1", "score": "1764500000123457"}, e.Members["ann"])
	require.Equal(t, "1764500000123457", e.State["last"])
	require.Equal(t, []string{"ann", "1", "0", "0", "", "0"}, e.Argv)
}

func TestOnlyARefusalIsWrittenDownOfAStepThatChangesNothing(t *testing.T) {
	r := open(t, 101)
	ctx := t.Context()
	_, err := r.Enter(ctx, r.name, "ann", 0)
	require.NoError(t, err)
	r.compare()

	_, err = r.Enter(ctx, r.name, "ann", 0)
	require.NoError(t, err)
	require.Empty(t, r.compare(), "entering again changes nothing")
	require.ErrorIs(t, r.Claim(ctx, queue.Grant{Room: r.name, Member: "ann", ID: "x"}, "c", time.Second), queue.ErrGone)
	got := r.compare()
	require.Len(t, got, 1)
	require.Equal(t, "claim", got[0].Script)
	require.Equal(t, "GONE", got[0].Reply[0])
	require.Empty(t, got[0].Members)

	require.NoError(t, r.Release(ctx, queue.Grant{Room: r.name, Member: "ann", ID: "x"}, "c"))
	require.Equal(t, "NONE", r.compare()[0].Reply[0])
	old := r.step
	old.Generation = 6
	_, err = r.Reserve(ctx, r.name, old, queue.Take{Effective: 1, Max: 1})
	require.ErrorIs(t, err, queue.ErrGeneration)
	require.Equal(t, "GEN", r.compare()[0].Reply[0])
}

func TestLivesAreWrittenDownWithTheirSettings(t *testing.T) {
	r := open(t, 102)
	ctx := t.Context()
	r.life.Version, r.life.Rules.Batch = 2, 9
	require.NoError(t, r.Update(ctx, r.life))
	e := r.compare()[0]
	require.Equal(t, "configure", e.Script)
	require.Equal(t, "update", e.Mode)
	require.Equal(t, "9", e.Conf["batch"])
	require.Equal(t, `{"a":[]}`, e.Conf["settings"])
	require.NoError(t, r.Update(ctx, r.life))
	require.Empty(t, r.compare(), "an update that is in force changes nothing")

	_, err := r.Enter(ctx, r.name, "ann", 0)
	require.NoError(t, err)
	r.life.Generation = 8
	require.NoError(t, r.Create(ctx, r.life))
	got := r.compare()
	require.Equal(t, "create", got[1].Mode)
	require.Equal(t, "8", got[1].Generation)
	require.NoError(t, r.Drop(ctx, r.life))
	e = r.compare()[0]
	require.Equal(t, "drop", e.Mode)
	require.Equal(t, "0", e.Generation, "the journal outlives the room")
}

// A step that fails half-way leaves what it has written: Lua has no rollback.
func TestAStepThatFailsHalfWayIsWrittenDownAndFailsAsItWould(t *testing.T) {
	r := open(t, 103)
	ctx := t.Context()
	require.NoError(t, r.rdb.HSet(ctx, r.key("stats"), "entered", "many").Err())
	_, err := r.Enter(ctx, r.name, "ann", 0)
	require.ErrorIs(t, err, queue.ErrDamaged)
	require.ErrorContains(t, err, "ERR hash value is not an integer")
	got := r.compare()
	require.Len(t, got, 1)
	require.Nil(t, got[0].Reply)
	require.NotNil(t, got[0].Error)
	require.True(t, strings.HasPrefix(*got[0].Error, "ERR hash value is not an integer"), *got[0].Error)
	require.Equal(t, "0", got[0].Members["ann"]["lane"], "she was put in line before it failed")
}

func TestErrorsReachTheCallerAsTheyAre(t *testing.T) {
	r := open(t, 104)
	ctx := t.Context()
	_, err := r.Enter(ctx, r.name, "ann", 9)
	require.ErrorContains(t, err, "ERR no such lane")
	require.NoError(t, r.rdb.Set(ctx, r.key("grants"), "x", 0).Err())
	_, err = r.Enter(ctx, r.name, "ann", 0)
	require.ErrorContains(t, err, "WRONGTYPE Operation against a key holding the wrong kind of value")
	require.ErrorIs(t, err, queue.ErrDamaged)
	require.Empty(t, r.entries(), "nothing was written")
}

// The clock is written down as it was, and as the room took it.
func TestBothTimesAreWrittenDown(t *testing.T) {
	r := open(t, 105)
	ctx := t.Context()
	r.clock = r.clock.Add(-time.Second)
	_, err := r.Enter(ctx, r.name, "ann", 0)
	require.NoError(t, err)
	e := r.compare()[0]
	require.Equal(t, "1764499999123457", e.Time)
	require.Equal(t, "1764500000123457", e.Now, "a small step back stands still")
	r.clock = r.clock.Add(-time.Hour)
	_, err = r.Enter(ctx, r.name, "bob", 0)
	require.NoError(t, err)
	e = r.compare()[0]
	require.Equal(t, e.Time, e.Now, "a large one is taken over")
	require.Equal(t, e.Now, e.State["step_at"])
}
