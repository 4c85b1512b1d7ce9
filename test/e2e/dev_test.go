package e2e

import (
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// devSettings let the system choose the ports of a `linekeeper dev`.
var devSettings = []string{"LINEKEEPER_LISTEN=127.0.0.1:0", "LINEKEEPER_ADMIN_LISTEN=127.0.0.1:0"}

// needs skips a test where a program is missing, as package harness does.
func needs(t *testing.T, found error) {
	t.Helper()
	if found != nil && os.Getenv("CI") != "" {
		t.Fatal(harness.MissingPart + found.Error())
	} else if found != nil {
		t.Skip(harness.MissingPart + found.Error())
	}
}

func needsDevParts(t *testing.T) {
	t.Helper()
	_, noRedis := devstack.Find(devstack.RedisServer)
	needs(t, noRedis)
	_, noPostgres := devstack.Find(devstack.PostgresServer)
	needs(t, noPostgres)
	_, noCurl := exec.LookPath("curl")
	needs(t, noCurl)
}

// emptyDir is a directory that the user who runs Postgres can get to as well.
func emptyDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "linekeeper-e2e-dev-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

var apiAt = regexp.MustCompile(`(?m)^API=(http://\S+) ADMIN=(http://\S+) ADMIN_TOKEN=(\S+)$`)

// dev starts `linekeeper dev` and returns it with the block that it prints.
func dev(t *testing.T, dir string, args ...string) (p *process, block string) {
	t.Helper()
	p = launch(t, dir, devSettings, append([]string{"dev"}, args...)...)
	const last = `"$ADMIN/admin/v1/rooms/default"; echo`
	harness.Eventually(t, 2*patience, "dev prints what to paste", func() bool {
		if p.ended() {
			t.Fatalf("dev has ended:\n%s", p.tail())
		}
		return strings.Contains(p.out.String(), last)
	})
	out := p.out.String()
	at := apiAt.FindStringSubmatchIndex(out)
	require.NotNil(t, at, "%s", out)
	p.public, p.admin = out[at[2]:at[3]], out[at[4]:at[5]]
	return p, out[at[0] : strings.Index(out, last)+len(last)]
}

// paste runs the block as a whole and returns the lines that it prints.
func paste(t *testing.T, block string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", block).CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 4, "%s", out)
	require.Contains(t, lines[0], `"status":"WAITING"`)
	require.Contains(t, lines[0], `"queueTicket":"`)
	require.Contains(t, lines[1], `"status":"READY"`)
	require.Contains(t, lines[1], `"entryToken":"`)
	require.Regexp(t, `"id":"[0-9a-f-]{36}"`, lines[2])
	require.Contains(t, lines[2], `"room":"default"`)
	require.Contains(t, lines[3], `"batchSize":100`)
	return lines
}

func group(pattern, text string) string {
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}

// descendants are all processes that stem from one.
func descendants(of int) map[int]bool {
	parents, found := processes(), map[int]bool{of: true}
	for grown := true; grown; {
		before := len(found)
		for pid, parent := range parents {
			if found[parent] {
				found[pid] = true
			}
		}
		grown = len(found) > before
	}
	return found
}

// leavesNothing waits until none of the processes is there any more.
func leavesNothing(t *testing.T, started map[int]bool) {
	t.Helper()
	harness.Eventually(t, patience, "all that dev has started has ended", func() bool {
		there := processes()
		return !slices.ContainsFunc(slices.Collect(maps.Keys(started)), func(pid int) bool {
			_, alive := there[pid]
			return alive
		})
	})
}

func TestDevRunsInAnEmptyDirectoryAndKeepsItsDataForTheNextRun(t *testing.T) {
	t.Parallel()
	needsDevParts(t)
	dir := emptyDir(t)
	p, block := dev(t, dir)
	lines := paste(t, block)
	require.Contains(t, lines[0], `"rank":0`)
	index, err := http.Get(group(`API=(\S+)`, block) + "/")
	require.NoError(t, err)
	require.NoError(t, index.Body.Close())
	require.Equal(t, http.StatusOK, index.StatusCode, "the root lists what there is to look at")
	require.DirExists(t, filepath.Join(dir, ".linekeeper"))
	started := descendants(p.cmd.Process.Pid)
	require.Greater(t, len(started), 3, "dev has started no servers")
	p.signal(syscall.SIGINT)
	p.awaitEnd(patience)
	require.Equal(t, 0, p.exitCode())
	leavesNothing(t, started)

	again, second := dev(t, dir)
	require.Equal(t, group(`ADMIN_TOKEN=(\S+)`, block), group(`ADMIN_TOKEN=(\S+)`, second), "the token must not change")
	w := (&world{t: t}).furnish()
	s := &shopper{w: w, t: t, room: "default", ticket: group(`"queueTicket":"([^"]+)"`, lines[0])}
	id := group(`"id":"([^"]+)"`, lines[2])
	require.Equal(t, id, s.orderByID(again, id).is(200).order().ID, "the order is gone")
	at := s.poll(again).is(200).position()
	require.Equal(t, queue.Consumed, at.Status, "Redis has forgotten the shopper")
	require.Equal(t, id, *at.OrderID)
	require.NotContains(t, again.out.String(), "migrated", "there was nothing to migrate")
	paste(t, second)
}

func TestDevWithRedisInMemorySaysSoAndServesACrowd(t *testing.T) {
	t.Parallel()
	needsDevParts(t)
	p, block := dev(t, emptyDir(t), "--redis", "memory", "--crowd", "100")
	require.Contains(t, p.out.String(), "NOT DURABLE")
	harness.Eventually(t, patience, "the crowd orders, and is not taken for one client", func() bool {
		return regexp.MustCompile(`crowd: .* \d{3,} orders placed, 0 turned away`).MatchString(p.out.String())
	})
	paste(t, block) // not beside the crowd: this Redis is slow
	started := descendants(p.cmd.Process.Pid)
	p.signal(syscall.SIGINT)
	p.awaitEnd(patience)
	require.Equal(t, 0, p.exitCode())
	leavesNothing(t, started)
}

func TestDevOnATakenPortIsOneLineAndLeavesNothing(t *testing.T) {
	t.Parallel()
	needsDevParts(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p := launch(t, emptyDir(t), append(devSettings, "LINEKEEPER_LISTEN="+l.Addr().String()), "dev")
	p.killed = true // its exit code is judged here
	started := map[int]bool{}
	harness.Eventually(t, 2*patience, "dev has ended", func() bool {
		maps.Copy(started, descendants(p.cmd.Process.Pid))
		return p.ended()
	})
	require.Equal(t, 1, p.exitCode())
	lines := plain(p.err.String())
	require.Len(t, lines, 1, "%s", p.said())
	require.Contains(t, lines[0], "LINEKEEPER_LISTEN")
	leavesNothing(t, started)
}
