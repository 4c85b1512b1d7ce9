package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/test/harness"
)

// userLine is the line of an ACL file in docs/operations.md, as words behind
// the user's name.
func userLine(t *testing.T, user string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^user `+user+` (.+)$`).FindAllStringSubmatch(read(t, "docs/operations.md"), -1)
	require.Len(t, m, 1, "one line for the user %s", user)
	return strings.Fields(m[0][1])
}

// fromGo are the commands that are sent by Go code, and those of the scripts of
// redsync, which holds the lock.
var fromGo = []string{"eval", "evalsha", "info", "zrank", "zscore", "time", "pttl", "get", "set", "del", "pexpire"}

func TestTheUserOfRedisHasTheCommandsOfTheScriptsAndNoOther(t *testing.T) {
	t.Parallel()
	needed := map[string]bool{}
	for _, c := range fromGo {
		needed[c] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "queue/redisstore/lua/*.lua"))
	require.NoError(t, err)
	limits, err := filepath.Glob(filepath.Join(root, "ratelimit/lua/*.lua"))
	require.NoError(t, err)
	require.NotEmpty(t, limits)
	files = append(files, limits...)
	require.Greater(t, len(files), 10)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?:call|many)\('([A-Z]+)'`).FindAllStringSubmatch(string(text), -1) {
			needed[strings.ToLower(m[1])] = true
		}
	}
	var has []string
	for _, word := range userLine(t, "linekeeper") {
		if command, found := strings.CutPrefix(word, "+"); found {
			has = append(has, command)
		}
	}
	require.Equal(t, sorted(needed), has)
}

// make gives a server a user, and returns what must say that nobody was refused
// anything.
func makeUser(t *testing.T, p *devstack.Proc, user string, rules []string, more ...string) (nobodyRefused func()) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: p.Addr, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	args := []any{"ACL", "SETUSER", user}
	for _, word := range slices.Concat(rules, more) {
		args = append(args, word)
	}
	require.NoError(t, c.Do(t.Context(), args...).Err())
	return func() {
		t.Helper()
		refused, err := c.Do(t.Context(), "ACL", "LOG").Slice()
		require.NoError(t, err)
		require.Empty(t, refused)
	}
}

// wholeWay uses all that a Linekeeper on this Redis does.
func wholeWay(t *testing.T, redis string) {
	t.Helper()
	in := installOn(t, redis, harness.DSN(t))
	in.needs("curl")
	in.run("setup", "--secrets", "secrets")
	in.serve()
	in.run("room", "create", "other", "enterNeedsTicket=true")
	in.buys(t, "default")
	in.buys(t, "other")
	doctor := in.start("linekeeper", "doctor")
	doctor.ended() // its exit code is about more than rights
	require.Regexp(t, `(?m)^ok +redis rights `, doctor.out.String())
	require.Regexp(t, `(?m)^ok +leader +the lock is held`, doctor.out.String())
	require.Regexp(t, `(?m)^(ok|warn) +clocks `, doctor.out.String())
	in.run("room", "set", "default", "batchSize=5")
	in.run("room", "flush", "default", "--confirm", "default")
	in.run("room", "delete", "other", "--confirm", "other")
	in.awaitRoom("default")
}

func TestTheWholeWayGoesUnderTheUserOfRedis(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		p := harness.RedisServer(t)
		nobodyRefused := makeUser(t, p, "linekeeper", userLine(t, "linekeeper"))
		wholeWay(t, "redis://linekeeper:secret@"+p.Addr)
		nobodyRefused()
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		var urls []string
		var checks []func()
		for _, p := range harness.Cluster(t).Nodes {
			checks = append(checks, makeUser(t, p, "linekeeper", userLine(t, "linekeeper"), "+cluster|slots", "+command"))
			urls = append(urls, "redis://linekeeper:secret@"+p.Addr)
		}
		wholeWay(t, strings.Join(urls, ","))
		for _, nobodyRefused := range checks {
			nobodyRefused()
		}
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		g := harness.Sentinel(t)
		var checks []func()
		var addrs []string
		for _, p := range g.Servers {
			checks = append(checks, makeUser(t, p, "linekeeper", userLine(t, "linekeeper"), "+select"))
		}
		for _, p := range g.Sentinels {
			checks = append(checks, makeUser(t, p, "watcher", userLine(t, "watcher")))
			addrs = append(addrs, p.Addr)
		}
		wholeWay(t, "redis-sentinel://linekeeper:secret@"+strings.Join(addrs, ",")+"/"+devstack.MasterName+
			"/1?sentinel_username=watcher&sentinel_password=secret")
		for _, nobodyRefused := range checks {
			nobodyRefused()
		}
	})
	require.Contains(t, read(t, "docs/operations.md"), "`+cluster|slots +command`")
	require.Contains(t, read(t, "docs/operations.md"), "`+select`")
}
