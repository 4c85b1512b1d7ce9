package fault

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

var count = redis.NewScript("-- shared.lua is shared.\n-- count.lua counts.\nreturn redis.call('INCR', KEYS[1])")

// hooked is a client with the hook on it, and one without.
func hooked(t *testing.T, h *Hook) (broken, direct *redis.Client, key string) {
	t.Helper()
	broken, direct = harness.Redis(t), harness.Redis(t)
	broken.AddHook(h)
	key = t.Name()
	t.Cleanup(func() { _ = direct.Del(context.WithoutCancel(t.Context()), key).Err() })
	return broken, direct, key
}

func TestHookByAppointment(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault CallFault
		err   error
		runs  string
	}{{LoseReply, io.EOF, "1"}, {FailBefore, syscall.ECONNREFUSED, ""}, {DelayCall, nil, "1"}} {
		t.Run(string(tc.fault), func(t *testing.T) {
			t.Parallel()
			h := NewHook(NewDice(1), Odds{Longest: time.Millisecond})
			broken, direct, key := hooked(t, h)
			h.Next("count", tc.fault)
			require.NoError(t, broken.Ping(t.Context()).Err(), "the fault is another call's")
			cmd := count.Run(t.Context(), broken, []string{key})
			require.ErrorIs(t, cmd.Err(), tc.err)
			require.Equal(t, tc.runs, direct.Get(t.Context(), key).Val())
			require.Equal(t, map[CallFault]int{tc.fault: 1}, h.Counts())
			require.NoError(t, count.Run(t.Context(), broken, []string{key}).Err(), "an appointment is met once")
		})
	}
}

func TestHookBreaksOnlyTheScriptsItIsFor(t *testing.T) {
	t.Parallel()
	h := NewHook(NewDice(1), Odds{Fail: 1}, "count", "get", "pipeline")
	broken, direct, key := hooked(t, h)
	other := redis.NewScript("-- other.lua does nothing.\nreturn 1")
	for range 3 {
		require.NoError(t, other.Run(t.Context(), broken, []string{key}).Err())
		require.NoError(t, broken.Set(t.Context(), key, "0", 0).Err())
		require.ErrorIs(t, count.Run(t.Context(), broken, []string{key}).Err(), syscall.ECONNREFUSED)
		require.ErrorIs(t, broken.Get(t.Context(), key).Err(), syscall.ECONNREFUSED)
		pipe := broken.Pipeline()
		incr := pipe.Incr(t.Context(), key)
		_, err := pipe.Exec(t.Context())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.ErrorIs(t, incr.Err(), syscall.ECONNREFUSED)
	}
	require.Equal(t, "0", direct.Get(t.Context(), key).Val())
}

// A script that another client has loaded is known by its hash alone.
func TestHookLearnsTheNamesOfLoadedScripts(t *testing.T) {
	t.Parallel()
	h := NewHook(NewDice(1), Odds{Lose: 1}, "count")
	broken, direct, key := hooked(t, h)
	require.NoError(t, count.Run(t.Context(), direct, []string{key}).Err())
	require.ErrorIs(t, count.Run(t.Context(), broken, []string{key}).Err(), io.EOF)
	require.ErrorIs(t, count.Run(t.Context(), broken, []string{key}).Err(), io.EOF)
	require.Equal(t, "3", direct.Get(t.Context(), key).Val())
}

// A call by hash that the server can't run is not the call: what was to happen
// to it happens when the source is sent.
func TestLostReplyOfAScriptThatTheServerLacksHasBeenEarned(t *testing.T) {
	t.Parallel()
	h := NewHook(NewDice(1), Odds{})
	broken, direct, key := hooked(t, h)
	own := redis.NewScript("-- own.lua counts for " + t.Name() + ".\nreturn redis.call('INCR', KEYS[1])")
	h.Next("own", FailBefore) // so that the hook knows it, and the server does not
	h.Next("own", LoseReply)
	require.Error(t, own.Run(t.Context(), broken, []string{key}).Err())
	require.ErrorIs(t, own.Run(t.Context(), broken, []string{key}).Err(), io.EOF)
	require.Equal(t, "1", direct.Get(t.Context(), key).Val())
	require.Equal(t, map[CallFault]int{FailBefore: 1, LoseReply: 1}, h.Counts())
}

func TestHookRepeatsItsChoicesFromTheSeed(t *testing.T) {
	t.Parallel()
	odds := Odds{Lose: 0.3, Fail: 0.3, Delay: 0.2, Longest: time.Microsecond}
	outcomes := func(seed uint64) (all []string) {
		broken, _, key := hooked(t, NewHook(NewDice(seed), odds))
		for range 40 {
			all = append(all, fmt.Sprint(count.Run(t.Context(), broken, []string{key}).Err()))
		}
		return all
	}
	require.Equal(t, outcomes(7), outcomes(7))
	require.NotEqual(t, outcomes(7), outcomes(8))
}

func TestHookDelayEndsWithTheContext(t *testing.T) {
	t.Parallel()
	h := NewHook(NewDice(1), Odds{Delay: 1, Longest: time.Hour})
	broken, direct, key := hooked(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, count.Run(ctx, broken, []string{key}).Err(), context.DeadlineExceeded)
	require.Empty(t, direct.Get(t.Context(), key).Val())
}
