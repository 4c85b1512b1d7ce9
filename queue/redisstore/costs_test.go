package redisstore

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// commandCall finds the calls of commands in a script, with what they are given.
var commandCall = regexp.MustCompile(`(?:call|many)\('([A-Z]+)'([^\n]*)`)

// whole says what is wrong with a line of a script that reads a set of any size
// in one go; empty for all others.
func whole(line string) string {
	for _, m := range commandCall.FindAllStringSubmatch(line, -1) {
		command, args := m[1], m[2]
		switch {
		case regexp.MustCompile(`^(SMEMBERS|HKEYS|HVALS|KEYS|SCAN|SORT|LRANGE)$`).MatchString(command):
			return command
		case strings.HasSuffix(command, "SCAN") && !strings.Contains(args, "'COUNT'"):
			return command + " without a COUNT"
		case command == "HGETALL" && !regexp.MustCompile(`^, (CONF|STATE|STATS|HEALTH)\b`).MatchString(args):
			return "HGETALL of something that grows"
		case strings.HasPrefix(command, "ZRANGEBY") && !strings.Contains(args, "'LIMIT'"):
			return command + " without a LIMIT"
		case command == "ZRANGE" && regexp.MustCompile(`, 0, -1\b`).MatchString(args):
			return "ZRANGE of all"
		}
	}
	return ""
}

func TestNoScriptReadsAWholeSet(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(luaFS, "lua/*.lua")
	require.NoError(t, err)
	require.Greater(t, len(files), 20)
	for _, file := range files {
		text, err := fs.ReadFile(luaFS, file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			require.Empty(t, whole(line), "%s: %s", file, line)
		}
	}
	for _, line := range []string{"call('ZRANGE', LANE[1], 0, -1)", "call('SMEMBERS', X)", "call('HGETALL', GRANTS)", "call('ZRANGEBYSCORE', READY, '-inf', f(now))"} {
		require.NotEmpty(t, whole(line), "the check lets %s pass", line)
	}
}

// What anybody may ask for, and what operators look at, costs the same however
// many wait: nobody makes Redis busy by asking. The fastest of some tries counts,
// because the machine may be busy with something else.
func TestAMillionWaitingAreToldOfInFiftyMilliseconds(t *testing.T) {
	t.Parallel()
	const n = 1_000_000
	f := on(t, client(t, harness.RedisServer(t).Addr), func(r *queue.Rules) { r.MaxWaiting = 2 * n })
	const fill = `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do redis.call('ZADD', KEYS[1], 1764400000000000 + i, 'm' .. string.format('%07d', i)) end return 1`
	for i := 0; i < n; i += 20_000 {
		require.NoError(t, f.rdb.Eval(t.Context(), fill, []string{f.key("lane0")}, i, i+20_000-1).Err())
	}
	for what, ask := range map[string]func() error{
		"a snapshot": func() error {
			s, err := f.Snapshot(t.Context(), f.room)
			require.EqualValues(t, n, s.Waiting())
			return err
		},
		"a poll": func() error {
			st, err := f.Poll(t.Context(), f.room, "m0999999", queue.Place{})
			require.EqualValues(t, n-1, st.Rank)
			return err
		},
	} {
		fastest := time.Hour
		for range 20 {
			begun := time.Now()
			require.NoError(t, ask())
			fastest = min(fastest, time.Since(begun))
		}
		t.Logf("%s of %d takes %v", what, n, fastest)
		require.Less(t, fastest, 50*time.Millisecond, what)
	}
}

// A score is exact up to the last one that Redis and Lua can hold: 2^53-1.
func TestTheLargestScoreGoesThroughEveryScriptUnchanged(t *testing.T) {
	const largest = 1<<53 - 1
	f := setup(t)
	_, err := f.rdb.ZAdd(t.Context(), f.key("lane0"), redis.Z{Score: largest, Member: "last"}).Result()
	require.NoError(t, err)
	st, err := f.Standing(t.Context(), f.room, "last")
	require.NoError(t, err)
	require.EqualValues(t, largest, st.Place.Score)
	r := f.reserve()
	require.Len(t, r.Taken, 1)
	require.EqualValues(t, largest, r.Taken[0].Place.Score)
	f.grantAll(r)
	st, err = f.Standing(t.Context(), f.room, "last")
	require.NoError(t, err)
	require.EqualValues(t, largest, st.Grant.Place.Score)
	g, err := f.PickUp(t.Context(), st.Grant, "k")
	require.NoError(t, err)
	require.EqualValues(t, largest, g.Place.Score)
	s, err := f.Snapshot(t.Context(), f.room)
	require.NoError(t, err)
	require.EqualValues(t, largest, s.Lanes[0].Watermark)
}
