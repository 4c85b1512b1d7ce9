// Package stack tests the product as it is shipped: the image, and the stack of
// docker-compose.yml behind nginx. It needs a container engine and minutes, so
// it runs only where LINEKEEPER_TEST_STACK is set.
package stack

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

const (
	port, adminPort = "18080", "18081" // a stack for use may have the usual ones
	public          = "http://127.0.0.1:" + port
	root            = "../.."
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

func wanted(t *testing.T) {
	t.Helper()
	if os.Getenv("LINEKEEPER_TEST_STACK") == "" {
		t.Skip("set LINEKEEPER_TEST_STACK=1 to test the stack in containers; it needs Docker and some minutes")
	}
}

// shell runs a command at the root of the repository and returns what it prints.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", name, args, out)
	return string(out)
}

func TestStackTakesAnOrderAndOutlivesAReplica(t *testing.T) {
	wanted(t)
	project := "linekeeper-test"
	t.Setenv("COMPOSE_PROJECT_NAME", project)
	t.Setenv("LINEKEEPER_PORT", port)
	t.Setenv("LINEKEEPER_ADMIN_PORT", adminPort)
	t.Cleanup(func() {
		shell(t, "make", "down")
		for _, v := range []string{"redis", "postgres", "secrets"} {
			shell(t, "docker", "volume", "rm", project+"_"+v)
		}
	})
	up := shell(t, "make", "up")
	command := regexp.MustCompile(`admin token +(.+)`).FindStringSubmatch(up)
	require.NotNil(t, command, "make up says how to read the admin token:\n%s", up)
	lines := strings.Fields(shell(t, "sh", "-c", command[1]+" 2>/dev/null"))
	token := lines[len(lines)-1]

	t.Run("the block of the README works through nginx", func(t *testing.T) { placesAnOrder(t, token) })
	t.Run("the image is small, and has nothing it does not need", isSmallAndPoor)
	t.Run("a change from the shell acts on both replicas", func(t *testing.T) { isSteered(t, token) })
	t.Run("killing a replica shows nobody an error of nginx", survivesAKill)
}

// placesAnOrder runs the block that a newcomer pastes.
func placesAnOrder(t *testing.T, token string) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```sh\n(API=.*?)```").FindSubmatch(readme)
	require.NotNil(t, block, "the README has the block")
	script := regexp.MustCompile(`ADMIN_TOKEN=\$\([^)]*\)|ADMIN_TOKEN=\S+`).ReplaceAllString(string(block[1]), "ADMIN_TOKEN="+token)
	script = strings.NewReplacer(":8080", ":"+port, ":8081", ":"+adminPort).Replace(script)
	out := shell(t, "sh", "-c", script)
	for _, want := range []string{`"status":"WAITING"`, `"status":"READY"`, `"totalCents":1990`, `"batchSize":100`} {
		require.Contains(t, out, want)
	}
}

func isSmallAndPoor(t *testing.T) {
	var image []struct {
		Size   int64
		Config struct{ User string }
	}
	require.NoError(t, json.Unmarshal([]byte(shell(t, "docker", "image", "inspect", "linekeeper:local")), &image))
	require.Less(t, image[0].Size, int64(40<<20))
	require.Equal(t, "65532:65532", image[0].Config.User)
	var containers []struct {
		HostConfig struct {
			ReadonlyRootfs bool
			CapDrop        []string
		}
	}
	id := strings.TrimSpace(shell(t, "docker", "ps", "-q", "--filter", "name=linekeeper-1"))
	require.NoError(t, json.Unmarshal([]byte(shell(t, "docker", "inspect", id)), &containers))
	require.True(t, containers[0].HostConfig.ReadonlyRootfs)
	require.Equal(t, []string{"ALL"}, containers[0].HostConfig.CapDrop)
}

func isSteered(t *testing.T, token string) {
	id := strings.TrimSpace(shell(t, "docker", "ps", "-q", "--filter", "name=linekeeper-2"))
	out := shell(t, "docker", "exec", "-e", "LINEKEEPER_ADMIN_TOKEN="+token, id, "/linekeeper", "room", "set", "default", "message.en=hello")
	require.Contains(t, out, "is at version")
	harness.Eventually(t, 5*time.Second, "everybody reads it", func() bool {
		for range 4 { // nginx takes turns
			_, body := get(t, public+"/v1/rooms/default")
			if !strings.Contains(body, "hello") {
				return false
			}
		}
		return true
	})
}

// survivesAKill keeps asking while one replica is killed: whatever is answered
// is ours.
func survivesAKill(t *testing.T) {
	var asked, foreign atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				resp, err := http.Post(public+"/v1/rooms/default/entries", "", nil)
				if err != nil {
					foreign.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				asked.Add(1)
				if resp.StatusCode >= 500 && resp.Header.Get("Content-Type") != "application/problem+json" {
					foreign.Add(1)
				}
			}
		})
	}
	harness.Eventually(t, 20*time.Second, "requests flow", func() bool { return asked.Load() > 200 })
	id := strings.TrimSpace(shell(t, "docker", "ps", "-q", "--filter", "name=linekeeper-1"))
	shell(t, "docker", "kill", id)
	after := asked.Load() + 400
	harness.Eventually(t, 30*time.Second, "and go on without the replica", func() bool { return asked.Load() > after })
	stop()
	wg.Wait()
	require.Zero(t, foreign.Load(), "answers that were not ours, of %d", asked.Load())
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}
