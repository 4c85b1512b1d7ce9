// Package stack tests the product as it is shipped: the image, and the stack of
// docker-compose.yml behind nginx. It needs a container engine and minutes, so
// it runs only where LINEKEEPER_TEST_STACK is set.
package stack

import (
	"context"
	"encoding/json"
	"fmt"
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
	project         = "linekeeper-test"
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

// container is the id of a service's container.
func container(t *testing.T, service string) string {
	t.Helper()
	id := strings.TrimSpace(shell(t, "docker", "ps", "-q", "--filter", "label=com.docker.compose.project="+project,
		"--filter", "label=com.docker.compose.service="+service))
	require.Regexp(t, "^[0-9a-f]+$", id, "one container of %s", service)
	return id
}

// operate is the command line beside one replica.
func operate(t *testing.T, token string, args ...string) string {
	t.Helper()
	inside := []string{"exec", "-e", "LINEKEEPER_ADMIN_TOKEN=" + token, container(t, "linekeeper-2"), "/linekeeper"}
	return shell(t, "docker", append(inside, args...)...)
}

func TestStackTakesAnOrderAndOutlivesAReplica(t *testing.T) {
	wanted(t)
	t.Setenv("COMPOSE_PROJECT_NAME", project)
	t.Setenv("LINEKEEPER_PORT", port)
	t.Setenv("LINEKEEPER_ADMIN_PORT", adminPort)
	t.Setenv("LINEKEEPER_LIMIT_ENTER_ADDRESS", "off") // hundreds enter from here
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
	t.Run("a larger batch speeds up the line, whichever replica one asks", func(t *testing.T) { speedsUp(t, token) })
	t.Run("where no replica is ready people get their own words", asksTheUnready)
	t.Run("killing a replica shows nobody an error of nginx", survivesAKill)
	t.Run("where no replica is left nginx answers in our form", answersForTheDead)
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
			PortBindings   map[string][]struct{ HostIP string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(shell(t, "docker", "inspect", container(t, "linekeeper-1"))), &containers))
	require.True(t, containers[0].HostConfig.ReadonlyRootfs)
	require.Equal(t, []string{"ALL"}, containers[0].HostConfig.CapDrop)
	require.Len(t, containers[0].HostConfig.PortBindings, 1)
	require.Equal(t, "127.0.0.1", containers[0].HostConfig.PortBindings["8081/tcp"][0].HostIP, "the operators' API is for this machine alone")
	require.Contains(t, shell(t, "docker", "cp", container(t, "linekeeper-1")+":/etc/ssl/certs/ca-certificates.crt", "-"), "BEGIN CERTIFICATE")
}

func isSteered(t *testing.T, token string) {
	require.Contains(t, operate(t, token, "room", "set", "default", "message.en=hello"), "is at version")
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

// speedsUp fills a slow room, and asks each replica by itself where the last in
// line stands.
func speedsUp(t *testing.T, token string) {
	const slow, fast = 2, 50 // a second
	operate(t, token, "room", "create", "steered", fmt.Sprint("batchSize=", slow), "awayAfterSeconds=300")
	harness.Eventually(t, 10*time.Second, "the room has begun", func() bool {
		status, _ := get(t, public+"/v1/rooms/steered")
		return status == http.StatusOK
	})
	var ticket string
	for range 500 {
		ticket = enters(t, "steered")
	}
	replicas := []string{"linekeeper-1", "linekeeper-2"}
	nginx := container(t, "nginx") // it is on their network, and the image of ours has no client
	rank := func(replica string) float64 {
		var at struct{ Rank *float64 }
		said := shell(t, "docker", "exec", nginx, "wget", "-q", "-O", "-", "--header", "X-Queue-Ticket: "+ticket,
			"http://"+replica+":8080/v1/rooms/steered/entries/me")
		require.NoError(t, json.Unmarshal([]byte(said), &at), said)
		require.NotNil(t, at.Rank, "still in line: %s", said)
		return *at.Rank
	}
	// paces is how many a second have gone ahead, by what each replica says.
	paces := func(over time.Duration) (all []float64) {
		var ranks []float64
		var asked []time.Time
		for _, r := range replicas {
			asked = append(asked, time.Now())
			ranks = append(ranks, rank(r))
		}
		time.Sleep(over) // a pace is measured over a time
		for i, r := range replicas {
			all = append(all, (ranks[i]-rank(r))/time.Since(asked[i]).Seconds())
		}
		return all
	}
	for i, pace := range paces(4 * time.Second) {
		require.InDelta(t, slow, pace, 1, "before the change, asking %s", replicas[i])
	}
	require.Contains(t, operate(t, token, "room", "set", "steered", fmt.Sprint("batchSize=", fast)), "is at version 2")
	time.Sleep(time.Second) // the promise
	for i, pace := range paces(4 * time.Second) {
		require.InDelta(t, fast, pace, fast/2, "after the change, asking %s", replicas[i])
	}
}

// enters returns the ticket of a new member.
func enters(t *testing.T, room string) string {
	t.Helper()
	resp, err := http.Post(public+"/v1/rooms/"+room+"/entries", "", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	var at struct{ QueueTicket string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&at))
	require.NotEmpty(t, at.QueueTicket)
	return at.QueueTicket
}

// refused asks for something that can't be done, and wants a problem of ours.
func refused(t *testing.T, path, code string) (detail string) {
	t.Helper()
	resp, err := http.Post(public+path, "application/json", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
	var problem struct{ Code, Detail string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&problem))
	require.Equal(t, code, problem.Code)
	return problem.Detail
}

const wordsOfNginx = "No replica answered"

// asksTheUnready takes Redis away, so that no replica is ready.
func asksTheUnready(t *testing.T) {
	redis := container(t, "redis")
	shell(t, "docker", "kill", redis)
	ready := func() bool { status, _ := get(t, public+"/readyz"); return status == http.StatusOK }
	harness.Eventually(t, 30*time.Second, "no replica is ready", func() bool { return !ready() })
	for range 6 { // each gets some
		require.NotContains(t, refused(t, "/v1/rooms/default/entries", "unavailable"), wordsOfNginx)
	}
	shell(t, "docker", "start", redis)
	harness.Eventually(t, 30*time.Second, "they are again", ready)
}

// answersForTheDead kills the last replica too.
func answersForTheDead(t *testing.T) {
	shell(t, "docker", "kill", container(t, "linekeeper-2"))
	require.Contains(t, refused(t, "/v1/rooms/default/entries", "unavailable"), wordsOfNginx)
	require.Contains(t, refused(t, "/v1/orders", "order-outcome-unknown"), "Send the same request again")
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
	shell(t, "docker", "kill", container(t, "linekeeper-1"))
	after := asked.Load() + 200 // every other one waits for the dead replica for a second
	harness.Eventually(t, time.Minute, "and go on without the replica", func() bool { return asked.Load() > after })
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
